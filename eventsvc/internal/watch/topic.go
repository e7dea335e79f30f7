package watch

// A topic is what the watchers of one namespace, or of all namespaces (""), have
// in common. Only a change of their topic wakes them, so a write costs nothing for
// the watchers of other namespaces.
type topic struct {
	watchers int
	wakes    [groupCount]chan struct{} // replaced at each publication; nil: no watcher of the group has joined
	floor    uint64                    // the ring holds every change of the topic with a greater revision
	last     uint64                    // revision of the topic's newest change
}

// join adds a watcher to a topic.
func (h *Hub) join(namespace string, group int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[namespace]
	if t == nil {
		t = &topic{floor: h.floor, last: h.published.Load()}
		h.topics[namespace] = t
	}
	t.watchers++
	if t.wakes[group] == nil {
		t.wakes[group] = make(chan struct{})
		if h.closed {
			close(t.wakes[group])
		}
	}
}

// leave removes a watcher from a topic, and a topic without watchers from the hub.
func (h *Hub) leave(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[namespace]
	if t.watchers--; t.watchers == 0 {
		delete(h.topics, namespace)
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
		watchers = t.watchers
		for i, wake := range t.wakes {
			if wake != nil {
				h.groups[i].pending = append(h.groups[i].pending, wake)
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

// behind returns by how many revisions a watcher that has taken every change up
// to one is behind.
func (h *Hub) behind(namespace string, taken uint64) uint64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[namespace]; t == nil || taken >= t.last {
		return 0
	}
	return h.published.Load() - taken
}
