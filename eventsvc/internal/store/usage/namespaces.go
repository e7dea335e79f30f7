package usage

import (
	"bytes"
	"maps"
	"strings"
	"sync"

	"tidings.example/eventsvc/internal/store/index"
)

// recentChanges is the number of changes of which [Namespaces] remembers the revision. It is
// more than two commits have, so that a reader who takes the newest revision and then asks
// for a count gets the one of that revision.
const recentChanges = 8192

// Namespaces counts the events that exist in each namespace, and in all. It is kept in
// memory, and made again from the index by each start. It is safe for concurrent use.
type Namespaces struct {
	mu     sync.Mutex
	events map[string]int64 // by namespace; "" is all of them
	recent []change         // the last ones, at most 2 × recentChanges
	since  uint64           // recent has every change behind this revision
}

// A change is a creation or a deletion.
type change struct {
	revision  uint64
	namespace string
	events    int64 // 1 or -1
}

// Count counts the events of an index; revision is its newest write. It returns the newest revision that a key has.
// Nothing may be added meanwhile.
func (n *Namespaces) Count(v index.View, revision uint64) (newest uint64, err error) {
	events := map[string]int64{}
	var prefix []byte // of the namespace, with the slash
	var here int64
	done := func() {
		if here > 0 {
			events[string(bytes.TrimSuffix(prefix, []byte("/")))] = here
			events[""] += here
		}
		here = 0
	}
	for it := v.Iterate("", ""); it.Valid(); it.Next() {
		if it.Err() != nil {
			return 0, it.Err()
		}
		if key := it.Key(); !bytes.HasPrefix(key, prefix) || prefix == nil {
			done()
			prefix = key[:bytes.IndexByte(key, '/')+1]
		}
		if newest = max(newest, it.Pointer().Revision()); !it.Pointer().Deletion() {
			here++
		}
	}
	done()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events, n.recent, n.since = events, nil, revision
	return newest, nil
}

// Add counts an event that a write has created, or deleted if events is -1. Revisions rise
// from call to call. A write is to be counted before it is published.
func (n *Namespaces) Add(namespace string, revision uint64, events int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.recent) == 2*recentChanges {
		n.since = n.recent[recentChanges-1].revision
		n.recent = n.recent[:copy(n.recent, n.recent[recentChanges:])]
	}
	if n.events == nil {
		n.events = map[string]int64{}
	}
	n.recent = append(n.recent, change{revision, namespace, events})
	n.events[""] += events
	now, known := n.events[namespace]
	switch now += events; {
	case now == 0:
		delete(n.events, namespace)
	case known:
		n.events[namespace] = now
	default:
		n.events[strings.Clone(namespace)] = now // a name may be part of a longer text
	}
}

// At returns how many events a namespace, or the store if it is empty, had at a published
// revision. It reports false if that revision is too old, and then returns the present
// number.
func (n *Namespaces) At(namespace string, revision uint64) (events int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	events = n.events[namespace]
	if revision < n.since {
		return events, false
	}
	for i := len(n.recent) - 1; i >= 0 && n.recent[i].revision > revision; i-- {
		if c := &n.recent[i]; namespace == "" || namespace == c.namespace {
			events -= c.events
		}
	}
	return events, true
}

// All returns the present numbers of all namespaces that have events.
func (n *Namespaces) All() map[string]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := maps.Clone(n.events)
	delete(all, "")
	return all
}
