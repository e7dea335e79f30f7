package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/watch"
)

// Bounds of one read of the log for a watcher.
const (
	replayChanges = 512
	replayRecords = replayChanges * 16 // that the watcher does not cover, too
	replayBytes   = 1 << 20
)

// Watch implements [store.Store].
func (db *DB) Watch(_ context.Context, q store.WatchQuery) (store.Watcher, error) {
	if db.life.closed() {
		return nil, store.ErrClosed
	}
	oldest, current := db.log.CompactRevision(), db.Revision()
	switch {
	case q.After == 0:
		q.After = current
	case q.After > current:
		return nil, &store.FutureError{Revision: q.After, Current: current}
	case q.After < oldest:
		return nil, &store.ExpiredError{Revision: q.After, Oldest: oldest}
	}
	return db.hub.Subscribe(q, replayer{db}), nil
}

// A replayer reads changes from the log. It implements [watch.Log].
type replayer struct{ db *DB }

func (p replayer) Replay(dst []*watch.Change, q *store.WatchQuery, after uint64) (changes []*watch.Change, upTo uint64, err error) {
	db := p.db
	db.reads.replays.Inc()
	if oldest := db.log.CompactRevision(); after < oldest {
		return dst, after, &store.ExpiredError{Revision: after, Oldest: oldest}
	}
	published := db.Revision()
	err = db.log.View(func(r *seglog.Reader) error {
		changes, upTo = dst, published // View may run this again
		records, bytes := 0, 0
		var failed error
		err := r.Scan(after, published, func(e seglog.Entry) bool {
			upTo = e.Revision
			records++
			if covers(q, &e) {
				var c *watch.Change
				if c, failed = change(r, e); failed != nil {
					return false
				}
				changes = append(changes, c)
				bytes += c.Size()
			}
			return records < replayRecords && len(changes)-len(dst) < replayChanges && bytes < replayBytes
		})
		return errors.Join(err, failed)
	})
	// History may have been given up while it was read.
	if oldest := db.log.CompactRevision(); after < oldest {
		return dst, after, &store.ExpiredError{Revision: after, Oldest: oldest}
	}
	if err != nil {
		return dst, after, db.reads.failed(err)
	}
	return changes, upTo, nil
}

func covers(q *store.WatchQuery, e *seglog.Entry) bool {
	return (q.Namespace == "" || q.Namespace == string(e.Key[:e.NamespaceLen])) &&
		(q.Name == "" || q.Name == string(e.Key[e.NamespaceLen+1:]))
}

// change copies a log record, and the version before it, out of the log.
func change(r *seglog.Reader, e seglog.Entry) (*watch.Change, error) {
	c := &watch.Change{Revision: e.Revision, Key: e.StoreKey()}
	if e.Kind != seglog.Deleted {
		c.Current = &store.Version{Record: e.Clone()}
	}
	if e.Kind != seglog.Created {
		before, err := r.Get(e.Previous)
		if err != nil {
			return nil, err
		}
		c.Previous = &store.Version{Record: before.Clone()}
	}
	return c, nil
}
