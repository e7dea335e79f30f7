package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/shared/waittest"
)

// takeTheRest has another program take all that is left on the disk.
func takeTheRest(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "others"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// R11, R12: another program takes the last bytes of the disk and keeps them. Retention makes room all the same, whether
// the service runs on or is started again, and whatever waits to be merged. Everything can be read before.
func TestDiskThatStaysFull(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restarts bool // on the full disk
		memtable int  // keys that wait to be merged
	}{"runs on": {false, 0}, "is started again": {true, 0}, "with small merges": {false, 100}, "is started again with small merges": {true, 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mount, clock := t.TempDir(), bolttest.NewClock()
			mountSmall(t, mount, "40m")
			o := bolt.Options{
				Dir: filepath.Join(mount, "store"), Now: clock.Now, Retention: time.Hour, History: time.Minute, MinFree: 8 << 20, MaxBytes: -1,
				SegmentBytes: 1 << 20, MemtableLimit: c.memtable,
			}
			db := bolttest.Open(t, o)
			bolttest.Maintain(t, db)
			value := []byte(strings.Repeat("x", 3000))
			bolttest.Fill(t, db, 4000, func(i int) (store.Key, store.Draft) { return bolttest.Key(i), store.Draft{Value: value} })
			for i := range 500 {
				if _, err := db.Update(t.Context(), bolttest.Key(i*3), store.Any, bolttest.Change); err != nil {
					t.Fatal(err)
				}
			}
			takeTheRest(t, mount)
			if c.restarts {
				if err := db.AwaitCheckpoint(); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil && !strings.Contains(err.Error(), "no space") {
					t.Fatal(err)
				}
				takeTheRest(t, mount)
				db = bolttest.Open(t, o)
			}
			defer func() { bolttest.Close(t, db) }()
			if page, err := db.List(t.Context(), store.Query{Limit: 1, Count: true}, func(*store.View) bool { return true }); err != nil || page.Remaining != 3999 {
				t.Errorf("on a full disk: %+v, %v", page, err)
			}
			if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "new"}, store.Draft{Value: value}); !errors.Is(err, store.ErrFull) {
				t.Errorf("an event on a full disk: %v", err)
			}
			bytes := func() int64 {
				spare, _ := os.Stat(filepath.Join(o.Dir, "spare"))
				n := bolttest.DirBytes(t, o.Dir)
				if spare != nil {
					n -= spare.Size()
				}
				return n
			}
			before := bytes()
			clock.Add(2 * time.Hour)
			var failed error
			for round := 0; db.Stats().Events > 0 && round < 40; round++ {
				failed = db.Maintain(t.Context())
			}
			clock.Add(time.Hour) // the history of the deletions is over
			for range 5 {
				failed = db.Maintain(t.Context())
			}
			if s := db.Stats(); s.Events > 0 || s.DeadBytes+s.HistoryBytes > before/4 || failed != nil {
				t.Errorf("retention has left %d events, %d bytes of history and %d dead ones: %v", s.Events, s.HistoryBytes, s.DeadBytes, failed)
			}
			waittest.Becomes(t, func() error {
				if after := bytes(); after > before/2 {
					return fmt.Errorf("the files take %d bytes, before retention %d", after, before)
				}
				return nil
			})
			if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "new"}, store.Draft{Value: value}); err != nil {
				t.Errorf("an event after retention has made room: %v", err)
			}
			bolttest.Check(t, db)
		})
	}
}
