package bolt

import (
	"slices"
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
	previous *store.Version // nil for a creation, and for a deletion whose object is in the log only
	growth   int64          // by how many bytes the records of what exists have become more
}

// inLog reports that what a watcher is to be shown is not here.
func (c *change) inLog() bool { return c.kind == deleted && c.previous == nil }

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
	floor    uint64 // the ring holds every change with a greater revision
	closed   bool

	topics    map[string]*topic // by namespace; "": all of them
	groups    [hubGroups]hubGroup
	turn      int           // the group that is told next
	round     time.Duration // in which all are told
	announced time.Time     // when one was told last
	timer     *time.Timer   // tells the next; nil: none is under way
}

// hubGroup is a part of the watchers, who are woken together.
type hubGroup struct {
	unheard []chan struct{} // of topics that have changed, closed when that is announced
}

// Every watcher that is woken costs about roundShare when it writes. Each is
// woken so seldom that all have written before it is its turn again: then many
// watchers get several changes in one write, where they would else fall behind
// writing each on its own. Few watchers never wait, and nobody waits longer than
// maxRound.
//
// Many watchers are woken group by group, each group for a burst of work or as
// near to it as they can be divided: whatever comes while they write, the next
// create above all, waits behind a group and not behind a thousand writes.
const (
	roundShare = 15 * time.Microsecond
	maxRound   = 25 * time.Millisecond
	hubGroups  = 8
	burst      = 1500 * time.Microsecond
)

func newHub(revision uint64, entries, maxBytes int) *hub {
	h := &hub{ring: make([]*change, entries), maxBytes: maxBytes, floor: revision, topics: map[string]*topic{}}
	h.published.Store(revision)
	return h
}

func (h *hub) at(n uint64) **change { return &h.ring[n%uint64(len(h.ring))] }

// publish makes the changes of one commit visible, oldest first, and returns how
// many watchers they concern. The caller announces them when it has better
// things done.
func (h *hub) publish(changes []change) (watchers int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.published.Load()
	for i := range changes {
		revision := changes[i].revision
		watchers += h.touch("", revision, before) + h.touch(changes[i].key.Namespace, revision, before)
		if changes[i].inLog() { // who watches this reads it, and what was before it, there
			h.floor = revision
			h.dropped("", revision)
			h.dropped(changes[i].key.Namespace, revision)
			continue
		}
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
	return watchers
}

// announce wakes so many watchers whom what is published concerns, now or when
// it is time for that.
func (h *hub) announce(watchers int) {
	if watchers == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	round := min(time.Duration(watchers)*roundShare, maxRound)
	if h.timer != nil {
		h.round = max(h.round, round)
		return
	}
	h.round = round
	h.tell()
}

// tell wakes the groups whose turn it is, once those before them have had their
// time, and sees to it that the others follow.
func (h *hub) tell() {
	together := hubGroups
	if h.round > burst {
		together = max(1, int(hubGroups*burst/h.round))
	}
	step := h.round * time.Duration(together) / hubGroups
	left := step - time.Since(h.announced)
	if left <= 0 {
		for range together {
			h.groups[h.turn].wakeAll()
			h.turn = (h.turn + 1) % hubGroups
		}
		h.announced, left = time.Now(), step
	}
	if !slices.ContainsFunc(h.groups[:], func(g hubGroup) bool { return len(g.unheard) > 0 }) {
		return
	}
	h.timer = time.AfterFunc(left, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = nil
		h.tell()
	})
}

func (g *hubGroup) wakeAll() {
	for i, wake := range g.unheard {
		close(wake)
		g.unheard[i] = nil
	}
	g.unheard = g.unheard[:0]
}

func (h *hub) dropOldest() {
	c := h.at(h.first)
	h.floor = max(h.floor, (*c).revision)
	h.dropped("", (*c).revision)
	h.dropped((*c).key.Namespace, (*c).revision)
	h.bytes -= (*c).size()
	*c = nil
	h.first++
}

// after appends the changes of a topic behind a revision to dst, at most limit,
// and returns the revision up to which these are all. It reports false if the
// ring no longer holds all of them. The channel tells a watcher of that group of
// the next.
func (h *hub) after(dst []*change, topic string, revision uint64, limit, group int) (changes []*change, upTo uint64, wake <-chan struct{}, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := h.topics[topic]
	if revision < t.floor {
		return dst, revision, nil, false
	}
	held := int(h.next - h.first)
	from := sort.Search(held, func(i int) bool { return (*h.at(h.first + uint64(i))).revision > revision })
	for i, most := from, len(dst)+limit; i < held; i++ {
		c := *h.at(h.first + uint64(i))
		if topic != "" && c.key.Namespace != topic {
			continue
		}
		if len(dst) == most {
			return dst, dst[most-1].revision, t.wakes[group], true
		}
		dst = append(dst, c)
	}
	return dst, max(revision, h.published.Load()), t.wakes[group], true
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		for i := range h.groups {
			h.groups[i].wakeAll()
		}
		for _, t := range h.topics {
			for _, wake := range t.wakes {
				if wake != nil {
					close(wake)
				}
			}
		}
	}
}

func (h *hub) isClosed() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.closed
}
