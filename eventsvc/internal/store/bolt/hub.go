package bolt

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// A change is one published write as all watchers share it.
type change struct {
	revision uint64
	kind     kind
	key      store.Key
	current  *store.Version // nil for a deletion
	previous *store.Version // nil for a creation
}

// delivery tells how a watch sees a change, and whether it sees it at all.
func (c *change) delivery(q *store.WatchQuery) (store.Delivery, bool) {
	was := c.kind != created && q.Matches(c.key, c.previous.Attributes)
	is := c.kind != deleted && q.Matches(c.key, c.current.Attributes)
	d := store.Delivery{Revision: c.revision, Object: c.current}
	switch {
	case was && is:
		d.Type = store.Modified
	case is:
		d.Type = store.Added
	case was:
		d.Type, d.Object = store.Removed, c.previous
	}
	return d, was || is
}

// size is about what a change keeps in memory: its versions, and as much again
// for the forms in which they are sent.
func (c *change) size() int {
	n := 256
	for _, v := range []*store.Version{c.current, c.previous} {
		if v != nil {
			n += 2*len(v.Value) + len(v.Attributes)
		}
	}
	return n
}

// The hub shares the newest changes with all watchers: one ring of them, in
// which every watcher has a place of its own. Publishing costs the same for
// one watcher as for a thousand, and nobody waits for a watcher: one whom the
// ring has left behind reads on from the log.
type hub struct {
	published atomic.Uint64 // revision of the newest published write

	mu       sync.RWMutex
	ring     []*change // change number n is at n modulo len
	first    uint64    // number of the oldest change in the ring
	next     uint64    // number that the next change will get
	bytes    int
	maxBytes int
	floor    uint64        // the ring holds every change with a greater revision
	wake     chan struct{} // replaced when something is published, closed when that is announced
	closed   bool

	unheard   []chan struct{} // of what is published and not yet announced
	announced time.Time       // when that was done last
	timer     *time.Timer     // announces; nil: none is under way
}

// Every announcement wakes all watchers, and each of them costs about
// roundShare when it writes. Announcements are so far apart that a round ends
// before the next begins: then many watchers get several changes in one write,
// where they would else fall behind writing each on its own. Few watchers never
// wait, and nobody waits longer than maxRound.
const (
	roundShare = 10 * time.Microsecond
	maxRound   = 25 * time.Millisecond
)

func newHub(revision uint64, entries, maxBytes int) *hub {
	h := &hub{ring: make([]*change, entries), maxBytes: maxBytes, floor: revision, wake: make(chan struct{})}
	h.published.Store(revision)
	return h
}

func (h *hub) at(n uint64) **change { return &h.ring[n%uint64(len(h.ring))] }

// publish makes the changes of one commit visible, oldest first. The caller
// announces them when it has better things done.
func (h *hub) publish(changes []change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range changes {
		if h.next-h.first == uint64(len(h.ring)) {
			h.dropOldest()
		}
		*h.at(h.next) = &changes[i]
		h.next++
		h.bytes += changes[i].size()
		for h.bytes > h.maxBytes && h.next-h.first > 1 {
			h.dropOldest()
		}
	}
	h.published.Store(changes[len(changes)-1].revision)
	h.unheard = append(h.unheard, h.wake)
	h.wake = make(chan struct{})
}

// announce wakes those of so many watchers who have not seen what is published,
// now or when it is time for that.
func (h *hub) announce(watchers int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		return
	}
	round := min(time.Duration(watchers)*roundShare, maxRound)
	if left := round - time.Since(h.announced); left > 0 {
		h.timer = time.AfterFunc(left, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.timer = nil
			h.wakeAll()
		})
		return
	}
	h.wakeAll()
}

func (h *hub) wakeAll() {
	for i, wake := range h.unheard {
		close(wake)
		h.unheard[i] = nil
	}
	h.unheard = h.unheard[:0]
	h.announced = time.Now()
}

func (h *hub) dropOldest() {
	c := h.at(h.first)
	h.floor = (*c).revision
	h.bytes -= (*c).size()
	*c = nil
	h.first++
}

// after appends the changes behind a revision to dst, at most limit. It
// reports false if the ring no longer holds all of them. When there are none
// the channel tells of the next.
func (h *hub) after(dst []*change, revision uint64, limit int) (changes []*change, wake <-chan struct{}, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if revision < h.floor {
		return dst, nil, false
	}
	held := int(h.next - h.first)
	from := sort.Search(held, func(i int) bool { return (*h.at(h.first + uint64(i))).revision > revision })
	for i := from; i < held && i-from < limit; i++ {
		dst = append(dst, *h.at(h.first + uint64(i)))
	}
	return dst, h.wake, true
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.wakeAll()
		close(h.wake)
	}
}

func (h *hub) isClosed() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.closed
}
