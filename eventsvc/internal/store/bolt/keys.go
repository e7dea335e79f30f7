package bolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// newest finds the newest version of an event, in the memtables or else in the
// index. Whoever reads both loads the tables before beginning the index
// transaction: what leaves a table is in the index before.
func (t *tables) newest(keys *bbolt.Bucket, joined string) (p pointer, ok bool, err error) {
	if p, ok := t.get(joined); ok {
		return p, true, nil
	}
	return getPointer(keys, []byte(joined))
}

// get finds the newest version of an event among those that are not in the
// index yet.
func (t *tables) get(joined string) (pointer, bool) {
	if p, ok := t.active.get(joined); ok {
		return p, true
	}
	return t.frozen.get(joined)
}

// A keyIterator goes over the keys of the memtables and of the index as if
// they were one, in order. Where several know a key the newest wins.
type keyIterator struct {
	prefix  []byte
	cursor  *bbolt.Cursor
	nodes   [2]*memnode
	indexed []byte // the key under the cursor
	stored  []byte // its pointer

	key     []byte
	pointer pointer
	err     error // the entry of this key is damaged
}

// newKeyIterator begins at the first key that is not less than from, and ends
// behind those with the prefix.
func newKeyIterator(t *tables, tx *bbolt.Tx, from, prefix string) *keyIterator {
	it := &keyIterator{prefix: []byte(prefix), cursor: tx.Bucket([]byte(bucketKeys)).Cursor()}
	it.nodes[0] = t.active.seek(from)
	if t.frozen != nil {
		it.nodes[1] = t.frozen.seek(from)
	}
	it.indexed, it.stored = it.cursor.Seek([]byte(from))
	it.settle()
	return it
}

// keyRange returns where the keys of a query begin and what they begin with.
func keyRange(q *store.Query) (from, prefix string) {
	if q.Namespace != "" {
		prefix = q.Namespace + "/"
		if q.Name != "" {
			prefix += q.Name
		}
	}
	if q.After != (store.Key{}) {
		return max(prefix, q.After.String()+"\x00"), prefix
	}
	return prefix, prefix
}

func (it *keyIterator) valid() bool { return it.key != nil && bytes.HasPrefix(it.key, it.prefix) }

// settle makes the smallest key of all sources the current one.
func (it *keyIterator) settle() {
	it.key, it.pointer, it.err = it.indexed, 0, nil
	for _, n := range it.nodes {
		if n != nil && (it.key == nil || bytes.Compare(n.key, it.key) < 0) {
			it.key = n.key
		}
	}
	for _, n := range it.nodes {
		if n != nil && bytes.Equal(n.key, it.key) {
			it.pointer = max(it.pointer, pointer(n.value.Load()))
		}
	}
	// What is in a memtable is newer than the index.
	if it.pointer == 0 && it.key != nil {
		if it.pointer, it.err = parsePointer(it.indexed, it.stored); it.err != nil {
			it.err = &store.CorruptError{Reason: fmt.Sprintf("its entry in the index, %q: %v", it.key, it.err)}
		}
	}
}

func (it *keyIterator) next() {
	for i, n := range it.nodes {
		if n != nil && bytes.Equal(n.key, it.key) {
			it.nodes[i] = n.next[0].Load()
		}
	}
	if bytes.Equal(it.indexed, it.key) {
		it.indexed, it.stored = it.cursor.Next()
	}
	it.settle()
}
