//go:build linux

package powercut

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A model is what a data directory must have: what was there when it was last
// verified, and what was requested since then.
type model struct {
	revision uint64            // the last verified one
	state    map[string]change // the newest version of each event at that revision
	history  []change          // changes that were verified, up to that revision, as far as they are kept
	from     uint64            // the revision that the history begins after

	mu        sync.Mutex
	requests  map[string][]request // by key, in the order in which they were answered
	watched   []change             // told by watches
	newest    uint64               // revision that anybody was told of
	confirmed int64                // acknowledged requests
}

// A request is a change that a client has asked for.
type request struct {
	change
	acknowledged bool // otherwise it has happened or not
}

func newModel() *model {
	return &model{revision: 1, from: 1, state: map[string]change{}, requests: map[string][]request{}} // the first change is 2
}

// with returns the model with one more request, and leaves this one as it is.
func (m *model) with(r request) *model {
	other := &model{
		revision: m.revision, state: m.state, history: m.history, from: m.from,
		requests: maps.Clone(m.requests), watched: m.watched, newest: m.newest, confirmed: m.confirmed,
	}
	other.note(r)
	return other
}

// note adds a request to the model: one that was answered, or one that will
// never be answered.
func (m *model) note(r request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[r.key] = append(m.requests[r.key], r)
	if r.acknowledged {
		m.newest = max(m.newest, r.revision)
		m.confirmed++
	}
}

// told adds a change that a watch has delivered. It must survive a cut like an
// acknowledged one.
func (m *model) told(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = append(m.watched, c)
	m.newest = max(m.newest, c.revision)
}

// last returns the newest change of an event that was acknowledged.
func (m *model) last(key string) change {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range slices.Backward(m.requests[key]) {
		if r.acknowledged {
			return r.change
		}
	}
	return m.state[key]
}

// seen is what a service shows after a cut.
type seen struct {
	list     []change
	revision uint64   // of the list
	from     uint64   // the revision that the watch begins after
	watch    []change // changes up to the revision of the list
	gone     bool     // the watch was refused: the history is no longer kept
}

// verify compares what a service shows with the model. It returns the model for
// the time from then on. It does not change m, because one moment can have
// several outcomes.
func (m *model) verify(s seen, mayBeGone func(change) bool) (next *model, wrong []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next = newModel()
	next.revision, next.from, next.newest, next.confirmed = s.revision, s.revision, max(m.newest, s.revision), m.confirmed
	next.state, wrong = newest(s.list, s.revision)
	if s.gone {
		return next, append(wrong, m.compareList(next.state, mayBeGone)...)
	}
	at, _ := slices.BinarySearchFunc(m.history, s.from+1, func(c change, revision uint64) int { return int(c.revision) - int(revision) })
	old := m.history[at:]
	if len(s.watch) < len(old) || !slices.Equal(s.watch[:len(old)], old) {
		return next, append(wrong, fmt.Sprintf("a watch from %d tells another history than before: %s", s.from, difference(s.watch, old)))
	}
	fresh := s.watch[len(old):]
	state, problems := m.explain(fresh, mayBeGone)
	wrong = append(wrong, problems...)
	for _, key := range slices.Sorted(maps.Keys(union(state, next.state))) {
		if state[key] != next.state[key] {
			wrong = append(wrong, fmt.Sprintf("a list and the watch up to its revision differ: %v, %v", next.state[key], state[key]))
		}
	}
	happened := map[uint64]change{}
	for _, c := range fresh {
		happened[c.revision] = c
	}
	for _, c := range m.watched {
		if happened[c.revision] != c {
			wrong = append(wrong, fmt.Sprintf("LOST: a watch told %v before the cut", c))
		}
	}
	next.from, next.history = m.from, append(slices.Clip(m.history), fresh...)
	return next, wrong
}

func union(a, b map[string]change) map[string]change {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// newest returns a list by key.
func newest(list []change, revision uint64) (state map[string]change, wrong []string) {
	state = map[string]change{}
	for _, c := range list {
		if _, twice := state[c.key]; twice || c.revision > revision {
			wrong = append(wrong, fmt.Sprintf("a list of revision %d has %v, which it has already or cannot have yet", revision, c))
		}
		state[c.key] = c
	}
	return state, wrong
}

func difference(got, want []change) string {
	for i, c := range want {
		if i >= len(got) {
			return fmt.Sprintf("it ends before %v", c)
		}
		if got[i] != c {
			return fmt.Sprintf("%v instead of %v", got[i], c)
		}
	}
	return ""
}

// explain finds for each change after the last verification the request that it
// comes from, and the requests that were acknowledged and have changed nothing.
func (m *model) explain(fresh []change, mayBeGone func(change) bool) (state map[string]change, wrong []string) {
	state = maps.Clone(m.state)
	left := map[string][]request{}
	for key, requests := range m.requests {
		left[key] = slices.Clone(requests)
	}
	last := m.revision
	for _, c := range fresh {
		if c.revision <= last {
			wrong = append(wrong, fmt.Sprintf("a watch tells %v after %d", c, last))
		}
		last = max(last, c.revision)
		before, was := state[c.key]
		i := cause(left[c.key], c)
		switch {
		case c.deleted && !was:
			wrong = append(wrong, fmt.Sprintf("a watch tells %v, which was not there", c))
		case i >= 0:
			left[c.key] = slices.Delete(left[c.key], i, i+1)
		case !c.deleted || !mayBeGone(before):
			wrong = append(wrong, fmt.Sprintf("a watch tells %v, which nobody has asked for; before: %v", c, before))
		}
		if state[c.key] = c; c.deleted {
			delete(state, c.key)
		}
	}
	for key, requests := range left {
		for _, r := range requests {
			if r.acknowledged {
				wrong = append(wrong, fmt.Sprintf("LOST: a watch from %d does not tell an acknowledged change of %s: %v", m.revision, key, r.change))
			}
		}
	}
	return state, wrong
}

// cause returns the index of the request that a change comes from: the next that
// was acknowledged, or one without an answer. It returns -1 if there is none.
func cause(requests []request, c change) int {
	i := slices.IndexFunc(requests, func(r request) bool { return r.acknowledged || r.isFor(c) })
	if i < 0 || requests[i].isFor(c) {
		return i
	}
	return slices.IndexFunc(requests, func(r request) bool { return !r.acknowledged && r.isFor(c) })
}

// isFor reports whether a change can come from the request.
func (r *request) isFor(c change) bool {
	if r.deleted || c.deleted {
		return r.deleted == c.deleted
	}
	return r.request == c.request && r.sum == c.sum && (!r.acknowledged || r.revision == c.revision)
}

// leaves reports whether a list can be as it is after the request: with c as
// its event, or, if is is false, without it.
func (r *request) leaves(c change, is bool, mayBeGone func(change) bool) bool {
	switch {
	case r.deleted:
		return !is
	case is:
		return r.isFor(c)
	}
	return mayBeGone(r.change)
}

// compareList compares only a list with the model, for the case that the
// service no longer keeps the history.
func (m *model) compareList(state map[string]change, mayBeGone func(change) bool) (wrong []string) {
	keys := union(state, m.state)
	for key := range m.requests {
		keys[key] = change{}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		want, there := m.state[key]
		c, is := state[key]
		right := is == there && c == want || !is && there && mayBeGone(want)
		for _, r := range m.requests[key] {
			explained := r.leaves(c, is, mayBeGone)
			if right = explained || !r.acknowledged && right; r.acknowledged {
				want = r.change
			}
		}
		if !right {
			wrong = append(wrong, fmt.Sprintf("LOST: a list has %v; acknowledged: %v", c, want))
		}
	}
	return wrong
}
