package watch

import (
	"context"
	"sync/atomic"

	"tidings.example/eventsvc/internal/store"
)

// Bounds of the changes that one call of Next takes from the ring. A watcher whose client
// does not read keeps them from being forgotten, and there may be thousands of those.
const (
	batchChanges = 256
	batchBytes   = 128 << 10 // by [Change.Size]
)

// A Log has the changes that the ring no longer holds.
type Log interface {
	// Replay appends to dst the oldest changes after a revision that q covers by
	// namespace and name, in order and bounded in number and size. Every such
	// change up to the revision upTo is then in dst; upTo is greater than after.
	// A revision that is no longer held is a [*store.ExpiredError].
	Replay(dst []*Change, q *store.WatchQuery, after uint64) (changes []*Change, upTo uint64, err error)
}

// A Watcher is one reader of the changes. It implements [store.Watcher].
type Watcher struct {
	hub      *Hub
	log      Log
	query    store.WatchQuery
	group    int
	position uint64 // every change up to here was looked at
	returned uint64 // revision of the last batch that was returned
	changes  []*Change
	// Every change up to here was delivered: the caller asks for the next batch. Any goroutine reads it.
	delivered atomic.Uint64
}

// Close ends the watcher, and a topic that has no other. Further calls do nothing.
func (w *Watcher) Close() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[w.query.Namespace]; t != nil {
		if delete(t.watchers, w); len(t.watchers) == 0 {
			delete(h.topics, w.query.Namespace)
		}
	}
}

// Next implements [store.Watcher].
func (w *Watcher) Next(ctx context.Context) (store.Batch, error) {
	for {
		w.delivered.Store(w.position)
		upTo, wake, held := w.look()
		if !held {
			var err error
			if w.changes, upTo, err = w.log.Replay(w.changes[:0], &w.query, w.position); err != nil {
				return store.Batch{}, err
			}
		}
		if b := w.batch(upTo); len(b.Changes) > 0 {
			return b, nil
		}
		if wake == nil && ctx.Err() == nil {
			continue
		}
		w.delivered.Store(w.position)
		if w.hub.closed.Load() {
			return store.Batch{}, store.ErrClosed
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return w.interrupted(ctx)
		}
	}
}

// Behind implements [store.Watcher].
func (w *Watcher) Behind() bool {
	h := w.hub
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := h.topics[w.query.Namespace]
	return t != nil && w.position < t.floor
}

// look takes the next changes from the ring: all changes of the topic up to a revision.
// If held is false, the ring no longer holds them. wake is closed when there are more; it
// is nil if there is no need to wait: some were taken, or the log has to be read.
func (w *Watcher) look() (upTo uint64, wake <-chan struct{}, held bool) {
	w.changes, upTo, wake, held = w.hub.after(w.changes[:0], w.query.Namespace, w.position, w.group)
	if len(w.changes) > 0 {
		wake = nil
	}
	return upTo, wake, held
}

// interrupted reports progress before it returns the context's error: the
// changes that the watch does not cover move its revision on too, and a bookmark
// tells the client so.
func (w *Watcher) interrupted(ctx context.Context) (store.Batch, error) {
	if upTo, _, held := w.look(); held && len(w.changes) == 0 {
		w.position = max(w.position, upTo)
	}
	clear(w.changes) // the next call looks again
	if w.position > w.returned {
		w.returned = w.position
		return store.Batch{Revision: w.position}, nil
	}
	return store.Batch{Revision: w.position}, ctx.Err()
}

// batch makes deliveries of w.changes, which are all changes of the topic up to a
// revision, and moves the position there.
func (w *Watcher) batch(upTo uint64) store.Batch {
	var b store.Batch
	for i := range w.changes {
		if d, ok := w.changes[i].delivery(&w.query); ok {
			if b.Changes == nil {
				b.Changes = make([]store.Delivery, 0, len(w.changes)-i)
			}
			b.Changes = append(b.Changes, d)
		}
	}
	w.position = max(w.position, upTo)
	clear(w.changes)
	b.Revision = w.position
	if len(b.Changes) > 0 {
		w.returned = w.position
	}
	return b
}
