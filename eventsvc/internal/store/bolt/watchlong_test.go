package bolt_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// R6: every watcher sees every change once and in order, whatever it does:
// reads at once, reads slowly, stands still until the ring has left it behind,
// comes back again and again from where it was, or asks for a part. Bookmarks
// never promise more than was delivered.
func TestWatchersSeeEverything(t *testing.T) {
	t.Parallel()
	writes, watchers := 2000, 24
	if *storetest.Long {
		writes, watchers = 90_000, 120 // 10.8 million deliveries
	}
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), RingEntries: 512, MemtableLimit: 5000, SegmentBytes: 4 << 20})
	defer bolttest.Close(t, db)
	first := db.Revision()
	last := first + uint64(writes)
	var wg sync.WaitGroup
	var deliveries atomic.Int64
	for n := range watchers {
		wg.Go(func() {
			v := validator{t: t, db: db, kind: n % 4, next: first + 1, last: last, rnd: rand.New(rand.NewPCG(uint64(n), 1))}
			v.run()
			deliveries.Add(v.seen)
		})
	}
	storetest.Parallel(t, writes, func(i int) {
		d := store.Draft{Value: []byte("value")}
		if _, err := db.Update(t.Context(), bolttest.Key(i%997), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: d}, nil
		}); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	t.Logf("%d deliveries to %d watchers", deliveries.Load(), watchers)
	if want := int64(writes * watchers); deliveries.Load() != want {
		t.Errorf("%d deliveries, want %d", deliveries.Load(), want)
	}
	bolttest.Check(t, db)
}

// A validator watches all changes, each of which has the revision behind that
// of the one before.
type validator struct {
	t          *testing.T
	db         *bolt.DB
	kind       int // 0: at once, 1: slow, 2: stalls, 3: reconnects
	next, last uint64
	seen       int64
	rnd        *rand.Rand
}

func (v *validator) run() {
	for v.next <= v.last {
		w, err := v.db.Watch(v.t.Context(), store.WatchQuery{After: v.next - 1})
		if err != nil {
			v.t.Error(err)
			return
		}
		ok := v.read(w)
		w.Close()
		if !ok {
			return
		}
	}
}

// read reads until the end, or until it is time to connect again.
func (v *validator) read(w store.Watcher) bool {
	idle := 0
	for batches := 0; v.next <= v.last; batches++ {
		switch {
		case v.kind == 1 && batches%16 == 15:
			pause(v.t.Context(), time.Duration(v.rnd.IntN(2000))*time.Microsecond)
		case v.kind == 2 && batches%64 == 1: // until the ring is far ahead
			for at := v.db.Revision(); v.db.Revision() < min(at+2000, v.last); {
				pause(v.t.Context(), time.Millisecond)
			}
		case v.kind == 3 && batches == 8:
			return true
		}
		ctx, cancel := context.WithTimeout(v.t.Context(), 50*time.Millisecond)
		b, err := w.Next(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			v.t.Error(err)
			return false
		}
		if idle++; err == nil || v.db.Revision() < v.next {
			idle = 0
		} else if idle == 200 {
			v.t.Errorf("a watcher of kind %d was told nothing 200 times; next is %d, and the store is at %d", v.kind, v.next, v.db.Revision())
			return false
		}
		for _, d := range b.Changes {
			if d.Revision != v.next {
				v.t.Errorf("watcher of kind %d was told of %d, next is %d", v.kind, d.Revision, v.next)
				return false
			}
			v.next++
			v.seen++
		}
		if err == nil && b.Revision != v.next-1 {
			v.t.Errorf("a bookmark of %d, delivered was up to %d", b.Revision, v.next-1)
			return false
		}
	}
	return true
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
