package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// trim gives up old states: it moves the compact revision, behind which states can be
// read, over everything that was written before the cutoff, or as far as it
// takes to bring the history under so many bytes. What only older states needed
// is then dead and counts towards the compaction of its segment.
func (m *maintenance) trim(ctx context.Context, cutoff time.Time, maxHistory int64) error {
	// Only what the index has is trimmed: the memtables' deletions would stay in it.
	if due, err := m.mergeDue(cutoff, maxHistory); err != nil {
		return err
	} else if due {
		if err := m.db.flush(ctx); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		next, dead, gone, err := m.trimmable(cutoff, maxHistory)
		if err != nil || next == m.trimmed {
			return err
		}
		if next > m.db.log.CompactRevision() {
			if err := m.moveCompactRevision(ctx, next); err != nil {
				return err
			}
		}
		if err := m.forget(next, dead, gone); err != nil {
			return err
		}
	}
}

// mergeDue reports whether something that is not in the index yet is to be
// trimmed. As long as there is not, small merges would be wasted.
func (m *maintenance) mergeDue(cutoff time.Time, maxHistory int64) (due bool, err error) {
	// The account of what is dead waits for an index that is made again. A new store
	// has nothing to merge: its index is at 0, its compact revision at 1.
	if m.db.index.Merged()+1 < m.db.log.CompactRevision() {
		return true, nil
	}
	excess := m.db.Stats().HistoryBytes > maxHistory
	err = m.db.log.View(func(log *seglog.Reader) error {
		return log.Scan(m.db.index.Merged(), m.db.Revision(), func(e seglog.Entry) bool {
			due = excess || e.Time.Before(cutoff)
			return false
		})
	})
	if err != nil {
		return false, m.db.readError(err)
	}
	return due, nil
}

// trimmable looks how far the compact revision can move in one step, which bytes of
// which segments that makes dead, and which keys only deletions are left of.
func (m *maintenance) trimmable(cutoff time.Time, maxHistory int64) (next uint64, dead map[uint64]int64, gone []index.Entry, err error) {
	next = m.trimmed
	compactRevision := m.db.log.CompactRevision()
	dead = make(map[uint64]int64)
	excess := m.db.Stats().HistoryBytes - maxHistory
	merged := m.db.index.Merged()
	err = m.db.log.View(func(log *seglog.Reader) error {
		n := 0
		var failed error
		err := log.ScanAll(next, merged, func(e seglog.Entry) bool {
			if n == checkChunk || e.Revision > compactRevision && !e.Time.Before(cutoff) && excess <= 0 {
				return false
			}
			n++
			size := int64(0)
			if e.Kind != seglog.Created {
				var before seglog.Entry
				before, failed = log.Peek(e.Previous)
				switch {
				case failed == nil:
					size = before.Size()
					dead[log.SegmentBase(e.Previous)] += size
				case errors.Is(failed, seglog.ErrGone) && e.Revision <= compactRevision, isCorrupt(failed):
					failed = nil // compacted away: this account is being made anew; or damaged, and kept as evidence
				default:
					return false
				}
			}
			if e.Kind == seglog.Deleted {
				size += e.Size()
				dead[log.SegmentBase(e.Revision)] += e.Size()
				gone = append(gone, index.Entry{Key: string(e.Key), Pointer: index.NewPointer(e.Revision, true)})
			}
			excess -= size
			next = e.Revision
			return true
		}, seglog.SkipDamaged)
		if failed != nil {
			return failed
		}
		return err
	})
	if err != nil {
		return 0, nil, nil, m.db.readError(err)
	}
	return next, dead, gone, nil
}

// moveCompactRevision makes a new compact revision durable and then valid for readers.
func (m *maintenance) moveCompactRevision(ctx context.Context, compactRevision uint64) error {
	return m.db.control(ctx, func() error {
		if err := m.db.committer.failed(); err != nil {
			return err
		}
		if compactRevision <= m.db.log.CompactRevision() {
			return nil // a bump came in between: the compact revision never moves back
		}
		head := m.db.log.Head()
		err := head.SaveCompactRevision(compactRevision)
		if err != nil && !disk.IsFull(err) {
			return m.db.committer.headFailed(err)
		} else if err != nil {
			return fmt.Errorf("store: moving the horizon: %w", err)
		}
		m.db.log.SetCompactRevision(compactRevision)
		return nil
	})
}

// forget takes deleted keys out of the index, and keeps the account of dead
// bytes, in the same transaction.
func (m *maintenance) forget(trimmed uint64, dead map[uint64]int64, gone []index.Entry) error {
	m.db.dead.add(dead)
	versions := min(int64(trimmed-m.trimmed), checkChunk) // trimmable looks at no more, however far revisions are apart
	m.trimmed = trimmed
	return m.db.index.Forget(gone, versions, index.Account{Trimmed: trimmed, Dead: m.db.dead.all()})
}
