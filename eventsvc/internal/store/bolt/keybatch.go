package bolt

import (
	"slices"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A list looks at most so many keys ahead: batchKeys.
const (
	batchBits = 6
	batchKeys = 1 << batchBits
)

// A keyBatch goes over the keys of an iterator, some of which it has read ahead:
// their records are looked up in order of revision, which is how they lie in the
// files.
type keyBatch struct {
	source     *index.Iterator
	log        *seglog.Reader // nil: the records are not wanted
	most       int            // keys to read ahead, at most batchKeys
	prefetched []keyItem      // the first of them is the current one
	buf        []keyItem
	order      []uint64 // revision and place in buf, in the order of the lookups

	opening int // of log, in which the records were looked up
}

// keyItem is a place of a keyIterator.
type keyItem struct {
	key     []byte
	pointer index.Pointer
	record  []byte // that the pointer leads to; nil: it was not looked up
	err     error
}

func (b *keyBatch) valid() bool {
	if len(b.prefetched) == 0 {
		b.fill()
	}
	return len(b.prefetched) > 0
}

// current is the first of the keys that are left.
func (b *keyBatch) current() *keyItem {
	this := &b.prefetched[0]
	if b.log != nil && b.log.Generation != b.opening {
		this.record = nil // its page may be another's by now
	}
	return this
}

func (b *keyBatch) next() { b.prefetched = b.prefetched[1:] }

func (b *keyBatch) fill() {
	it := b.source
	if b.buf == nil {
		b.buf, b.order = make([]keyItem, 0, b.most), make([]uint64, 0, b.most)
	}
	b.buf, b.order = b.buf[:0], b.order[:0]
	for ; len(b.buf) < b.most && it.Valid(); it.Next() {
		if b.log != nil && it.Err() == nil && !it.Pointer().Deletion() {
			b.order = append(b.order, it.Pointer().Revision()<<batchBits|uint64(len(b.buf)))
		}
		b.buf = append(b.buf, keyItem{key: it.Key(), pointer: it.Pointer(), err: it.Err()})
	}
	slices.Sort(b.order)
	if b.log != nil {
		b.opening = b.log.Generation
	}
	for _, o := range b.order {
		// What is not there is looked for again when it is wanted.
		b.buf[o%batchKeys].record, _ = b.log.Seek(o >> batchBits)
	}
	b.prefetched = b.buf
}
