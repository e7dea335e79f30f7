package bolt

import (
	"bytes"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// batchKeys is the most keys of a batch.
const (
	batchBits = 6
	batchKeys = 1 << batchBits
)

// A keyBatch reads the keys of an iterator in batches, and looks up the records of a batch
// in order of their revisions, which is their order in the files. It passes over keys that
// the index alone shows not to match.
type keyBatch struct {
	source   *index.Iterator
	log      *seglog.Reader
	size     int             // keys of a batch, at most batchKeys
	suffix   []byte          // of the keys that are wanted: a slash and the name; empty: of all
	revision uint64          // a version that is not newer is the one to show
	wanted   index.Revisions // of those versions, only these; nil: all
	room     int             // so many keys may be passed over still

	last  []byte    // the last key that was taken from the source
	left  []keyItem // of the batch; the first is the current one
	batch []keyItem
	order []uint64 // revision and position in batch, in the order of the lookups
	slow  bool     // the records of the batch before were on the disk
}

// slowLookup is more than a lookup in memory takes, and less than one on a disk.
const slowLookup = 20 * time.Microsecond

// keyItem is a key with what the index has of it.
type keyItem struct {
	key     []byte
	pointer index.Pointer
	at      seglog.Position // of the record that the pointer leads to, unless that is a deletion
	err     error
}

func (b *keyBatch) valid() bool {
	if len(b.left) == 0 {
		b.fill()
	}
	return len(b.left) > 0
}

// ended reports, where valid does not, whether the source has no more keys.
func (b *keyBatch) ended() bool { return !b.source.Valid() }

// current returns the current key.
func (b *keyBatch) current() *keyItem { return &b.left[0] }

func (b *keyBatch) next() { b.left = b.left[1:] }

func (b *keyBatch) fill() {
	it := b.source
	if b.batch == nil {
		b.batch, b.order = make([]keyItem, 0, b.size), make([]uint64, 0, b.size)
	}
	b.batch, b.order = b.batch[:0], b.order[:0]
	for ; len(b.batch) < b.size && it.Valid(); it.Next() {
		if b.passes(it) {
			if b.room == 0 {
				break
			}
			b.room--
			b.last = it.Key()
			continue
		}
		b.last = it.Key()
		if it.Err() == nil && !it.Pointer().Deletion() {
			b.order = append(b.order, it.Pointer().Revision()<<batchBits|uint64(len(b.batch)))
		}
		b.batch = append(b.batch, keyItem{key: it.Key(), pointer: it.Pointer(), err: it.Err()})
	}
	slices.Sort(b.order)
	b.lookUp()
	b.left = b.batch
}

// lookUp looks up the records of the batch. It prefetches them if the batch before missed the page
// cache.
func (b *keyBatch) lookUp() {
	begun := time.Now()
	if b.slow {
		revisions := make([]uint64, len(b.order))
		for i, o := range b.order {
			revisions[i] = o >> batchBits
		}
		b.log.Prefetch(revisions)
	}
	for _, o := range b.order {
		b.batch[o%batchKeys].at = b.log.Position(o >> batchBits)
	}
	b.slow = time.Since(begun) > time.Duration(len(b.order))*slowLookup
}

// passes reports whether the current key of the source is passed over. Damage is not.
func (b *keyBatch) passes(it *index.Iterator) bool {
	switch {
	case it.Err() != nil:
		return false
	case !bytes.HasSuffix(it.Key(), b.suffix):
		return true
	}
	revision := it.Pointer().Revision()
	return b.wanted != nil && revision <= b.revision && !b.wanted.Has(revision)
}
