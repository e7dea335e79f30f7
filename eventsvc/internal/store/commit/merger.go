package commit

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
)

// A Merger brings the memtables of an index into its file. A memtable that cannot be merged
// stays in memory, and nothing is lost: the log has everything that is in it.
type Merger struct {
	Index    *index.Index
	Records  *seglog.Log
	Usage    *usage.Usage
	MaxKeys  int    // of a memtable, before it is merged
	Unmerged func() // called when the file cannot be written, as on a full disk; must not wait
	Log      *slog.Logger

	frozen chan struct{} // told when a memtable was frozen
	merged chan struct{} // told when it was merged, or could not be
	full   *atomic.Bool  // the last merge had no room on the disk
}

// NewMerger returns a Merger with the exported fields of m.
func NewMerger(m Merger) *Merger {
	m.frozen, m.merged, m.full = make(chan struct{}, 1), make(chan struct{}, 1), new(atomic.Bool)
	return &m
}

// Run merges memtables until stop is closed, or the file must not be written any more.
func (m *Merger) Run(stop <-chan struct{}) {
	for {
		select {
		case <-m.frozen:
		case <-stop:
			return
		}
		for err := m.merge(); err != nil; err = m.merge() {
			if errors.Is(err, index.ErrFailed) {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-stop:
				return
			}
		}
	}
}

// MergeAll merges everything that was put into the index. It is for a store whose
// committer does not run.
func (m *Merger) MergeAll() error {
	if err := m.merge(); err != nil {
		return err
	}
	m.freeze()
	return m.merge()
}

// Full reports whether the memtable has grown to its limit.
func (m *Merger) Full() bool { return m.Index.Size() >= m.MaxKeys }

// makeRoom freezes a memtable that has grown to its limit. While the one before it is still being merged it may grow
// on, to twice the limit, or to four times the limit while the file is written again; then writes wait, unless they are
// refused because the files have failed. Where the disk is full nobody waits: deletions and the maintenance that makes
// room are to go on, and the log refuses what has no room there.
func (m *Merger) makeRoom(stop, failed <-chan struct{}) {
	for m.Full() && !m.freeze() {
		most := 2 * m.MaxKeys
		if m.Index.Rewriting() {
			most = 4 * m.MaxKeys
		}
		if m.Index.Size() < most || m.full.Load() {
			return
		}
		select {
		case <-m.merged:
		case <-failed:
			return
		case <-stop:
			return
		}
	}
}

// freeze hands the active memtable over to be merged, unless another is being merged
// still.
func (m *Merger) freeze() bool {
	if !m.Index.Freeze(m.Usage.Live()) {
		return false
	}
	notify(m.frozen)
	return true
}

// merge merges the frozen memtable, if there is one.
func (m *Merger) merge() error {
	err := m.Index.Merge(m.Records.CompactRevision())
	m.full.Store(disk.IsFull(err))
	notify(m.merged) // or wakes a writer to see that it need not wait
	if err != nil {
		m.Log.Error("the key index could not be written", "error", err)
		m.Unmerged()
		return err
	}
	return nil
}

// notify sends to a channel that holds one value, unless it has one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
