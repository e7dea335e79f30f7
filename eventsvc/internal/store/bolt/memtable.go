package bolt

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// pointer says where the newest version of an event is: its revision, and in
// the lowest bit whether that is a deletion.
type pointer uint64

func newPointer(revision uint64, deletion bool) pointer {
	p := pointer(revision << 1)
	if deletion {
		p |= 1
	}
	return p
}

func (p pointer) revision() uint64 { return uint64(p >> 1) }
func (p pointer) deletion() bool   { return p&1 == 1 }

const memtableHeight = 16

// memtable is the part of the key index that is not in the index file yet: an
// ordered skip list with one writer, the committer, and any number of readers,
// who take no lock. Entries are never removed; the whole table is dropped once
// it is merged.
type memtable struct {
	head memnode
	size int    // entries; the writer's
	last uint64 // newest revision; the writer's until the table is frozen
	live []byte // for metaLive, once frozen

	postings postings
}

type memnode struct {
	key   []byte
	value atomic.Uint64
	next  []atomic.Pointer[memnode]
}

func newMemtable() *memtable {
	return &memtable{
		head:     memnode{next: make([]atomic.Pointer[memnode], memtableHeight)},
		postings: postings{of: map[term][]uint64{}},
	}
}

// seek returns the first node whose key is not less than key. With before it
// also reports the nodes in front of that place, for put.
func (m *memtable) seek(key string, before *[memtableHeight]*memnode) *memnode {
	at := &m.head
	var next *memnode
	for level := memtableHeight - 1; level >= 0; level-- {
		for next = at.next[level].Load(); next != nil && string(next.key) < key; next = at.next[level].Load() {
			at = next
		}
		if before != nil {
			before[level] = at
		}
	}
	return next
}

func (m *memtable) get(key string) (pointer, bool) {
	if m == nil {
		return 0, false
	}
	if n := m.seek(key, nil); n != nil && string(n.key) == key {
		return pointer(n.value.Load()), true
	}
	return 0, false
}

func (m *memtable) put(key string, p pointer) {
	m.last = p.revision()
	var before [memtableHeight]*memnode
	if n := m.seek(key, &before); n != nil && string(n.key) == key {
		n.value.Store(uint64(p))
		return
	}
	// Half of the nodes have one level, a quarter two, and so on.
	height := 1 + bits.TrailingZeros32(rand.Uint32()|1<<(memtableHeight-1))
	n := &memnode{key: []byte(key), next: make([]atomic.Pointer[memnode], height)}
	n.value.Store(uint64(p))
	for level := range height {
		n.next[level].Store(before[level].next[level].Load())
		before[level].next[level].Store(n)
	}
	m.size++
}
