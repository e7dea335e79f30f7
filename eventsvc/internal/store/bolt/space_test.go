package bolt_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// fillUp creates events until the store refuses, and returns how many it took.
func fillUp(t *testing.T, db *bolt.DB, prefix string, most int) int {
	t.Helper()
	for i := range most {
		k := bolttest.Key(i)
		k.Name = prefix + k.Name
		_, err := store.Create(t.Context(), db, k, store.Draft{Value: []byte(strings.Repeat("x", 20000))})
		if errors.Is(err, store.ErrFull) {
			return i
		}
		if err != nil {
			t.Fatalf("event %d: %v, want ErrFull in the end", i, err)
		}
	}
	return most
}

// R12: a full disk refuses what takes room, and nothing else, and the store
// comes back by itself when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, minFree := range map[string]int64{"with room kept back": 4 << 20, "to the last byte": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mountSmall(t, dir, "24m")
			ballast := dir + "/ballast"
			if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			db := bolttest.Open(t, bolt.Options{Dir: dir, MinFree: minFree, MaxBytes: -1, SegmentBytes: 1 << 20})
			defer func() { bolttest.Close(t, db) }()
			w, err := db.Watch(t.Context(), store.WatchQuery{})
			if err != nil {
				t.Fatal(err)
			}
			n := fillUp(t, db, "a", 2000)
			if n < 50 || n == 2000 {
				t.Fatalf("full after %d events", n)
			}
			records, page, err := store.Records(t.Context(), db, store.Query{Limit: 1, Count: true})
			if err != nil || page.Remaining != int64(n-1) {
				t.Errorf("list on a full disk: %d remaining, %v", page.Remaining, err)
			}
			if minFree > 0 {
				if _, err := db.Update(t.Context(), records[0].Key, store.Any, bolttest.Remove); err != nil {
					t.Errorf("delete on a full disk: %v", err)
				}
				n--
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			more := fillUp(t, db, "b", 20)
			if more != 20 {
				t.Errorf("%d events fit after room was made, want 20", more)
			}
			if s := db.Stats(); s.Events != int64(n+more) {
				t.Errorf("%d events, want %d", s.Events, n+more)
			}
			for told := 0; told < n+more; {
				b, err := storetest.Next(t, w)
				if err != nil {
					t.Fatal(err)
				}
				told += len(b.Changes)
			}
			bolttest.Check(t, db)
		})
	}
}

// R11, R12: on a full disk old events expire although the room that is kept back
// would not do for all their deletions at once, and their room comes back
// before their history is over.
func TestExpiryOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), bolttest.NewClock()
	size, kept, memtable := "6m", int64(1<<20), 2000
	if *storetest.Long {
		size, kept, memtable = "20m", 4<<20, 4000
	}
	mountSmall(t, dir, size)
	db := bolttest.Open(t, bolt.Options{
		Dir: dir, Now: clock.Now, Retention: time.Hour, MinFree: kept, MaxBytes: -1, SegmentBytes: kept / 4, MemtableLimit: memtable,
	})
	defer func() { bolttest.Close(t, db) }()
	const most = 400_000
	value := make([]byte, 60)
	var created, refused atomic.Int64
	storetest.Parallel(t, most, func(i int) {
		if refused.Load() > 500 {
			return
		}
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), store.Draft{Value: value}); err == nil {
			created.Add(1)
		} else if refused.Add(1); !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
	})
	deletions := 66 * created.Load() // bytes at least
	if created.Load() == most || deletions < kept {
		t.Fatalf("%d events fit, the test wants a full disk and deletions that do not fit at once", created.Load())
	}
	clock.Add(2 * time.Hour)
	for round := 0; db.Stats().Events > 0; round++ {
		if err := db.Maintain(t.Context()); err != nil && round > 10 {
			t.Fatalf("%v: %+v", err, db.Stats())
		}
	}
	bolttest.Check(t, db)
	if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "new"}, store.Draft{Value: []byte("new")}); err != nil {
		t.Errorf("after everything old is gone: %v", err)
	}
}

// TestDefaultLimit: without a limit in the settings, the store may take 80 % of
// the free space and of what it takes already, and at most 8 GiB.
func TestDefaultLimit(t *testing.T) {
	t.Parallel()
	limit := func(t *testing.T, dir string) float64 {
		t.Helper()
		r := prometheus.NewRegistry()
		db := bolttest.Open(t, bolt.Options{Dir: dir, MinFree: -1, SegmentBytes: 1 << 20, Registry: r})
		defer bolttest.Close(t, db)
		if _, err := store.Create(t.Context(), db, bolttest.Key(0), store.Draft{Value: make([]byte, 2<<20)}); err != nil && !errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
		return bolttest.Gauge(t, r, "store_max_bytes")
	}
	if got := limit(t, t.TempDir()); got > 8<<30 {
		t.Errorf("the limit is %v bytes, want 8 GiB at most", got)
	}
	dir := t.TempDir()
	mountSmall(t, dir, "40m")
	for _, start := range []string{"first", "second"} {
		if got, want := limit(t, dir), 0.8*float64(40<<20); got < 0.97*want || got > want {
			t.Errorf("%s start on a disk of 40 MiB: the limit is %v bytes, want about %v", start, got, want)
		}
	}
}
