package bolt

import (
	"hash/maphash"
	"sync/atomic"
)

// places finds the node of a key by its hash. Down the list every step waits
// for the memory of another node; here it is one look, most of the time. It has
// one writer and any number of readers, who take no lock. The seed keeps anybody
// from choosing names that all have one place.
type places struct {
	seed  maphash.Seed
	nodes atomic.Pointer[[]atomic.Pointer[memnode]] // as many as a power of two, at most half of them taken
}

const fewestPlaces = 1 << 8

// init makes room for the first keys.
func (p *places) init() {
	p.seed = maphash.MakeSeed()
	nodes := make([]atomic.Pointer[memnode], fewestPlaces)
	p.nodes.Store(&nodes)
}

// find returns the node of a key, nil if there is none.
func (p *places) find(key string) *memnode {
	nodes := *p.nodes.Load()
	for i := maphash.String(p.seed, key); ; i++ {
		n := nodes[i&uint64(len(nodes)-1)].Load()
		if n == nil || string(n.key) == key {
			return n
		}
	}
}

// add puts in the node of a new key, of which there are size with this one.
// Readers go on where they have begun until there is more room: what they miss
// there is newer than what they are looking for.
func (p *places) add(n *memnode, size int) {
	if 2*size > len(*p.nodes.Load()) {
		p.grow()
	}
	p.place(*p.nodes.Load(), n)
}

func (p *places) grow() {
	nodes := *p.nodes.Load()
	more := make([]atomic.Pointer[memnode], 2*len(nodes))
	for i := range nodes {
		if n := nodes[i].Load(); n != nil {
			p.place(more, n)
		}
	}
	p.nodes.Store(&more)
}

// place puts a node in the first place from that of its hash on that is free.
func (p *places) place(nodes []atomic.Pointer[memnode], n *memnode) {
	i, mask := maphash.Bytes(p.seed, n.key), uint64(len(nodes)-1)
	for nodes[i&mask].Load() != nil {
		i++
	}
	nodes[i&mask].Store(n)
}
