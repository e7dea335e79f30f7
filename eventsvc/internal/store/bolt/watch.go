package bolt

import (
	"context"
	"errors"
	"sync/atomic"

	"tidings.example/eventsvc/internal/store"
)

// Bounds of one batch from the ring, and of one read of the log.
const (
	watchBatch  = 256
	replayBatch = 512
	replayBytes = 1 << 20
)

// Watch implements [store.Store].
func (db *DB) Watch(_ context.Context, q store.WatchQuery) (store.Watcher, error) {
	if db.closed() {
		return nil, store.ErrClosed
	}
	if q.After == 0 {
		q.After = db.Revision()
	} else if oldest := db.horizon.Load(); q.After < oldest {
		return nil, &store.ExpiredError{Revision: q.After, Oldest: oldest}
	}
	w := &watcher{db: db, query: q, position: q.After, told: q.After}
	w.taken.Store(q.After)
	db.watchers.add(w)
	db.hub.join(q.Namespace, w.group)
	return w, nil
}

type watcher struct {
	db       *DB
	query    store.WatchQuery
	position uint64 // every change up to here was looked at
	told     uint64 // revision of the last batch returned
	changes  []*change
	group    int           // of the hub
	taken    atomic.Uint64 // every change up to here was taken by whoever watches; any goroutine reads it
}

func (w *watcher) Close() {
	if w.db.watchers.remove(w) {
		w.db.hub.leave(w.query.Namespace)
	}
}

// Next implements [store.Watcher].
func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	for {
		w.taken.Store(w.position)
		upTo, wake, held := w.look()
		if !held {
			w.db.metrics.replays.Inc()
			if err := w.replay(); err != nil {
				return store.Batch{}, err
			}
		}
		if len(w.changes) > 0 {
			if b := w.batch(upTo); len(b.Changes) > 0 {
				return b, nil
			}
			if ctx.Err() == nil {
				continue
			}
		} else if !held && ctx.Err() == nil {
			continue
		}
		w.position = max(w.position, upTo)
		w.taken.Store(w.position)
		if w.db.hub.isClosed() {
			return store.Batch{}, store.ErrClosed
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return w.interrupted(ctx)
		}
	}
}

// look takes the next changes from the ring, if it holds them: all of what the
// watch covers up to a revision.
func (w *watcher) look() (upTo uint64, wake <-chan struct{}, held bool) {
	w.changes, upTo, wake, held = w.db.hub.after(w.changes[:0], w.query.Namespace, w.position, watchBatch, w.group)
	return upTo, wake, held
}

// interrupted tells of changes that were passed over before it gives the
// context's error, so that a bookmark can say how far the watch has come.
func (w *watcher) interrupted(ctx context.Context) (store.Batch, error) {
	if upTo, _, held := w.look(); held && len(w.changes) == 0 {
		w.position = max(w.position, upTo) // nobody was woken for what the watch does not cover
	}
	clear(w.changes) // the next call looks again
	if w.position > w.told {
		w.told = w.position
		return store.Batch{Revision: w.position}, nil
	}
	return store.Batch{Revision: w.position}, ctx.Err()
}

// batch turns w.changes, which are all that there is up to a revision or to the
// last of them, into what this watch sees of them.
func (w *watcher) batch(upTo uint64) store.Batch {
	var b store.Batch
	for i := range w.changes {
		if d, ok := w.changes[i].delivery(&w.query); ok {
			if b.Changes == nil {
				b.Changes = make([]store.Delivery, 0, len(w.changes)-i)
			}
			b.Changes = append(b.Changes, d)
		}
	}
	w.position = max(w.position, upTo, w.changes[len(w.changes)-1].revision)
	clear(w.changes)
	b.Revision = w.position
	if len(b.Changes) > 0 {
		w.told = w.position
	}
	return b
}

// replay reads changes that the ring no longer holds from the log.
func (w *watcher) replay() error {
	if oldest := w.db.horizon.Load(); w.position < oldest {
		return &store.ExpiredError{Revision: w.position, Oldest: oldest}
	}
	published := w.db.Revision()
	seen, bytes := 0, 0
	var last uint64
	err := w.db.readLog(func(r *logReader) error {
		w.changes, seen, bytes, last = w.changes[:0], 0, 0, w.position
		var failed error
		err := r.scan(w.position, published, func(e entry) bool {
			last = e.revision
			seen++
			if covers(&w.query, &e) {
				var c *change
				if c, failed = r.change(e); failed != nil {
					return false
				}
				w.changes = append(w.changes, c)
				bytes += c.size()
			}
			return seen < replayBatch*16 && len(w.changes) < replayBatch && bytes < replayBytes
		})
		return errors.Join(err, failed)
	})
	// What the scan found may have been trimmed away under it.
	if oldest := w.db.horizon.Load(); w.position < oldest {
		return &store.ExpiredError{Revision: w.position, Oldest: oldest}
	}
	if err != nil {
		return w.db.readError(err)
	}
	if len(w.changes) == 0 {
		w.position = last
		if seen == 0 {
			w.position = published
		}
	}
	return nil
}

func covers(q *store.WatchQuery, e *entry) bool {
	return (q.Namespace == "" || q.Namespace == string(e.key[:e.namespace])) &&
		(q.Name == "" || q.Name == string(e.key[e.namespace+1:]))
}

// change copies a log record, and the version before it, out of the log.
func (r *logReader) change(e entry) (*change, error) {
	c := &change{revision: e.revision, kind: e.kind, key: e.storeKey()}
	if e.kind != deleted {
		c.current = &store.Version{Record: e.record()}
	}
	if e.kind != created {
		before, err := r.get(e.previous)
		if err != nil {
			return nil, err
		}
		c.previous = &store.Version{Record: before.record()}
	}
	return c, nil
}
