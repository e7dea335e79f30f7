package commit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// What may wait at an engine. With more, a write is refused with [store.ErrBusy].
const (
	QueueWrites = 4096
	QueueBytes  = 64 << 20 // in memory
)

// A commit takes no more writes when it has so many. A write may consist of several.
const (
	batchWrites = 1024
	batchBytes  = 8 << 20
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

// Revision returns the revision of a write that was made.
func (w *Write) Revision() uint64 { return w.revision }

// Result returns the outcome of a write that was made: the new version, or the last one with the revision of its
// deletion.
func (w *Write) Result() store.Result {
	if w.version != nil {
		return store.Result{Record: w.version.Record, Op: store.Put, Created: w.Kind == seglog.Created}
	}
	r := w.Previous.Record
	r.Revision = w.revision
	return store.Result{Record: r, Op: store.Delete}
}

// size returns what the write, without those of With, takes in the queue.
func (w *Write) size() int64 {
	return seglog.MaxEntryBytes(len(w.joined), len(w.Draft.Attributes)+len(w.Draft.Value))
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

// Take waits for a write, and returns it with those that wait behind it. It returns nil when stop is closed. It is for
// an engine without a [Committer], which answers each of them with [Queue.Answer].
func (q *Queue) Take(stop <-chan struct{}) []*Write {
	select {
	case w := <-q.writes:
		return q.collect(nil, w)
	case <-stop:
		return nil
	}
}

// Refuse answers all writes that wait with an error: they were written nowhere.
func (q *Queue) Refuse(err error) {
	for {
		select {
		case w := <-q.writes:
			for _, w := range appendAll(nil, w) {
				q.Answer(w, 0, time.Time{}, err)
			}
		default:
			return
		}
	}
}

// End refuses every write from now on, also those that wait for an answer. It must be called once, when no answer is to
// come any more.
func (q *Queue) End() { close(q.ended) }

// Answer tells the writer that w was made under a revision, or its error.
func (q *Queue) Answer(w *Write, revision uint64, at time.Time, err error) {
	w.Err = err
	if err == nil {
		w.revision = revision
		if w.Kind != seglog.Deleted {
			w.version = &store.Version{Record: store.Record{
				Key: w.Key, Revision: revision, Time: at, Attributes: w.Draft.Attributes, Value: w.Draft.Value, Bytes: int(w.size()),
			}}
		}
	}
	q.answer(w)
}

// collect appends a write and those that wait behind it, as one batch.
func (q *Queue) collect(batch []*Write, first *Write) []*Write {
	batch = appendAll(batch, first)
	size := len(first.Draft.Value)
	for len(batch) < batchWrites && size < batchBytes {
		select {
		case w := <-q.writes:
			batch = appendAll(batch, w)
			size += len(w.Draft.Value)
		default:
			return batch
		}
	}
	return batch
}

// appendAll appends a write, behind those that are committed with it.
func appendAll(batch []*Write, w *Write) []*Write {
	for i := range w.With {
		batch = append(batch, &w.With[i])
	}
	return append(batch, w)
}

// answer tells the writer that w was answered.
func (q *Queue) answer(w *Write) {
	q.bytes.Add(-w.size())
	if w.done != nil {
		w.done <- struct{}{}
	}
}
