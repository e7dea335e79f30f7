package query

import (
	"sync"

	"tidings.example/eventsvc/internal/store"
)

// remaining remembers the number of events behind the ends of the last pages, so that a
// list is counted once, and not again for each of its pages. The state of a revision does
// not change, so no entry becomes stale.
type remaining struct {
	mu     sync.Mutex
	counts map[pageEnd]int64
	order  [remainingPages]pageEnd // the oldest is overwritten
	next   int
}

// remainingPages is how many lists can be read at the same time without counting again.
const remainingPages = 256

type pageEnd struct {
	prefix   string // of the keys in the range
	revision uint64
	last     store.Key
}

func (r *remaining) get(e pageEnd) (n int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok = r.counts[e]
	return n, ok
}

func (r *remaining) put(e pageEnd, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[pageEnd]int64, remainingPages)
	}
	if _, ok := r.counts[e]; ok {
		return
	}
	delete(r.counts, r.order[r.next])
	r.order[r.next], r.counts[e] = e, n
	r.next = (r.next + 1) % remainingPages
}
