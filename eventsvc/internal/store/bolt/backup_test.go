package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// R17: a backup that was taken under load is exactly the state of one revision.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, MemtableLimit: 200}
	db := open(t, o)
	defer closeDB(t, db)
	create(t, db, 200, strings.Repeat("x", 1000))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		parallel(8, func(n int) {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := db.Update(ctx, key(n), func(*store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Op(1 + i%5/4), Draft: store.Draft{Value: fmt.Appendf(nil, "%d %01000d", n, i)}}, nil
				})
				if err != nil && ctx.Err() == nil && i%5 != 4 {
					t.Error(err)
				}
			}
		})
	}()
	for range 2 {
		var backup bytes.Buffer
		revision, err := db.Backup(t.Context(), &backup)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := bolt.Restore(t.Context(), dir, bytes.NewReader(backup.Bytes())); err != nil {
			t.Fatal(err)
		}
		restored := open(t, bolt.Options{Dir: dir})
		check(t, restored)
		if restored.Revision() != revision {
			t.Errorf("restored revision %d, backed up %d", restored.Revision(), revision)
		}
		for _, at := range []uint64{revision, revision - 100} {
			want, got := listed(t, db, store.Query{Revision: at}), listed(t, restored, store.Query{Revision: at})
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("at %d: %s", at, diff)
			}
		}
		closeDB(t, restored)
		if err := bolt.Restore(t.Context(), dir, bytes.NewReader(backup.Bytes())); err == nil {
			t.Error("a store was restored over another")
		}
		cut := backup.Bytes()[:backup.Len()/2]
		if err := bolt.Restore(t.Context(), t.TempDir(), bytes.NewReader(cut)); err == nil {
			t.Error("half a backup was restored")
		}
		if left, err := filepath.Glob(filepath.Join(o.Dir, "backup-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	cancel()
	<-done
}

// Compaction on demand, of everything, while others read and write.
func TestCompactUnderLoad(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	db := open(t, bolt.Options{Dir: t.TempDir(), Now: clock.now, History: time.Minute, SegmentBytes: 128 << 10, MemtableLimit: 100})
	defer closeDB(t, db)
	create(t, db, 300, strings.Repeat("x", 1000))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		parallel(8, func(n int) {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := db.Update(ctx, key(n), count0); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if r, err := db.Get(ctx, key(100+i%200)); err != nil && ctx.Err() == nil || err == nil && len(r.Value) != 1000 && string(r.Value) != "changed" {
					t.Errorf("get: %v", err)
				}
				if _, err := db.List(ctx, store.Query{Limit: 50}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}()
	for range 5 {
		at := db.Revision()
		for db.Revision() < at+200 {
			if _, err := db.Update(t.Context(), key(299), count0); err != nil {
				t.Fatal(err)
			}
		}
		clock.add(time.Hour)
		if err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-done
	check(t, db)
	if s := db.Stats(); s.Events != 300 {
		t.Errorf("%d events, want 300", s.Events)
	}
}
