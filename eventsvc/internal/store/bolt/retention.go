package bolt

import (
	"context"
	"errors"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Rule gives events of a namespace, of a type, or of both a retention of their
// own. An empty field is any. The first rule that fits counts.
type Rule struct {
	Namespace string
	Type      string
	Retention time.Duration // 0: for ever
}

// retentionOf returns how long a version is kept.
func (o *Options) retentionOf(e *seglog.Entry) time.Duration {
	for _, r := range o.Rules {
		if (r.Namespace == "" || r.Namespace == string(e.Key[:e.NamespaceLen])) &&
			(r.Type == "" || r.Type == string(event.Attributes(e.Attributes).Field(event.Type))) {
			return r.Retention
		}
	}
	return o.Retention
}

// retentions returns the different times that events are kept.
func (o *Options) retentions() []time.Duration {
	all := []time.Duration{o.Retention}
	for _, r := range o.Rules {
		all = append(all, r.Retention)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(d time.Duration) bool { return d == 0 })
}

// expiryBatch is how many events are deleted in one go: enough to share a
// commit, few enough for other writes not to notice.
const expiryBatch = 1024

// expiryRound is how many events are deleted at most before the room of what is
// gone is brought back, each for deletionBytes of the files: its record, its
// place in the index, the slack of pages.
const (
	expiryRound   = 64 * expiryBatch
	deletionBytes = 256
)

// expiryRound is the bound by the room there is: a quarter of it may go for
// deletions, the rest is for files to be written anew.
func (m *maintenance) expiryRound() int {
	free, err := disk.Free(m.db.o.Dir)
	if err != nil {
		return expiryBatch
	}
	return int(max(expiryBatch, min(expiryRound, free/4/deletionBytes)))
}

// expire deletes events whose last write is longer ago than they are kept, and
// reports whether there may be more. The log is in order of time, so for each
// retention there is a place in the log before which everything of that
// retention is gone.
func (m *maintenance) expire(ctx context.Context) (more bool, err error) {
	left := m.expiryRound()
	for _, retention := range m.db.o.retentions() {
		cutoff := m.db.clock.old().Add(-retention)
		for more := true; more; {
			if left <= 0 {
				return true, nil
			}
			from := m.expired[retention]
			var due []store.Seen
			if due, more, err = m.due(retention, cutoff); err != nil {
				return false, err
			}
			if _, _, err := m.db.DeleteMany(ctx, due); err != nil {
				m.expired[retention] = from
				return false, err
			}
			left -= len(due)
		}
	}
	return false, nil
}

// due goes on from where it was, and returns the next newest versions of a
// retention that were written before the cutoff.
func (m *maintenance) due(retention time.Duration, cutoff time.Time) (due []store.Seen, more bool, err error) {
	at := m.expired[retention]
	err = m.db.scanLog(at, m.db.Revision(), func(e *seglog.Entry, p index.Pointer) bool {
		if !e.Time.Before(cutoff) {
			return false
		}
		if p == index.NewPointer(e.Revision, false) && m.db.o.retentionOf(e) == retention {
			due = append(due, e.Seen())
		}
		at, more = e.Revision, true
		return len(due) < expiryBatch
	})
	m.expired[retention] = at
	return due, more, err
}

// scanLog calls f with some records behind a revision and what the index has
// for their keys, until f returns false. It is bounded in time: at most
// checkChunk records are looked at. Damaged ones are passed over: nothing may
// go because of them, and nothing stay.
func (db *DB) scanLog(after, last uint64, f func(*seglog.Entry, index.Pointer) bool) error {
	err := db.index.View(func(v index.View) error {
		return db.log.View(func(log *seglog.Reader) error {
			n := 0
			var failed error
			err := log.ScanAll(after, last, func(e seglog.Entry) bool {
				var p index.Pointer
				if p, _, failed = v.Newest(string(e.Key)); failed != nil {
					return false
				}
				n++
				return f(&e, p) && n < checkChunk
			}, seglog.SkipDamaged)
			return errors.Join(err, failed)
		})
	})
	if err != nil {
		return db.readError(err)
	}
	return nil
}

func (db *DB) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-db.stop:
		return store.ErrClosed
	}
}
