package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// The layout of a bbolt page. Numbers have the byte order of the machine.
//
//	page id 8 | kind 2 | element count 2 | overflow page count 4 | elements
//	element of a branch: key offset 4 | key length 4 | page id 8
//	element of a leaf:   kind 4 | key offset 4 | key length 4 | value length 4
//
// Offsets count from the element. The elements of the root tree are buckets. A
// bucket's value begins with its root page id 8, or 0 if its only page is inline
// behind, and a sequence 8.
const (
	pageHead      = 16
	pageElement   = 16
	branchPage    = 1
	leafPage      = 2
	bucketElement = 1
	bucketHead    = 16
)

// native is the byte order of bbolt's pages.
var native = binary.NativeEndian

// pageWalk visits the pages of a file.
type pageWalk struct {
	file   io.ReaderAt
	size   uint64   // of a page
	pages  uint64   // number of pages in the file
	whole  bool     // read every leaf, not only branches
	seen   []uint64 // one bit for each page
	buffer []byte   // of the page that was read last
}

// Pages checks the pages of a file that tx reads: that every page has exactly one
// parent, that elements lie within their page, and that keys are in order. With
// whole it reads all leaves too; otherwise only branches, and one leaf of each
// tree. The error names the page.
//
// bbolt itself follows page ids wherever they lead. A page that leads back to a
// page above it makes a search recurse until its stack is full, which no recover
// can stop. The scan for free pages, at the opening of a file for writing, runs in
// a goroutine of its own, where a panic ends the process.
func Pages(tx *bbolt.Tx, path string, whole bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w := &pageWalk{file: file, size: uint64(tx.DB().Info().PageSize), whole: whole}
	w.pages = uint64(tx.Size()) / w.size
	w.seen = make([]uint64, w.pages/64+1)
	_, err = w.tree(uint64(tx.Cursor().Bucket().Root()), true, keySpan{})
	return err
}

// keySpan bounds the keys of a page: at least from, and less than below; a nil
// below is no bound.
type keySpan struct{ from, below []byte }

// tree checks a page and all pages below it, whose keys must lie within a span. It
// reports whether the page is a leaf. The leaves of the top tree hold the buckets.
func (w *pageWalk) tree(id uint64, top bool, span keySpan) (leaf bool, err error) {
	if err := w.mark(id, 0); err != nil {
		return false, err
	}
	page, kind, n, more, err := w.head(id)
	if err != nil {
		return false, err
	}
	for i := range min(more, w.pages) {
		if err := w.mark(id+1+i, id); err != nil {
			return false, err
		}
	}
	if kind == leafPage && !top && !w.whole {
		return true, nil
	}
	if more > 0 {
		if page, err = w.read(id, 1+more); err != nil {
			return false, err
		}
	}
	if kind == branchPage || top {
		page = bytes.Clone(page) // those below are read meanwhile
	}
	if err := checkElements(page, kind, n, span); err != nil {
		return false, fmt.Errorf("page %d: %w", id, err)
	}
	switch {
	case kind == branchPage:
		return false, w.branch(page, n, top, span)
	case top:
		return true, w.buckets(id, page, n)
	}
	return true, nil
}

// read reads a page, with others behind it. It is good until the next call.
func (w *pageWalk) read(id, pages uint64) ([]byte, error) {
	w.buffer = slices.Grow(w.buffer[:0], int(pages*w.size))[:pages*w.size]
	if _, err := w.file.ReadAt(w.buffer, int64(id*w.size)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return w.buffer, nil
}

// head reads a page of a tree, and returns what its head says: its kind, and the numbers of its elements and
// overflow pages.
func (w *pageWalk) head(id uint64) (page []byte, kind uint16, elements, overflow uint64, err error) {
	head, err := w.read(id, 1)
	if err != nil {
		return nil, 0, 0, 0, err
	}
	kind, elements, overflow = native.Uint16(head[8:]), uint64(native.Uint16(head[10:])), uint64(native.Uint32(head[12:]))
	if native.Uint64(head[:]) != id || kind != leafPage && kind != branchPage || kind == branchPage && elements == 0 {
		return nil, 0, 0, 0, fmt.Errorf("page %d is no part of a tree", id)
	}
	// The first key lies right behind the last element. Another place means that
	// elements were lost, which no search would notice.
	if place := native.Uint32(head[pageHead+4*(kind-1):]); uint64(place) != elements*pageElement {
		return nil, 0, 0, 0, fmt.Errorf("page %d has another number of elements than it says", id)
	}
	return head, kind, elements, overflow, nil
}

// checkElements reports a key or a value that is not within its page, and keys
// that do not rise within the span.
func checkElements(page []byte, kind uint16, n uint64, span keySpan) error {
	if pageHead+n*pageElement > uint64(len(page)) {
		return fmt.Errorf("there is no room for %d elements", n)
	}
	last := span.from
	for i := range n {
		key, ok := keyAt(page, kind, i)
		switch {
		case !ok:
			return fmt.Errorf("element %d ends behind it", i)
		case kind == leafPage && native.Uint32(page[pageHead+i*pageElement:]) > bucketElement:
			return fmt.Errorf("element %d has flags that do not exist", i)
		case bytes.Compare(key, last) < 0,
			i > 0 && bytes.Equal(key, last),
			span.below != nil && bytes.Compare(key, span.below) >= 0:
			return fmt.Errorf("the key of element %d is out of order", i)
		}
		last = key
	}
	return nil
}

// keyAt returns the key of an element. It reports false if that, or the value behind it, is
// not within the page.
func keyAt(page []byte, kind uint16, i uint64) (key []byte, ok bool) {
	at, value := pageHead+i*pageElement, uint64(0)
	element := page[at:]
	if kind == leafPage {
		element, value = element[4:], uint64(native.Uint32(element[12:]))
	}
	begin := at + uint64(native.Uint32(element))
	end := begin + uint64(native.Uint32(element[4:]))
	if end+value > uint64(len(page)) {
		return nil, false
	}
	return page[begin:end], true
}

// branch checks the children of a branch. All leaves of a tree have the same depth,
// so once one child is a leaf the others are too, and need not be read.
func (w *pageWalk) branch(page []byte, n uint64, top bool, span keySpan) error {
	leaves := false
	for i := range n {
		child := native.Uint64(page[pageHead+i*pageElement+8:])
		key, _ := keyAt(page, branchPage, i)
		below := span.below
		if i+1 < n {
			below, _ = keyAt(page, branchPage, i+1)
		}
		var err error
		if leaves && !top && !w.whole {
			err = w.mark(child, 0)
		} else {
			leaves, err = w.tree(child, top, keySpan{key, below})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buckets checks the trees of the buckets in a leaf of the top tree.
func (w *pageWalk) buckets(id uint64, page []byte, n uint64) error {
	for i := range n {
		element := page[pageHead+i*pageElement:]
		at := uint64(native.Uint32(element[4:])) + uint64(native.Uint32(element[8:]))
		if native.Uint32(element) != bucketElement || native.Uint32(element[12:]) < bucketHead {
			return fmt.Errorf("page %d: element %d is no bucket", id, i)
		}
		first, inline := native.Uint64(element[at:]), element[at+bucketHead:at+uint64(native.Uint32(element[12:]))]
		if first != 0 {
			if _, err := w.tree(first, false, keySpan{}); err != nil {
				return err
			}
			continue
		}
		if len(inline) < pageHead || native.Uint16(inline[8:]) != leafPage || !fits(inline) {
			return fmt.Errorf("page %d: element %d is no bucket", id, i)
		}
		// bbolt may copy such a bucket into Go memory. For an entry that ends behind the copy it would return a slice
		// of whatever lies there, and the garbage collector ends the process when it finds a pointer to free memory.
		if err := checkElements(inline, leafPage, uint64(native.Uint16(inline[10:])), keySpan{}); err != nil {
			return fmt.Errorf("page %d: the bucket of element %d: %w", id, i, err)
		}
	}
	return nil
}

// fits reports whether an inline leaf has as many elements as it says.
func fits(page []byte) bool {
	n := uint32(native.Uint16(page[10:]))
	return n == 0 || len(page) > pageHead+8 && native.Uint32(page[pageHead+4:]) == n*pageElement
}

// mark notes a reference to a page. first is the page that it continues, 0 if it continues
// none.
func (w *pageWalk) mark(id, first uint64) error {
	switch {
	case id < 2 || id >= w.pages:
		return fmt.Errorf("page %d, of %d, does not exist", id, w.pages)
	case w.seen[id/64]&(1<<(id%64)) != 0 && first != 0:
		return fmt.Errorf("page %d is part of page %d, and of another", id, first)
	case w.seen[id/64]&(1<<(id%64)) != 0:
		return fmt.Errorf("there are two ways to page %d", id)
	}
	w.seen[id/64] |= 1 << (id % 64)
	return nil
}
