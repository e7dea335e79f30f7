package bolt

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/storetest"
)

func openQuiet(t *testing.T, change func(*Options)) *DB {
	t.Helper()
	o := Options{Dir: t.TempDir(), Retention: time.Hour, MaxBytes: -1, MinFree: -1}
	if change != nil {
		change(&o)
	}
	db, err := OpenTest(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestOnTime: maintenance that does not run, or fails, makes the check of retention fail.
func TestOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openQuiet(t, nil)
		defer db.Close()
		if err := db.OnTime(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(maxRetentionLag + time.Second)
		if err := db.OnTime(t.Context()); err == nil || !strings.Contains(err.Error(), "5m1s ago") {
			t.Errorf("without maintenance: %v", err)
		}
		if err := db.Maintain(t.Context()); err != nil || db.OnTime(t.Context()) != nil || db.maintenance.Lag() != 0 {
			t.Errorf("after a round: %v, lag %s", err, db.maintenance.Lag())
		}
	})
}

// TestRoom: a store without room says so, and is still ready to be read.
func TestRoom(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.MinFree = 1 << 60 })
	if err := db.Room(t.Context()); err == nil || !strings.Contains(err.Error(), "free on the disk") {
		t.Errorf("a full disk: %v", err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := openQuiet(t, nil).Room(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWatchLag: a watcher that takes nothing falls behind, and is forgotten when it is closed.
func TestWatchLag(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := store.Create(t.Context(), db, store.Key{Namespace: "n", Name: name}, store.Draft{Value: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if lag := db.hub.Lag(); lag != 3 {
		t.Errorf("lag %d after three writes", lag)
	}
	if _, err := storetest.Next(t, w); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = w.Next(ended) // asks for more, so has taken what came
	if lag := db.hub.Lag(); lag != 0 {
		t.Errorf("lag %d when all is taken", lag)
	}
	w.Close()
	if db.hub.Watched("n") {
		t.Error("watched after the only watcher was closed")
	}
}

// TestFileStats: open read transactions are counted.
func TestFileStats(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	err := db.index.View(func(index.View) error {
		if n := fileStats(db).OpenTxN; n != 1 {
			t.Errorf("%d open reads, want 1", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := fileStats(db).OpenTxN; n != 0 {
		t.Errorf("%d open reads, want none", n)
	}
}
