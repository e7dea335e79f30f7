package index

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// A Pointer says where the newest version of an event is: its revision, and in the
// lowest bit whether that is a deletion. No version has the pointer 0.
type Pointer uint64

// NewPointer returns the pointer to a revision.
func NewPointer(revision uint64, deletion bool) Pointer {
	p := Pointer(revision << 1)
	if deletion {
		p |= 1
	}
	return p
}

// Revision returns the revision of the newest version.
func (p Pointer) Revision() uint64 { return uint64(p >> 1) }

// Deletion reports whether the newest version is a deletion.
func (p Pointer) Deletion() bool { return p&1 == 1 }

// Live reports whether there is a version that is not a deletion.
func (p Pointer) Live() bool { return p != 0 && !p.Deletion() }

const memtableHeight = 16

// memtable is the part of the index that is not in the file yet: an ordered skip list,
// and the positions of its nodes by their keys' hashes. It has one writer and any
// number of readers, who take no lock. Entries are never removed; the whole table is
// dropped once it is merged.
type memtable struct {
	head  memnode
	size  int    // entries; the writer's
	bytes int64  // that they take of the file at most; the writer's until the table is frozen
	last  uint64 // newest revision; the writer's until the table is frozen
	live  Live   // once frozen

	positions positions
	newest    [memtableHeight]*memnode // the last node of each level that is not behind the newest key; the writer's
}

type memnode struct {
	key   []byte
	value atomic.Uint64
	next  []atomic.Pointer[memnode]
	low   [2]atomic.Pointer[memnode] // next of the nodes with so few levels, which most have
	short [56]byte                   // key where it fits, which saves a cache miss
}

func newMemtable() *memtable {
	m := &memtable{head: memnode{next: make([]atomic.Pointer[memnode], memtableHeight)}}
	m.positions.init()
	return m
}

// seek returns the first node whose key is not less than key.
func (m *memtable) seek(key string) *memnode {
	at := &m.head
	var next *memnode
	for level := memtableHeight - 1; level >= 0; level-- {
		for next = at.next[level].Load(); next != nil && string(next.key) < key; next = at.next[level].Load() {
			at = next
		}
	}
	return next
}

func (m *memtable) get(key string) (Pointer, bool) {
	if m == nil {
		return 0, false
	}
	if n := m.positions.find(key); n != nil {
		return Pointer(n.value.Load()), true
	}
	return 0, false
}

// seekFrom is seek for put. On entry, before has the nodes in front of the key that was put
// last, and on return those in front of key. If key is greater, the search begins at these
// nodes, so that keys in ascending order, as of a collection that is deleted, are found at once.
func (m *memtable) seekFrom(before *[memtableHeight]*memnode, key string) {
	ahead := before[0] != nil && string(before[0].key) < key
	at := &m.head
	for level := memtableHeight - 1; level >= 0; level-- {
		if ahead && before[level] != &m.head && (at == &m.head || string(at.key) < string(before[level].key)) {
			at = before[level]
		}
		for next := at.next[level].Load(); next != nil && string(next.key) < key; next = at.next[level].Load() {
			at = next
		}
		before[level] = at
	}
}

func (m *memtable) put(key string, p Pointer) {
	m.last = p.Revision()
	if n := m.positions.find(key); n != nil {
		n.value.Store(uint64(p))
		return
	}
	before := &m.newest
	m.seekFrom(before, key)
	// Half of the nodes have one level, a quarter two, and so on.
	height := 1 + bits.TrailingZeros32(rand.Uint32()|1<<(memtableHeight-1))
	n := new(memnode)
	n.key = append(n.short[:0], key...)
	if n.next = n.low[:min(height, len(n.low))]; height > len(n.low) {
		n.next = make([]atomic.Pointer[memnode], height)
	}
	n.value.Store(uint64(p))
	for level := range height {
		n.next[level].Store(before[level].next[level].Load())
		before[level].next[level].Store(n)
	}
	m.size++
	m.positions.add(n, m.size)
}
