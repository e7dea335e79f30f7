package bearer

import (
	"crypto/sha256"
	"sync"
)

// remembered is a verified token: who sent it and the key that signed it.
type remembered struct {
	caller *Caller
	key    Key
}

// entryOverhead is about the memory of an entry without the texts of its caller. Those are never longer than the token.
const entryOverhead = 512

// cache remembers verified tokens in two generations; a nil cache remembers none. When the young generation has used
// half of the memory, it becomes the old one, which is dropped. A token that is found in the old generation moves to
// the young one. So tokens in use stay, and others are dropped without a timer or a list. Only valid tokens are added,
// so a caller without one cannot evict others.
type cache struct {
	mu         sync.Mutex
	half       int // bytes of a generation
	used       int // bytes of the young generation
	young, old map[[sha256.Size]byte]sized
}

type sized struct {
	remembered
	size int
}

// sumOf returns the key of a token in the cache. It is a hash, so that the token itself does not stay in memory.
func sumOf(token string) [sha256.Size]byte {
	var room [1 << 10]byte // most tokens fit, so that none of them is copied to the heap
	return sha256.Sum256(append(room[:0], token...))
}

func newCache(bytes int) *cache {
	return &cache{half: bytes / 2, young: map[[sha256.Size]byte]sized{}}
}

func (c *cache) get(sum [sha256.Size]byte) (remembered, bool) {
	if c == nil {
		return remembered{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.young[sum]; ok {
		return e.remembered, true
	}
	e, ok := c.old[sum]
	if ok {
		delete(c.old, sum)
		c.add(sum, e)
	}
	return e.remembered, ok
}

func (c *cache) put(sum [sha256.Size]byte, r remembered, tokenLength int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(sum, sized{r, entryOverhead + tokenLength})
}

func (c *cache) add(sum [sha256.Size]byte, e sized) {
	if c.used+e.size > c.half {
		c.old, c.young, c.used = c.young, map[[sha256.Size]byte]sized{}, 0
	}
	if _, replaced := c.young[sum]; !replaced {
		c.used += e.size
	}
	c.young[sum] = e
}
