package maintenance_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/shared/waittest"
)

// Compaction on demand, of everything, while others read and write.
func TestCompactUnderLoad(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: clock.Now, History: time.Minute, SegmentBytes: 128 << 10, MemtableLimit: 100})
	defer bolttest.Close(t, db)
	bolttest.Create(t, db, 300, strings.Repeat("x", 1000))
	ctx, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for n := range 8 {
		users.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := db.Update(t.Context(), bolttest.Key(n), store.Any, bolttest.Change); err != nil { // waits, so that Close finds nothing new
					t.Error(err)
				}
				if r, err := store.Read(ctx, db, bolttest.Key(100+i%200)); err != nil && ctx.Err() == nil || err == nil && len(r.Value) != 1000 && string(r.Value) != "changed" {
					t.Errorf("get: %v", err)
				}
				if _, _, err := store.Records(ctx, db, store.Query{Limit: 50}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		at := db.Revision()
		for db.Revision() < at+200 {
			if _, err := db.Update(t.Context(), bolttest.Key(299), store.Any, bolttest.Change); err != nil {
				t.Fatal(err)
			}
		}
		clock.Add(time.Hour)
		if err := db.Compact(t.Context(), false, nil); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	waittest.Join(t, &users)
	bolttest.Check(t, db)
	if s := db.Stats(); s.Events != 300 {
		t.Errorf("%d events, want 300", s.Events)
	}
}
