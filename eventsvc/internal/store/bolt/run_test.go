package bolt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// R11: while the store runs, an event is there for its retention, and gone a
// minute later; who watches is told.
func TestExpiryIsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openQuiet(t, nil) // its retention is an hour
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- db.Run(ctx) }()
		made, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "e"}, store.Draft{Value: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		w, err := db.Watch(t.Context(), store.WatchQuery{After: made.Revision})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second) // of the bubble's time
		if _, err := store.Read(t.Context(), db, made.Key); err != nil {
			t.Errorf("a second before its time: %v", err)
		}
		time.Sleep(time.Second + time.Minute)
		if _, err := store.Read(t.Context(), db, made.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a minute after its time: %v", err)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if b, err := w.Next(soon); err != nil || len(b.Changes) != 1 || b.Changes[0].Type != store.Removed {
			t.Errorf("the watcher was told %+v, %v", b, err)
		}
		w.Close()
		cancel()
		if err := errors.Join(<-ended, db.Close()); err != nil {
			t.Error(err)
		}
	})
}
