package index

import (
	"bytes"
	"fmt"

	"tidings.example/eventsvc/internal/store"
)

// An Iterator goes over the keys of the memtables and of the file as if they were one,
// in order. Where several have a key the newest pointer wins.
type Iterator struct {
	prefix []byte
	nodes  [2]*memnode
	stored storedKeys

	key     []byte
	pointer Pointer
	err     error // the entry of this key is damaged
}

// Iterate returns an iterator at the first key that is not less than from. It ends
// behind the keys with the prefix.
func (v View) Iterate(from, prefix string) *Iterator {
	it := &Iterator{prefix: []byte(prefix)}
	it.nodes[0] = v.tables.active.seek(from)
	if v.tables.frozen != nil {
		it.nodes[1] = v.tables.frozen.seek(from)
	}
	it.stored.seek(v.keys, []byte(from))
	it.settle()
	return it
}

// Valid reports whether the iterator is at a key.
func (it *Iterator) Valid() bool { return it.key != nil && bytes.HasPrefix(it.key, it.prefix) }

// Key returns the key. Its bytes are good as long as the view.
func (it *Iterator) Key() []byte { return it.key }

// Pointer returns the pointer of the key.
func (it *Iterator) Pointer() Pointer { return it.pointer }

// Err reports that the entry of the key is damaged: its pointer means nothing.
func (it *Iterator) Err() error { return it.err }

// settle makes the smallest key of all sources the current one. What is in a memtable is newer than the file.
func (it *Iterator) settle() {
	stored := it.stored.at()
	it.key, it.pointer, it.err = stored.key, 0, nil
	for _, n := range it.nodes {
		if n != nil && (it.key == nil || bytes.Compare(n.key, it.key) < 0) {
			it.key = n.key
		}
	}
	for _, n := range it.nodes {
		if n != nil && bytes.Equal(n.key, it.key) {
			it.pointer = max(it.pointer, Pointer(n.value.Load()))
		}
	}
	switch {
	case stored.err != nil && bytes.Equal(stored.key, it.key):
		it.err = &store.CorruptError{Reason: fmt.Sprintf("the entries in the index from %q on: %v", it.key, stored.err)}
	case it.pointer == 0:
		it.pointer = stored.pointer
	}
}

// Next moves to the next key.
func (it *Iterator) Next() {
	for i, n := range it.nodes {
		if n != nil && bytes.Equal(n.key, it.key) {
			it.nodes[i] = n.next[0].Load()
		}
	}
	if key := it.stored.at().key; key != nil && bytes.Equal(key, it.key) {
		it.stored.next()
	}
	it.settle()
}
