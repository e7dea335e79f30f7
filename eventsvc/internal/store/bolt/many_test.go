package bolt_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/waittest"
)

// R11, R14, R15: memory does not depend on how many events there are, the next
// start reads none of them, and when they have all expired at once the disk is
// free again, while others write. The long form does it with a million, and
// holds the start to its second.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	n := 5_000
	if *storetest.Long {
		n = 1_000_000
	}
	clock, dir := bolttest.NewClock(), t.TempDir()
	o := bolt.Options{Dir: dir, Now: clock.Now, Retention: time.Hour, History: time.Minute, MaxBytes: -1}
	db := bolttest.Open(t, o)
	defer func() { bolttest.Close(t, db) }()
	start := time.Now()
	draft := store.Draft{Value: make([]byte, 500), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil)}
	storetest.Parallel(t, n, func(i int) {
		if _, err := store.Create(t.Context(), db, benchKey(i), draft); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d events in %s, %d MiB of memory, %+v", n, time.Since(start).Round(time.Millisecond), heapMiB(), db.Stats())

	bolttest.Close(t, db)
	start = time.Now()
	db = bolttest.Open(t, o)
	took := time.Since(start)
	t.Logf("started in %s", took.Round(time.Millisecond))
	if s := db.Stats(); s.Events != int64(n) || *storetest.Long && took > time.Second {
		t.Errorf("started in %s with %d events", took, s.Events)
	}

	clock.Add(2 * time.Hour)
	slowest, stop := writeMeanwhile(t, db)
	start = time.Now()
	bolttest.Maintain(t, db)
	expired, peak := time.Since(start), heapMiB()
	clock.Add(2 * time.Minute) // the history of it
	bolttest.Maintain(t, db)
	bolttest.Maintain(t, db)
	stop()
	s := db.Stats()
	t.Logf("expired in %s, space back after %s, the slowest write meanwhile %s, %d MiB of memory, %+v",
		expired.Round(time.Millisecond), time.Since(start).Round(time.Millisecond), slowest(), peak, s)
	if s.Events != 1 || float64(s.FileBytes) > 1.5*float64(s.LiveBytes+s.HistoryBytes)+(64<<20) {
		t.Errorf("%+v is left", s)
	}
	if peak > 128 {
		t.Errorf("%d MiB of memory", peak)
	}
	bolttest.Check(t, db)
}

func heapMiB() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}

// writeMeanwhile writes one event again and again until stop is called.
func writeMeanwhile(t *testing.T, db *bolt.DB) (slowest func() time.Duration, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var longest time.Duration
	wg.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			if _, err := db.Update(ctx, store.Key{Namespace: "other", Name: "one"}, store.Any, bolttest.Change); err != nil && !errors.Is(err, store.ErrBusy) && ctx.Err() == nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(start))
			pause(ctx, time.Millisecond)
		}
	})
	return func() time.Duration { return longest.Round(time.Millisecond) }, func() { cancel(); waittest.Join(t, &wg) }
}
