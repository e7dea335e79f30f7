package index

import (
	"hash/maphash"
	"sync/atomic"
)

// positions finds the node of a key by its hash: a hash table with linear probing. Each
// step down the list waits for the memory of another node; here one look is enough most
// of the time. It has one writer and any number of readers, who take no lock. The seed
// is random, so that nobody can choose names that all have one position.
type positions struct {
	seed  maphash.Seed
	nodes atomic.Pointer[[]atomic.Pointer[memnode]] // as many as a power of two, at most half of them taken
}

const minPositions = 1 << 8

// init makes room for the first keys.
func (p *positions) init() {
	p.seed = maphash.MakeSeed()
	nodes := make([]atomic.Pointer[memnode], minPositions)
	p.nodes.Store(&nodes)
}

// find returns the node of a key, nil if there is none.
func (p *positions) find(key string) *memnode {
	nodes := *p.nodes.Load()
	for i := maphash.String(p.seed, key); ; i++ {
		n := nodes[i&uint64(len(nodes)-1)].Load()
		if n == nil || string(n.key) == key {
			return n
		}
	}
}

// add puts in the node of a new key; size is the number of keys with this one. A reader
// that has begun in a table that is then replaced misses only keys that are added
// later, which are newer than what it looks for.
func (p *positions) add(n *memnode, size int) {
	if 2*size > len(*p.nodes.Load()) {
		p.grow()
	}
	p.place(*p.nodes.Load(), n)
}

func (p *positions) grow() {
	nodes := *p.nodes.Load()
	more := make([]atomic.Pointer[memnode], 2*len(nodes))
	for i := range nodes {
		if n := nodes[i].Load(); n != nil {
			p.place(more, n)
		}
	}
	p.nodes.Store(&more)
}

// place puts a node in the first free position from that of its hash on.
func (p *positions) place(nodes []atomic.Pointer[memnode], n *memnode) {
	i, mask := maphash.Bytes(p.seed, n.key), uint64(len(nodes)-1)
	for nodes[i&mask].Load() != nil {
		i++
	}
	nodes[i&mask].Store(n)
}
