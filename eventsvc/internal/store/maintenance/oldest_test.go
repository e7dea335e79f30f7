package maintenance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// TestLimit: the oldest events make room for new ones when the limit is reached. Between two rounds of maintenance come
// fewer bytes than are left for the next events.
func TestLimit(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: bolttest.NewClock().Now, Retention: 100 * time.Hour, MaxBytes: limit})
	defer bolttest.Close(t, db)
	for round := range 72 {
		storetest.Parallel(t, 40, func(i int) {
			k := store.Key{Namespace: "ns", Name: fmt.Sprint(round, "-", i)}
			if _, err := store.Create(t.Context(), db, k, store.Draft{Value: []byte(strings.Repeat("x", 20000))}); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		if round < 48 { // half of the limit
			continue
		}
		bolttest.Maintain(t, db)
		if round%5 == 4 {
			bolttest.Check(t, db)
		}
		if s := db.Stats(); s.FileBytes > limit {
			t.Errorf("round %d: %+v", round, s)
		}
		if _, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: fmt.Sprint(round, "-39")}); err != nil {
			t.Errorf("round %d: one of the newest events: %v", round, err)
		}
	}
}

// TestHistoryIsAQuarter: superseded versions are kept for as long as is asked,
// but they never take more than a quarter of the limit. A request for an older
// state gets an error.
func TestHistoryIsAQuarter(t *testing.T) {
	t.Parallel()
	if *storetest.Compress {
		t.Skip("history that is compressed takes less of the files than it has bytes")
	}
	const limit = 8 << 20
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), MaxBytes: limit, MinFree: -1, SegmentBytes: 256 << 10, Retention: 1000 * time.Hour, History: 1000 * time.Hour})
	defer bolttest.Close(t, db)
	value := []byte(strings.Repeat("x", 20000))
	first := uint64(0)
	most := int64(0)
	for i := range 200 { // 4 MB
		r, err := db.Update(t.Context(), bolttest.Key(i%5), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: value}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = r.Record.Revision
		}
		if i%30 == 29 {
			bolttest.Maintain(t, db)
			most = max(most, db.Stats().HistoryBytes)
		}
	}
	if most < limit/8 || most > limit/4 {
		t.Errorf("history took up to %d bytes, want less than a quarter of %d and not much less", most, limit)
	}
	expired := new(store.ExpiredError)
	if _, _, err := store.Records(t.Context(), db, store.Query{Revision: first}); !errors.As(err, &expired) {
		t.Errorf("the state of revision %d: %v", first, err)
	}
	if s := db.Stats(); s.Events != 5 {
		t.Errorf("%d events, want 5: history goes before them", s.Events)
	}
	bolttest.Check(t, db)
}
