package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/waittest"
)

// TestReadersBesideRewrites: files are put in the place of others, and those
// closed, while many read in them.
func TestReadersBesideRewrites(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.SegmentBytes = 64 << 10 })
	const n, readers, rounds = 60, 4, 8
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	for i := range n {
		if _, err := store.Create(t.Context(), db, key(i), store.Draft{Value: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for from := range readers {
		all.Go(func() {
			for i := from; ctx.Err() == nil; i++ {
				if _, err := store.Read(t.Context(), db, key(i%n)); err != nil {
					t.Errorf("event %d: %v", i%n, err)
					return
				}
			}
		})
	}
	for range rounds {
		// Something dead in it has it rewritten.
		err := db.usage.SetSegment(db.log.Segments()[0].Base, usage.SegmentAccount{Dead: 1, Counted: true})
		if err = errors.Join(err, db.Compact(t.Context(), false, nil)); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	waittest.Join(t, &all)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadOutlivesRewrite: a read that has begun goes on, once, while the file that it reads is replaced. The old file
// takes room of the limit until the read ends.
func TestReadOutlivesRewrite(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.SegmentBytes, o.MaxBytes = 64<<10, 64<<20 })
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	const n = 60
	for i := range n {
		if _, err := store.Create(t.Context(), db, key(i), store.Draft{Value: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.usage.SetSegment(db.log.Segments()[0].Base, usage.SegmentAccount{Dead: 1, Counted: true}); err != nil {
		t.Fatal(err)
	}
	first := db.log.Segments()[0]
	var names []string
	var room, unlinked int64
	_, err := db.List(t.Context(), store.Query{}, func(v *store.View) bool {
		if names = append(names, v.Name); len(names) == 1 {
			if err := db.Compact(t.Context(), true, nil); err != nil {
				t.Error(err)
			}
			room, unlinked = db.usage.DeletionRoom(), db.log.UnlinkedBytes()+db.index.UnlinkedBytes()
		}
		return true
	})
	if err != nil || len(names) != n || unlinked == 0 || db.log.Segments()[0] == first {
		t.Errorf("%d events, %d bytes are unlinked, %v", len(names), unlinked, err)
	}
	if after := db.usage.DeletionRoom(); after != room+unlinked || db.log.UnlinkedBytes() != 0 {
		t.Errorf("there is room for %d bytes, and was for %d while %d were unlinked", after, room, unlinked)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOldRevisionReadsAsLittle: what happened in a window is found at the revision of then by reading about as many
// records as in a window before the newest revision, however often the events of it have changed since.
func TestOldRevisionReadsAsLittle(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	const events, changes, window = 20, 2000, 100
	now := begin
	db := openQuiet(t, func(o *Options) { o.SegmentBytes, o.Now = 32<<10, func() time.Time { return now } })
	var old uint64
	for i := range changes {
		now = begin.Add(time.Duration(i) * time.Second)
		o := event.Occurrence{Time: now, Count: int64(i/events + 1), New: 1}
		a := event.NewAttributes([event.NumFields]string{event.Reason: "R", event.Type: "Warning"}, nil).With(o)
		_, err := db.Update(t.Context(), store.Key{Namespace: "default", Name: fmt.Sprint("e", i%events)}, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a, Value: []byte("{}")}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == window-1 {
			old = db.Revision()
		}
	}
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	reads := func(from time.Time, revision uint64) (n uint64) {
		before := db.log.Reads()
		in := store.Range{From: from, To: from.Add(window * time.Second), Revision: revision}
		shown := 0
		_, err := db.Timeline().Observed(t.Context(), store.TimeQuery{Range: in}, func(*store.View, store.Moment) bool { shown++; return true })
		if err != nil || shown != events {
			t.Errorf("%d events at revision %d, want %d, %v", shown, revision, events, err)
		}
		return db.log.Reads() - before
	}
	newest, before := reads(begin.Add((changes-window)*time.Second), 0), reads(begin, old)
	if before > newest*3/2 || newest == 0 {
		t.Errorf("%d records are read at an old revision, %d at the newest", before, newest)
	}
}

// TestViewOfDamagedRoot: a file whose first page is damaged is not left open for
// ever by who comes upon that.
func TestViewOfDamagedRoot(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.SegmentBytes = 24 << 10 })
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	for i := range 40 {
		if _, err := store.Create(t.Context(), db, key(i), store.Draft{Value: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	s := db.log.Segments()[0]
	// The file is locked, so its root is looked up in a copy.
	same := filepath.Join(t.TempDir(), "same.db")
	content, err := os.ReadFile(s.Path)
	if err == nil {
		err = os.WriteFile(same, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := bbolt.Open(same, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var root, page int64
	err = sealed.View(func(tx *bbolt.Tx) error {
		root, page = int64(tx.Cursor().Bucket().Root()), int64(sealed.Info().PageSize)
		return nil
	})
	if err = errors.Join(err, sealed.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(s.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 16), root*page); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Read(t.Context(), db, key(0)); !errors.As(err, new(*store.CorruptError)) {
		t.Errorf("an event of a damaged file: %v", err)
	}
	if n := fileStats(db).OpenTxN; n != 0 {
		t.Fatalf("%d reads are left open", n)
	}
}
