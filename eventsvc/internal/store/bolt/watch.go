package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/watch"
)

// Watch implements [store.Store].
func (db *DB) Watch(_ context.Context, q store.WatchQuery) (store.Watcher, error) {
	switch current := db.Revision(); {
	case db.life.Closed():
		return nil, store.ErrClosed
	case q.After == 0:
		q.After = current
	case q.After > current:
		return nil, &store.FutureError{Revision: q.After, Current: current}
	default:
		if err := db.read.Held(q.After); err != nil {
			return nil, err
		}
	}
	return db.hub.Subscribe(q, replayer{db}), nil
}

// A replayer counts how often watchers read from the log.
type replayer struct{ db *DB }

// Replay implements [watch.Log].
func (r replayer) Replay(dst []*watch.Change, q *store.WatchQuery, after uint64) ([]*watch.Change, uint64, error) {
	r.db.reads.replays.Inc()
	return r.db.read.Replay(dst, q, after)
}
