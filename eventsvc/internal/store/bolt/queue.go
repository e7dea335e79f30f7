package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// errConflict: an update lost against another write of its event.
var errConflict = errors.New("store: the event changed meanwhile")

// A write waits for the committer.
type write struct {
	ctx      context.Context
	kind     seglog.Kind
	key      store.Key
	joined   string         // "namespace/name"
	seen     store.Seen     // the version that the caller saw; of revision 0: none
	previous *store.Version // its content; nil where nobody is expected to want it
	exists   error          // what to answer when it is not the newest
	draft    store.Draft
	others   []write // in one piece with this one: committed together, answered before it

	done     chan struct{} // receives one value when the write was answered; nil for one of others
	version  *store.Version
	revision uint64
	err      error
}

// record is the outcome of a write that was made: the new version, or the last
// one with the revision of its deletion.
func (w *write) record() store.Record {
	if w.version != nil {
		return w.version.Record
	}
	r := w.previous.Record
	r.Revision = w.revision
	return r
}

// submit queues a write and waits for its answer.
func (db *DB) submit(w *write) error {
	if err := db.enqueue(w); err != nil {
		return err
	}
	return db.await(w)
}

// size is what the write, without those in one piece with it, takes in the queue.
func (w *write) size() int64 {
	return seglog.MaxBytes(len(w.joined), len(w.draft.Attributes)+len(w.draft.Value))
}

// enqueue queues a write unless too many are waiting.
func (db *DB) enqueue(w *write) error {
	c := &db.committer
	w.done = make(chan struct{}, 1)
	size := w.size()
	for i := range w.others {
		size += w.others[i].size()
	}
	if c.queued.Add(size) <= db.o.QueueBytes {
		select {
		case c.queue <- w:
			return nil
		default:
		}
	}
	c.queued.Add(-size)
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

// Do has the committer run f between two batches, and returns its error.
func (c *committer) Do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case c.controls <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-c.db.committed:
		return store.ErrClosed
	}
}
