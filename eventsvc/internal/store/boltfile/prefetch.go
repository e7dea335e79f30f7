package boltfile

import (
	"bytes"
	"os"
	"sort"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
)

// Prefetch asks the kernel to read the leaves in which keys of a bucket are, without waiting
// for it. A cursor waits for each leaf before it asks for the next, and a disk reads many in
// the time of a few. Only branch pages are read here. A page that is no branch is left to
// the cursor, and so is every failure.
func Prefetch(tx *bbolt.Tx, path string, bucket []byte, keys [][]byte) {
	root := uint64(tx.Bucket(bucket).Root())
	if root == 0 { // the bucket is inline
		return
	}
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	b := branches{file: file, size: int64(tx.DB().Info().PageSize), pages: map[uint64][]byte{}}
	levels := b.height(root)
	for _, key := range keys {
		if id, ok := b.leaf(root, levels, key); ok {
			// Two pages, because a record may be longer than one.
			disk.Prefetch(file, int64(id)*b.size, 2*b.size)
		}
	}
}

// maxHeight is more than the height of any tree.
const maxHeight = 16

// branches reads branch pages, each once.
type branches struct {
	file  *os.File
	size  int64
	pages map[uint64][]byte
}

// height returns the number of levels of branch pages of a tree, as its first pages show.
func (b *branches) height(root uint64) (levels int) {
	for id, ok := b.child(root, nil); ok && levels < maxHeight; id, ok = b.child(id, nil) {
		levels++
	}
	return levels
}

// leaf returns the leaf page that has a key. It does not read it.
func (b *branches) leaf(root uint64, levels int, key []byte) (id uint64, ok bool) {
	id, ok = root, levels > 0
	for level := 0; level < levels && ok; level++ {
		id, ok = b.child(id, key)
	}
	return id, ok
}

// child returns the page below a branch page that has a key, or the first page if key is
// nil. It reports false if the page is no branch.
func (b *branches) child(id uint64, key []byte) (uint64, bool) {
	page, known := b.pages[id]
	if !known {
		page = make([]byte, b.size)
		if _, err := b.file.ReadAt(page, int64(id)*b.size); err != nil {
			return 0, false
		}
		b.pages[id] = page
	}
	n := int(native.Uint16(page[10:]))
	if native.Uint16(page[8:]) != branchPage || n == 0 || pageHead+n*pageElement > len(page) {
		return 0, false
	}
	damaged := false
	i := sort.Search(n, func(i int) bool {
		element := page[pageHead+i*pageElement:]
		from, length := uint64(native.Uint32(element)), uint64(native.Uint32(element[4:]))
		if from+length > uint64(len(element)) {
			damaged = true
			return true
		}
		return bytes.Compare(element[from:from+length], key) > 0
	})
	return native.Uint64(page[pageHead+max(i-1, 0)*pageElement+8:]), !damaged
}
