package seglog

import (
	"container/list"
	"sync"
)

// A blockKey names a block of the cache: its file, which its user numbers, with the last revision
// that it covers.
type blockKey struct {
	File uint64
	Last uint64
}

// A blockCache keeps inflated blocks. A block that comes in is on trial. One that is used again
// is kept for as long as there is room for it among those. So what is read once, as by a list
// of everything, does not throw out what gets use. The next block that comes in reuses the memory
// of one that was thrown out and is no longer in use. It is safe for concurrent use.
type blockCache struct {
	mu     sync.Mutex
	blocks map[blockKey]*list.Element
	trial  lruPart
	kept   lruPart
	spare  *inflatedBlock // for its memory, or nil
	hits   uint64
	misses uint64
}

// lruPart is a part of a cache, with the block that was used last in front.
type lruPart struct {
	list  list.List
	bytes int64
	limit int64
}

type cachedBlock struct {
	at    blockKey
	block *inflatedBlock
	in    *lruPart
}

// trialShare is the part of a cache for blocks that were used once. The events of an object are in up to a hundred
// blocks: if they do not all stay until the same is asked again, none of them is found.
const trialShare = 2

// newBlockCache returns a blockCache that keeps at most so many bytes. Blocks in use are not counted.
func newBlockCache(bytes int64) *blockCache {
	c := &blockCache{blocks: map[blockKey]*list.Element{}}
	c.trial.limit = bytes / trialShare
	c.kept.limit = bytes - c.trial.limit
	return c
}

// Get returns a block, nil if it is not there. It keeps the block for longer, unless this use is part of a read of
// everything (once). The caller gives the block to Done after use; until then it does not change.
func (c *blockCache) Get(at blockKey, once bool) *inflatedBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.blocks[at]
	if e == nil {
		c.misses++
		return nil
	}
	c.hits++
	b := e.Value.(*cachedBlock)
	b.block.users++
	if once {
		return b.block
	}
	if b.in == &c.kept {
		c.kept.list.MoveToFront(e)
		return b.block
	}
	c.remove(e)
	c.add(&c.kept, b)
	for c.kept.bytes > c.kept.limit { // they are on trial again
		last := c.kept.list.Back()
		c.remove(last)
		c.add(&c.trial, last.Value.(*cachedBlock))
	}
	c.shrink()
	return b.block
}

// Parse verifies and inflates a block that Get has not found ([inflatedBlock.Parse]), and adds it unless it is larger
// than the room on trial. The caller gives the block to Done after use; until then it does not change.
func (c *blockCache) Parse(at blockKey, key, value []byte) (*inflatedBlock, error) {
	c.mu.Lock()
	b := c.spare
	c.spare = nil
	c.mu.Unlock()
	if b == nil {
		b = new(inflatedBlock)
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
		c.add(&c.trial, &cachedBlock{at: at, block: b})
		c.shrink()
	}
	return b, nil
}

// Done ends one use of a block.
func (c *blockCache) Done(b *inflatedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.users--
	c.reuse(b)
}

func (c *blockCache) add(to *lruPart, b *cachedBlock) {
	b.in, b.block.cached = to, true
	c.blocks[b.at] = to.list.PushFront(b)
	to.bytes += b.block.Bytes()
}

func (c *blockCache) remove(e *list.Element) {
	b := e.Value.(*cachedBlock)
	b.in.list.Remove(e)
	b.in.bytes -= b.block.Bytes()
	b.block.cached = false
	delete(c.blocks, b.at)
}

// shrink removes what is on trial for longest.
func (c *blockCache) shrink() {
	for c.trial.bytes > c.trial.limit {
		last := c.trial.list.Back()
		c.remove(last)
		c.reuse(last.Value.(*cachedBlock).block)
	}
}

// reuse takes the memory of a block for the next one, unless it is in use or much larger than most.
func (c *blockCache) reuse(b *inflatedBlock) {
	if b.users == 0 && !b.cached && b.Bytes() <= 2*fullBlockBytes {
		c.spare = b
	}
}

// CacheStats says how a cache is used.
type CacheStats struct {
	Hits, Misses uint64
	Bytes        int64
}

// Stats returns the present figures.
func (c *blockCache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Hits: c.hits, Misses: c.misses, Bytes: c.trial.bytes + c.kept.bytes}
}
