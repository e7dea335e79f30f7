package watch

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// A Hub shares the newest changes with all watchers. See the package
// documentation for its guarantees.
type Hub struct {
	published atomic.Uint64 // revision of the newest published write

	mu       sync.RWMutex
	ring     []*Change // change number n is at index n modulo len(ring)
	first    uint64    // number of the oldest change in the ring
	next     uint64    // number that the next change will get
	bytes    int       // sum of Change.Size over the ring
	maxBytes int
	floor    uint64 // the ring holds every change with a greater revision
	closed   atomic.Bool
	topics   map[string]*topic // by namespace; "": all of them

	// Watchers are woken in groups. A group's channels are those of changed topics; they are
	// closed when it is woken.
	groups    [groupCount][]chan struct{}
	nextJoin  int           // the group of the next watcher; they join in rotation
	nextGroup int           // the group that is woken next
	round     time.Duration // the time in which all groups are woken once
	woken     time.Time     // when a group was last woken
	timer     *time.Timer   // wakes the next group; nil: no round is in progress
}

// Waking a watcher costs about perWatcher of processor time, because the watcher
// then writes. A round lasts as long as all of them need to write, so no watcher is
// woken twice before the others were woken once: under a fast stream of changes
// it gets several in one write instead of falling behind with one write for each.
// A few watchers are never delayed, and no watcher waits longer than maxRound.
//
// Many watchers are woken group by group, with about burst of work at a time.
// Other requests then wait behind one group instead of behind all the writes.
const (
	perWatcher = 15 * time.Microsecond
	maxRound   = 25 * time.Millisecond
	groupCount = 8
	burst      = 1500 * time.Microsecond
)

// NewHub returns a hub whose newest published write has the given revision. Its
// ring holds at most that many entries, and about maxBytes of changes.
func NewHub(revision uint64, entries, maxBytes int) *Hub {
	h := &Hub{ring: make([]*Change, entries), maxBytes: maxBytes, floor: revision, topics: map[string]*topic{}}
	h.published.Store(revision)
	return h
}

// Published returns the revision of the newest published write.
func (h *Hub) Published() uint64 { return h.published.Load() }

// Advance moves the newest revision on behind a gap that has no changes. Watchers
// are not woken; their next bookmark tells the revision.
func (h *Hub) Advance(revision uint64) { h.published.Store(revision) }

func (h *Hub) at(n uint64) **Change { return &h.ring[n%uint64(len(h.ring))] }

// Publish makes the changes of one commit visible, oldest first. There must be at
// least one. It returns the number of watchers to wake, for [Hub.Announce]: a
// committer answers its writers in between.
func (h *Hub) Publish(changes []Change) (watchers int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.published.Load()
	for i := range changes {
		c := &changes[i]
		watchers += h.touch("", c.Revision, before) + h.touch(c.Key.Namespace, c.Revision, before)
		if c.inLog() { // a watcher reads this change, and all before it, from the log
			h.floor = c.Revision
			h.dropped(c)
			continue
		}
		if h.next-h.first == uint64(len(h.ring)) {
			h.dropOldest()
		}
		*h.at(h.next) = c
		h.next++
		h.bytes += c.Size()
		for h.bytes > h.maxBytes && h.next-h.first > 1 {
			h.dropOldest()
		}
	}
	h.published.Store(changes[len(changes)-1].Revision)
	return watchers
}

// Announce wakes the watchers that a publication concerns: at once, or group by
// group if there are many. It does not block.
func (h *Hub) Announce(watchers int) {
	if watchers == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	round := min(time.Duration(watchers)*perWatcher, maxRound)
	if h.timer != nil {
		h.round = max(h.round, round)
		return
	}
	h.round = round
	h.wakeGroups()
}

// wakeGroups wakes the groups that are due, and sets a timer for the others.
func (h *Hub) wakeGroups() {
	together := groupCount
	if h.round > burst {
		together = max(1, int(groupCount*burst/h.round))
	}
	step := h.round * time.Duration(together) / groupCount
	left := step - time.Since(h.woken)
	if left <= 0 {
		for range together {
			h.wake(h.nextGroup)
			h.nextGroup = (h.nextGroup + 1) % groupCount
		}
		h.woken, left = time.Now(), step
	}
	if !slices.ContainsFunc(h.groups[:], func(wakes []chan struct{}) bool { return len(wakes) > 0 }) {
		return
	}
	h.timer = time.AfterFunc(left, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = nil
		h.wakeGroups()
	})
}

func (h *Hub) wake(group int) {
	wakes := h.groups[group]
	for _, wake := range wakes {
		close(wake)
	}
	clear(wakes)
	h.groups[group] = wakes[:0]
}

func (h *Hub) dropOldest() {
	c := h.at(h.first)
	h.floor = max(h.floor, (*c).Revision)
	h.dropped(*c)
	h.bytes -= (*c).Size()
	*c = nil
	h.first++
}

// after appends to dst changes of a topic with revisions greater than the given one, a
// batch at most. All changes of the topic up to upTo are then in dst. It
// reports false if the ring no longer holds all of them. The next change of the
// topic closes wake, the channel of the watcher's group.
func (h *Hub) after(dst []*Change, namespace string, revision uint64, group int) (changes []*Change, upTo uint64, wake <-chan struct{}, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := h.topics[namespace]
	if revision < t.floor {
		return dst, revision, nil, false
	}
	held := int(h.next - h.first)
	from := sort.Search(held, func(i int) bool { return (*h.at(h.first + uint64(i))).Revision > revision })
	bytes := 0
	for i, most := from, len(dst)+batchChanges; i < held; i++ {
		c := *h.at(h.first + uint64(i))
		if namespace != "" && c.Key.Namespace != namespace {
			continue
		}
		if len(dst) == most || bytes >= batchBytes {
			return dst, dst[len(dst)-1].Revision, t.wakes[group], true
		}
		dst = append(dst, c)
		bytes += c.Size()
	}
	return dst, max(revision, h.published.Load()), t.wakes[group], true
}

// Watched reports whether a watcher covers a namespace.
func (h *Hub) Watched(namespace string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.topics[""] != nil || h.topics[namespace] != nil
}

// Close wakes all watchers and makes their Next return [store.ErrClosed] once
// they have read what was published.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Swap(true) {
		return
	}
	for i := range h.groups {
		h.wake(i)
	}
	for _, t := range h.topics {
		for _, wake := range t.wakes {
			if wake != nil {
				close(wake)
			}
		}
	}
}

// Subscribe returns a watcher of every change after q.After that q covers; 0
// stands for the newest revision. The caller has made sure that the log still
// holds the changes after q.After.
func (h *Hub) Subscribe(q store.WatchQuery, log Log) *Watcher {
	if q.After == 0 {
		q.After = h.Published()
	}
	w := &Watcher{hub: h, log: log, query: q, position: q.After, returned: q.After}
	w.delivered.Store(q.After)
	h.join(w)
	return w
}

// Lag returns by how many revisions the slowest watcher is behind. A watcher
// whose namespace has no change that was not delivered to it is not behind.
func (h *Hub) Lag() (lag uint64) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, t := range h.topics {
		for w := range t.watchers {
			if delivered := w.delivered.Load(); delivered < t.last {
				lag = max(lag, h.published.Load()-delivered)
			}
		}
	}
	return lag
}
