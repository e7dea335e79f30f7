package commit

import (
	"context"
	"errors"
	"sync/atomic"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// ErrConflict refuses a write whose event was written after the version that its caller saw.
var ErrConflict = errors.New("store: the event changed meanwhile")

// A Write is one change of one event. The fields up to With are the caller's, and must not
// be changed while the write waits.
type Write struct {
	Ctx      context.Context
	Kind     seglog.Kind
	Key      store.Key
	Seen     store.Seen     // the version that the caller saw, and that must be the newest; of revision 0: none
	Previous *store.Version // its content; nil where nobody is expected to want it
	Draft    store.Draft
	With     []Write // committed in the same batch, and answered before this one

	// Err is nil when the write was made.
	Err error

	joined   string         // the key as the files hold it
	version  *store.Version // after the write, nil after a deletion
	revision uint64
	done     chan struct{} // receives one value when the write was answered; nil for one of With
}

// Record returns the outcome of a write that was made: the new version, or the last one
// with the revision of its deletion.
func (w *Write) Record() store.Record {
	if w.version != nil {
		return w.version.Record
	}
	r := w.Previous.Record
	r.Revision = w.revision
	return r
}

// size returns what the write, without those of With, takes in the queue.
func (w *Write) size() int64 {
	return seglog.MaxBytes(len(w.joined), len(w.Draft.Attributes)+len(w.Draft.Value))
}

// A Queue holds the writes that wait for the committer.
type Queue struct {
	writes   chan *Write
	controls chan func()
	bytes    atomic.Int64 // that the writes keep in memory
	maxBytes int64
	ended    chan struct{} // closed when nobody takes writes any more
}

// NewQueue returns a queue for so many writes, which keep so many bytes in memory.
func NewQueue(writes int, bytes int64) *Queue {
	return &Queue{writes: make(chan *Write, writes), controls: make(chan func()), maxBytes: bytes, ended: make(chan struct{})}
}

// Submit queues a write and waits for its answer.
func (q *Queue) Submit(w *Write) error {
	if err := q.Enqueue(w); err != nil {
		return err
	}
	return q.Await(w)
}

// Enqueue queues a write unless too many are waiting.
func (q *Queue) Enqueue(w *Write) error {
	w.done = make(chan struct{}, 1)
	w.joined = w.Key.String()
	size := w.size()
	for i := range w.With {
		other := &w.With[i]
		other.joined = other.Key.String()
		size += other.size()
	}
	if q.bytes.Add(size) <= q.maxBytes {
		select {
		case q.writes <- w:
			return nil
		default:
		}
	}
	q.bytes.Add(-size)
	return store.ErrBusy
}

// Await waits for the answer to a queued write. If its context ends first, the write may
// still be committed.
func (q *Queue) Await(w *Write) error {
	select {
	case <-w.done:
		return w.Err
	case <-w.Ctx.Done():
		return w.Ctx.Err()
	case <-q.ended:
		// The committer is gone; it may have answered as its last deed.
		select {
		case <-w.done:
			return w.Err
		default:
			return store.ErrClosed
		}
	}
}

// Do has the committer run f between two batches, and returns its error.
func (q *Queue) Do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case q.controls <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-q.ended:
		return store.ErrClosed
	}
}

// Waiting returns how many writes wait, and the bytes that they keep in memory.
func (q *Queue) Waiting() (writes int, bytes int64) { return len(q.writes), q.bytes.Load() }

// answer tells the writer that w was answered.
func (q *Queue) answer(w *Write) {
	q.bytes.Add(-w.size())
	if w.done != nil {
		w.done <- struct{}{}
	}
}
