package mirror

import (
	"sync"

	"tidings.example/eventsvc/internal/client"
)

// knownMax is how many events of each of two generations are remembered: some megabytes.
const knownMax = 20_000

// known remembers which versions have been stored, for some tens of thousands of events: listing again is then cheap,
// and the target is not asked about what did not change. What it has forgotten is asked for.
type known struct {
	mu       sync.Mutex
	now, old map[string]string // uid → version
}

func (k *known) has(uid, version string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, ok := k.now[uid]
	if !ok {
		stored, ok = k.old[uid]
	}
	return ok && !client.Newer(version, stored)
}

func (k *known) add(uid, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil || len(k.now) >= knownMax {
		k.old, k.now = k.now, make(map[string]string)
	}
	k.now[uid] = version
}
