package blocks

import (
	"container/list"
	"sync"
)

// A Place is where a block is: in a file, which its user numbers, with the last revision
// that it covers.
type Place struct {
	File uint64
	Last uint64
}

// A Cache keeps inflated blocks. A block that comes in is on trial. One that is used again
// is kept for as long as there is room for it among those. So what is read once, as by a list
// of everything, does not throw out what gets use. The next block that comes in reuses the memory
// of one that was thrown out and is no longer in use. A Cache is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	blocks map[Place]*list.Element
	trial  segment
	kept   segment
	spare  *Block // for its memory, or nil
	hits   uint64
	misses uint64
}

// segment is a part of a cache, with the block that was used last in front.
type segment struct {
	list  list.List
	bytes int64
	limit int64
}

type cached struct {
	at    Place
	block *Block
	in    *segment
}

// trialShare is the part of a cache for blocks that were used once.
const trialShare = 4

// NewCache returns a Cache that keeps at most so many bytes. Blocks that it does not keep, or no
// longer keeps, and that are in use come on top.
func NewCache(bytes int64) *Cache {
	c := &Cache{blocks: map[Place]*list.Element{}}
	c.trial.limit = bytes / trialShare
	c.kept.limit = bytes - c.trial.limit
	return c
}

// Get returns a block, nil if it is not there. The caller gives the block to Done after use; until then it does not change.
func (c *Cache) Get(at Place) *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.blocks[at]
	if e == nil {
		c.misses++
		return nil
	}
	c.hits++
	b := e.Value.(*cached)
	b.block.users++
	if b.in == &c.kept {
		c.kept.list.MoveToFront(e)
		return b.block
	}
	c.remove(e)
	c.add(&c.kept, b)
	for c.kept.bytes > c.kept.limit { // they are on trial again
		last := c.kept.list.Back()
		c.remove(last)
		c.add(&c.trial, last.Value.(*cached))
	}
	c.shrink()
	return b.block
}

// Parse verifies and inflates a block that Get has not found ([Block.Parse]), and adds it unless it is larger than the room on
// trial. The caller gives the block to Done after use; until then it does not change.
func (c *Cache) Parse(at Place, key, value []byte) (*Block, error) {
	c.mu.Lock()
	b := c.spare
	c.spare = nil
	c.mu.Unlock()
	if b == nil {
		b = new(Block)
	}
	err := b.Parse(key, value)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.reuse(b)
		return nil, err
	}
	b.users = 1
	if c.blocks[at] == nil && b.Bytes() <= c.trial.limit {
		c.add(&c.trial, &cached{at: at, block: b})
		c.shrink()
	}
	return b, nil
}

// Done ends one use of a block.
func (c *Cache) Done(b *Block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.users--
	c.reuse(b)
}

func (c *Cache) add(to *segment, b *cached) {
	b.in, b.block.cached = to, true
	c.blocks[b.at] = to.list.PushFront(b)
	to.bytes += b.block.Bytes()
}

func (c *Cache) remove(e *list.Element) {
	b := e.Value.(*cached)
	b.in.list.Remove(e)
	b.in.bytes -= b.block.Bytes()
	b.block.cached = false
	delete(c.blocks, b.at)
}

// shrink removes what is on trial for longest.
func (c *Cache) shrink() {
	for c.trial.bytes > c.trial.limit {
		last := c.trial.list.Back()
		c.remove(last)
		c.reuse(last.Value.(*cached).block)
	}
}

// reuse takes the memory of a block for the next one, unless it is in use or much larger than most.
func (c *Cache) reuse(b *Block) {
	if b.users == 0 && !b.cached && b.Bytes() <= 2*fullBytes {
		c.spare = b
	}
}

// Stats says how a cache is used.
type Stats struct {
	Hits, Misses uint64
	Bytes        int64
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Hits: c.hits, Misses: c.misses, Bytes: c.trial.bytes + c.kept.bytes}
}
