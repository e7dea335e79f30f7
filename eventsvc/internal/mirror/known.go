package mirror

import (
	"sync"

	"tidings.example/eventsvc/internal/client"
)

// knownMax is the number of events whose versions are known, which take some megabytes.
const knownMax = 40_000

// known caches which versions the target has, for the last tens of thousands of events, so that another list does not ask the
// target about events that did not change. The target is asked about events that are not in it. It is safe for concurrent use.
type known struct {
	mu       sync.Mutex
	versions recent[string, string] // by uid
}

func (k *known) has(uid, version string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, ok := k.versions.get(uid)
	return ok && !client.Newer(version, stored)
}

func (k *known) add(uid, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.versions.put(uid, version)
}
