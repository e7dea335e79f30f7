package watch

// A topic is what the watchers of one namespace, or of all namespaces (""), have
// in common. Only a change of their topic wakes them, so a write costs nothing for
// the watchers of other namespaces.
type topic struct {
	watchers map[*Watcher]struct{}
	wakes    [groupCount]chan struct{} // replaced at each publication; nil: no watcher of the group has joined
	floor    uint64                    // the ring holds every change of the topic with a greater revision
	last     uint64                    // revision of the topic's newest change
}

// join gives a watcher its group and adds it to its topic.
func (h *Hub) join(w *Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.group, h.nextJoin = h.nextJoin, (h.nextJoin+1)%groupCount
	t := h.topics[w.query.Namespace]
	if t == nil {
		t = &topic{watchers: map[*Watcher]struct{}{}, floor: h.floor, last: h.published.Load()}
		h.topics[w.query.Namespace] = t
	}
	t.watchers[w] = struct{}{}
	if t.wakes[w.group] == nil {
		t.wakes[w.group] = make(chan struct{})
		if h.closed.Load() {
			close(t.wakes[w.group])
		}
	}
}

// touch notes a change of a topic, made by a commit that followed the revision
// before. It returns the number of watchers that the first change of a commit
// concerns, and 0 for the others of that commit.
func (h *Hub) touch(namespace string, revision, before uint64) (watchers int) {
	t := h.topics[namespace]
	if t == nil {
		return 0
	}
	if t.last <= before { // the first of this commit
		watchers = len(t.watchers)
		for i, wake := range t.wakes {
			if wake != nil {
				h.groups[i] = append(h.groups[i], wake)
				t.wakes[i] = make(chan struct{})
			}
		}
	}
	t.last = revision
	return watchers
}

// dropped notes that the ring does not hold a change for its two topics.
func (h *Hub) dropped(c *Change) {
	for _, namespace := range []string{"", c.Key.Namespace} {
		if t := h.topics[namespace]; t != nil {
			t.floor = max(t.floor, c.Revision)
		}
	}
}
