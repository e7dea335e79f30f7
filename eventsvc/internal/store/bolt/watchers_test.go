package bolt_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// R10: watchers that never read hold up neither writers nor those who do, and
// find everything when they come back, for the log serves what the ring has lost.
func TestStalledWatchersHinderNobody(t *testing.T) {
	t.Parallel()
	writes, stalled := 3000, 200
	if *storetest.Long {
		writes, stalled = 20_000, 1000
	}
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), RingEntries: 64, SegmentBytes: 256 << 10, MemtableLimit: 500})
	defer bolttest.Close(t, db)
	watchers := make([]store.Watcher, stalled)
	for i := range watchers {
		w, err := db.Watch(t.Context(), store.WatchQuery{})
		if err != nil {
			t.Fatal(err)
		}
		watchers[i] = w
	}
	bolttest.Create(t, db, writes, "value")
	var delivered atomic.Int64
	var wg sync.WaitGroup
	for _, w := range watchers[:20] {
		wg.Go(func() {
			for next := uint64(2); next < uint64(writes)+2; {
				b, err := storetest.Next(t, w)
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range b.Changes {
					if d.Revision != next {
						t.Errorf("revision %d, want %d", d.Revision, next)
						return
					}
					next++
					delivered.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes beside %d watchers that do not read; %d deliveries to 20 of them later", writes, stalled, delivered.Load())
}

// A watcher that even the log has left behind is told so, and nothing after
// the gap.
func TestWatcherBehindTheHorizon(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: clock.Now, RingEntries: 8, History: time.Minute})
	defer bolttest.Close(t, db)
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	bolttest.Create(t, db, 50, "value")
	clock.Add(time.Hour)
	bolttest.Maintain(t, db)
	b, err := storetest.Next(t, w)
	expired, ok := err.(*store.ExpiredError) //nolint:errorlint // the interface promises the type
	if !ok || len(b.Changes) != 0 || expired.Oldest != db.Stats().Oldest {
		t.Errorf("%+v, %v; want an ExpiredError", b, err)
	}
}

// R5: what concurrent callers see of one event is as if they had come one
// after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	each := 150
	if *storetest.Long {
		each = 3000
	}
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 32 << 10, MemtableLimit: 3})
	defer bolttest.Close(t, db)
	storetest.Linearizable(t, each, db)
}
