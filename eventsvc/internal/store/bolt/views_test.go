package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// TestViewsAreKept: readers one after another share a transaction, which sees
// what was folded meanwhile, and closing waits for none that nobody reads in.
func TestViewsAreKept(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	head := db.segments.Load().head()
	fold := func() {
		t.Helper()
		if err := db.control(t.Context(), func() error { return db.checkpoint(nil) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		key := store.Key{Namespace: "default", Name: fmt.Sprint("e", i)}
		if _, err := db.Create(t.Context(), key, store.Draft{Value: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		fold()
		if n := head.views.waiting(); n != 0 {
			t.Fatalf("%d views are kept beyond a fold", n)
		}
		for range 3 {
			if _, err := db.Get(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if n := head.views.waiting(); n != 1 {
				t.Fatalf("%d views are kept after a read, want 1", n)
			}
		}
		if n := db.fileStats().OpenTxN; n != 0 {
			t.Errorf("%d open reads, but nobody reads", n)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestViewsEnd: a view that was begun before a write, or while there is one, or
// in which something was found wrong, is nobody else's.
func TestViewsEnd(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	head := db.segments.Load().head()
	read := func(during func() error) error {
		return db.readLog(func(r *logReader) error {
			if _, err := r.segment(0); err != nil {
				return err
			}
			return during()
		})
	}
	write := func() error { return head.setFormat(boltfile.Version) }
	wrong := errors.New("something is wrong")
	for _, tt := range []struct {
		name   string
		during func() error
		kept   int
	}{
		{"nothing", func() error { return nil }, 1},
		{"a write", write, 0},
		{"a fault", func() error { return wrong }, 0},
		{"a panic", func() error { panic("page") }, 0},
	} {
		head.views.shut()
		head.views.reopen()
		func() {
			defer func() { _ = recover() }() // a panic that is not bbolt's is passed on
			_ = read(tt.during)
		}()
		if n := head.views.waiting(); n != tt.kept {
			t.Errorf("%s: %d views are kept, want %d", tt.name, n, tt.kept)
		}
	}
	head.views.shut()
	_ = read(func() error { return nil })
	if n := head.views.waiting(); n != 0 {
		t.Errorf("%d views are kept while the file is written", n)
	}
	head.views.shut()
	head.views.reopen()
	_ = read(func() error { return nil })
	if n := head.views.waiting(); n != 0 {
		t.Errorf("%d views are kept while the file is written, of two that do the one has ended", n)
	}
	_ = read(func() error { head.views.reopen(); return nil })
	if n := head.views.waiting(); n != 0 {
		t.Errorf("%d views are kept that were begun before the last write has ended", n)
	}
	// More at once than are kept.
	var all, met sync.WaitGroup
	met.Add(2 * mostKept)
	for range 2 * mostKept {
		all.Go(func() {
			_ = read(func() error { met.Done(); met.Wait(); return nil })
		})
	}
	all.Wait()
	if n := head.views.waiting(); n != mostKept {
		t.Errorf("%d views are kept, want %d", n, mostKept)
	}
}

// TestReadersBesideRewrites: files are put in the place of others, and those
// closed, while many read in them.
func TestReadersBesideRewrites(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.SegmentBytes = 64 << 10 })
	const n, readers, rounds = 60, 4, 40
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	for i := range n {
		if _, err := db.Create(t.Context(), key(i), store.Draft{Value: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for from := range readers {
		all.Go(func() {
			for i := from; ctx.Err() == nil; i++ {
				if _, err := db.Get(t.Context(), key(i%n)); err != nil {
					t.Errorf("event %d: %v", i%n, err)
					return
				}
			}
		})
	}
	for range rounds {
		if err := db.rewrite(t.Context(), (*db.segments.Load())[0], false); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	all.Wait()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestViewOfDamagedRoot: a file whose first page is damaged is not left open for
// ever by who comes upon that.
func TestViewOfDamagedRoot(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.SegmentBytes = 24 << 10 })
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	for i := range 40 {
		if _, err := db.Create(t.Context(), key(i), store.Draft{Value: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	s := (*db.segments.Load())[0]
	s.views.shut()
	s.views.reopen()
	var root int64
	if err := s.view(func(tx *bbolt.Tx) error { root = int64(tx.Cursor().Bucket().Root()); return nil }); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 16), root*segmentPage); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Get(t.Context(), key(0)); !errors.As(err, new(*store.CorruptError)) {
		t.Errorf("an event of a damaged file: %v", err)
	}
	if n := db.fileStats().OpenTxN; n != 0 {
		t.Fatalf("%d reads are left open", n)
	}
}
