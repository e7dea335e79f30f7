package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
)

// errConflict: an update lost against another write of its event.
var errConflict = errors.New("store: the event changed meanwhile")

// A write waits for the committer.
type write struct {
	ctx      context.Context
	kind     kind
	key      store.Key
	joined   string         // "namespace/name"
	previous *store.Version // the version that the caller saw; nil: none
	exists   error          // what to answer when previous is not the newest
	draft    store.Draft

	done    chan struct{} // receives one value when the write was answered
	version *store.Version
	err     error
}

// submit queues a write and waits for its answer.
func (db *DB) submit(w *write) error {
	if err := db.enqueue(w); err != nil {
		return err
	}
	return db.await(w)
}

func (w *write) size() int64 {
	return int64(recordHeader + len(w.joined) + len(w.draft.Attributes) + len(w.draft.Value) + recordTrailer)
}

// enqueue queues a write unless too many are waiting.
func (db *DB) enqueue(w *write) error {
	c := &db.committer
	w.done = make(chan struct{}, 1)
	if c.queued.Add(w.size()) <= db.o.QueueBytes {
		select {
		case c.queue <- w:
			return nil
		default:
		}
	}
	c.queued.Add(-w.size())
	return store.ErrBusy
}

// await waits for the answer to a queued write.
func (db *DB) await(w *write) error {
	select {
	case <-w.done:
		return w.err
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-db.committed:
		// The committer is gone; it may have answered as its last deed.
		select {
		case <-w.done:
			return w.err
		default:
			return store.ErrClosed
		}
	}
}

// control has the committer run f between two batches, and returns its error.
func (db *DB) control(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case db.committer.controls <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-db.committed:
		return store.ErrClosed
	}
}
