package bolt

// A topic is what the watchers of one namespace, or of all namespaces (""), have
// in common: only a change there wakes them, so that a write costs nothing for
// the thousands who watch elsewhere.
type topic struct {
	watchers int
	wakes    [hubGroups]chan struct{} // replaced when something is published; nil: nobody of the group has come yet
	floor    uint64                   // the ring holds every change of the topic with a greater revision
	last     uint64                   // revision of the topic's newest change
	earlier  uint64                   // of the newest of the commits before that one
	since    uint64                   // what was published before that one
}

// join makes a topic known, for a watcher of that group.
func (h *hub) join(namespace string, group int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[namespace]
	if t == nil {
		now := h.published.Load()
		t = &topic{floor: h.floor, last: now, earlier: now, since: now}
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

// leave forgets a topic that nobody is left for.
func (h *hub) leave(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[namespace]
	if t.watchers--; t.watchers == 0 {
		delete(h.topics, namespace)
	}
}

// touch notes a change of one of the topics it belongs to, which a commit after
// the revision before has made, and returns how many watchers it newly concerns.
func (h *hub) touch(namespace string, revision, before uint64) (watchers int) {
	t := h.topics[namespace]
	if t == nil {
		return 0
	}
	if t.last <= before { // the first of this commit
		t.earlier, t.since = t.last, before
		watchers = t.watchers
		for i, wake := range t.wakes {
			if wake != nil {
				h.groups[i].unheard = append(h.groups[i].unheard, wake)
				t.wakes[i] = make(chan struct{})
			}
		}
	}
	t.last = revision
	return watchers
}

// dropped notes that the ring no longer holds a change of a topic.
func (h *hub) dropped(namespace string, revision uint64) {
	if t := h.topics[namespace]; t != nil {
		t.floor = max(t.floor, revision)
	}
}

// watched reports whether anybody watches a namespace, or all.
func (h *hub) watched(namespace string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.topics[""] != nil || h.topics[namespace] != nil
}

// behind is how many revisions a watcher who has taken everything up to one is
// behind: none where what came later is not of its topic.
func (h *hub) behind(namespace string, taken uint64) uint64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := h.topics[namespace]
	switch {
	case t == nil || taken >= t.last:
		return 0
	case taken >= t.earlier:
		taken = max(taken, t.since)
	}
	return h.published.Load() - taken
}
