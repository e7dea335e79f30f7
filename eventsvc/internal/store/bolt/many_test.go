package bolt_test

import (
	"context"
	"errors"
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

// R14, R15: when all events have expired at once the disk is free again, while others write. The long form does it with
// a million. [BenchmarkMillion] measures memory and starts.
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
	draft := store.Draft{Value: make([]byte, 500), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil)}
	storetest.Parallel(t, n, func(i int) {
		if _, err := store.Create(t.Context(), db, benchKey(i), draft); err != nil {
			t.Error(err)
		}
	})
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	if s := db.Stats(); s.Events != int64(n) {
		t.Errorf("%d events after a start", s.Events)
	}

	clock.Add(2 * time.Hour)
	stop := writeMeanwhile(t, db)
	bolttest.Maintain(t, db)
	clock.Add(2 * time.Minute) // the history of it
	bolttest.Maintain(t, db)
	bolttest.Maintain(t, db)
	stop()
	s := db.Stats()
	if s.Events != 1 || float64(s.FileBytes) > 1.5*float64(s.LiveBytes+s.HistoryBytes)+(64<<20) {
		t.Errorf("%+v is left", s)
	}
	bolttest.Check(t, db)
}

// writeMeanwhile writes one event again and again until stop is called.
func writeMeanwhile(t *testing.T, db *bolt.DB) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := db.Update(t.Context(), store.Key{Namespace: "other", Name: "one"}, store.Any, bolttest.Change); err != nil && !errors.Is(err, store.ErrBusy) {
				t.Error(err)
			}
			pause(ctx, time.Millisecond)
		}
	})
	return func() { cancel(); waittest.Join(t, &wg) }
}
