package mirror

import (
	"sync"

	"tidings.example/eventsvc/internal/client"
)

// knownMax is the number of events whose versions are known, which take some megabytes.
const knownMax = 40_000

// known caches which versions the target has, for the last tens of thousands of events, so that another list does not
// ask the target about events that did not change. The target is asked about events that are not in it. It is safe for
// concurrent use.
type known struct {
	mu       sync.Mutex
	versions recent[string, knownVersion] // by uid
}

type knownVersion struct {
	version string
	labels  uint64 // hash of the labels with which the copy was written; 0: none, or not known
}

func (k *known) has(uid, version string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, ok := k.versions.get(uid)
	return ok && !client.Newer(version, stored.version)
}

// sameLabels reports whether the copy at the target has the labels of the event already, or the event has none.
func (k *known) sameLabels(it *item) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, _ := k.versions.get(it.uid)
	return it.labels == 0 || it.labels == stored.labels
}

// clear forgets all.
func (k *known) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.versions.now, k.versions.old = nil, nil
}

// add notes that the target has the version of an item or a later one. Only if the item was written are the labels
// known.
func (k *known) add(it *item, written bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := knownVersion{version: it.version}
	if written {
		v.labels = it.labels
	}
	k.versions.put(it.uid, v)
}
