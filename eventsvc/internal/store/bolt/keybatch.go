package bolt

import "slices"

// A list looks at most so many keys ahead.
const batchKeys = 64

// A keyBatch goes over the keys of an iterator, some of which it has read ahead:
// their records are looked up in order of revision, which is how they lie in the
// files.
type keyBatch struct {
	source *keyIterator
	log    *logReader // nil: the records are not wanted
	most   int        // keys to read ahead
	ahead  []keyItem  // the first of them is the current one
	buf    []keyItem
}

// keyItem is a place of a keyIterator.
type keyItem struct {
	key     []byte
	pointer pointer
	err     error
}

func (b *keyBatch) valid() bool {
	if len(b.ahead) == 0 {
		b.fill()
	}
	return len(b.ahead) > 0
}

func (b *keyBatch) next() { b.ahead = b.ahead[1:] }

func (b *keyBatch) fill() {
	it := b.source
	b.buf = b.buf[:0]
	var revisions []uint64
	if b.log != nil {
		revisions = b.log.wanted[:0]
	}
	for ; len(b.buf) < b.most && it.valid(); it.next() {
		b.buf = append(b.buf, keyItem{it.key, it.pointer, it.err})
		if b.log != nil && it.err == nil && !it.pointer.deletion() {
			revisions = append(revisions, it.pointer.revision())
		}
	}
	b.ahead = b.buf
	if b.log != nil {
		slices.Sort(revisions)
		b.log.prepare(revisions)
	}
}
