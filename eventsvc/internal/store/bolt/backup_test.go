package bolt_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/waittest"
)

// R17: a backup that was taken under load is exactly the state of one revision.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, MemtableLimit: 200}
	db := bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	bolttest.Create(t, db, 200, strings.Repeat("x", 1000))
	var done atomic.Bool // each write is waited for: one whose caller has gone would be in the store that Close opens again, and not before
	var writers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() {
			for i := 0; !done.Load(); i++ {
				_, err := db.Update(t.Context(), bolttest.Key(n), store.Any, func(*store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Op(1 + i%5/4), Draft: store.Draft{Value: fmt.Appendf(nil, "%d %01000d", n, i)}}, nil
				})
				if err != nil && i%5 != 4 {
					t.Error(err)
				}
			}
		})
	}
	rounds := 1
	if *storetest.Long {
		rounds = 10
	}
	for range rounds {
		revision, backup := backUp(t, db)
		dir := t.TempDir()
		report, err := bolt.Restore(t.Context(), dir, bytes.NewReader(backup), nil)
		if err != nil || report.Revision != revision {
			t.Fatalf("%+v, %v", report, err)
		}
		restored := bolttest.Open(t, bolt.Options{Dir: dir})
		bolttest.Check(t, restored)
		if got := restored.Revision(); got != report.CompactRevision || got <= revision {
			t.Errorf("restored to revision %d, reported %d, backed up %d", got, report.CompactRevision, revision)
		}
		want, got := listed(t, db, store.Query{Revision: revision}), listed(t, restored, store.Query{Revision: report.CompactRevision})
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("at %d: %s", revision, diff)
		}
		bolttest.Close(t, restored)
		if _, err := bolt.Restore(t.Context(), dir, bytes.NewReader(backup), nil); err == nil {
			t.Error("a store was restored over another")
		}
		if left, err := filepath.Glob(filepath.Join(o.Dir, "backup-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	done.Store(true)
	waittest.Join(t, &writers)
}

// backUp takes a backup, whose size must be what was said.
func backUp(t *testing.T, db *bolt.DB) (revision uint64, archive []byte) {
	t.Helper()
	snapshot, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := snapshot.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	if err := snapshot.Write(&out); err != nil || int64(out.Len()) != snapshot.Size() {
		t.Fatalf("%d bytes of %d, %v", out.Len(), snapshot.Size(), err)
	}
	return snapshot.Revision(), out.Bytes()
}

// R17: of a backup that is cut anywhere, is damaged or is something else
// nothing is restored, and nothing is left behind.
func TestBadBackupsAreRefused(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 64 << 10})
	defer bolttest.Close(t, db)
	value := strings.Repeat("x", 1000)
	bolttest.Create(t, db, 90, value)
	_, whole := backUp(t, db)
	var borders []int // between two files: nothing there says that more should follow
	files := tar.NewReader(bytes.NewReader(whole))
	for at := 0; ; {
		h, err := files.Next()
		if err != nil {
			break
		}
		at += 512 + int(h.Size+511)/512*512
		borders = append(borders, at)
	}
	if len(borders) < 3 {
		t.Fatalf("%d files, want several", len(borders))
	}
	// In every copy of a record: some are in pages that are no longer used.
	flipped := bytes.ReplaceAll(whole, []byte(value), []byte(value[1:]+"y"))
	bad := map[string][]byte{"nothing": nil, "text": []byte(strings.Repeat("no backup ", 1000)), "flipped": flipped}
	for _, n := range append(borders[:len(borders)-1], 100, 5000, len(whole)/2, borders[len(borders)-1]-600) {
		bad[fmt.Sprintf("cut at %d", n)] = whole[:n]
	}
	for name, archive := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			report, err := bolt.Restore(t.Context(), filepath.Join(parent, "store"), bytes.NewReader(archive), nil)
			if err == nil {
				t.Errorf("restored: %+v", report)
			}
			if damaged := new(store.DamagedError); name == "flipped" != errors.As(err, &damaged) {
				t.Errorf("error %v", err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Of two that restore into one directory at a time the second is told so, and
// the first is not hindered.
func TestOneRestoreAtATime(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	bolttest.Create(t, db, 20, "value")
	_, backup := backUp(t, db)
	bolttest.Close(t, db)
	dir := filepath.Join(t.TempDir(), "store")
	r, w := io.Pipe()
	first := make(chan error, 1)
	go func() {
		_, err := bolt.Restore(t.Context(), dir, r, nil)
		first <- err
	}()
	if _, err := w.Write(backup[:1000]); err != nil { // read, so that it has begun
		t.Fatal(err)
	}
	if _, err := bolt.Restore(t.Context(), dir, bytes.NewReader(backup), nil); !errors.Is(err, store.ErrInUse) {
		t.Errorf("the second: %v, want %v", err, store.ErrInUse)
	}
	_, err := w.Write(backup[1000:])
	if err := errors.Join(err, w.Close(), waittest.Within(t, first)); err != nil {
		t.Errorf("the first: %v", err)
	}
	db = bolttest.Open(t, bolt.Options{Dir: dir})
	defer bolttest.Close(t, db)
	bolttest.Check(t, db)
	if s := db.Stats(); s.Events != 20 {
		t.Errorf("%d events were restored, want 20", s.Events)
	}
}
