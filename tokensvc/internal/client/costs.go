package client

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
)

// costs says what a failed attempt costs of an id that has no BCrypt hash to compare with: what it costs of a
// registered id, which the id itself chooses by a keyed hash. So the time of an answer depends on the id alone, unknown
// ids take each time as often as registered ones do, and one expensive hash makes few of them expensive. It learns the
// registered ids from look-ups.
type costs struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen []cost // in the order of hashes
}

// cost is the work of a registered id, in units of a compare with [MinCost].
type cost struct {
	hash uint64
	work int
}

// maxCosts is how many ids are remembered: 256 KiB. More are not needed, because they are a sample.
const maxCosts = 1 << 14

func newCosts() *costs { return &costs{seed: maphash.MakeSeed()} }

func (c *costs) find(id string) (hash uint64, at int, found bool) {
	hash = maphash.String(c.seed, id)
	at, found = slices.BinarySearchFunc(c.seen, hash, func(in cost, hash uint64) int { return cmp.Compare(in.hash, hash) })
	return hash, at, found
}

// see remembers the work of a registered id.
func (c *costs) see(id string, work int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch hash, at, found := c.find(id); {
	case found:
		c.seen[at].work = work
	case len(c.seen) < maxCosts:
		c.seen = slices.Insert(c.seen, at, cost{hash, work})
	}
}

// of returns the work of the registered id whose hash is the next one, which may be that of the id itself.
func (c *costs) of(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) == 0 {
		return 1
	}
	_, at, _ := c.find(id)
	return c.seen[at%len(c.seen)].work
}
