package bolt_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// TestListWhileEventsChange: a list shows one moment, also where it meets a
// version that is newer than its look at the log, and what it had found before
// lies in pages that new versions are written to.
func TestListWhileEventsChange(t *testing.T) {
	t.Parallel()
	const ahead = 64 // keys that a list looks at together
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	defer bolttest.Close(t, db)
	value := strings.Repeat("as it was ", 10)
	for i := range 2 * ahead {
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), store.Draft{Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(i int) {
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, bolttest.Change); err != nil {
			t.Error(err)
		}
	}
	seen := 0
	page, err := db.List(t.Context(), store.Query{}, func(r *store.View) bool {
		if r.Key != bolttest.Key(seen) || string(r.Value) != value {
			t.Errorf("event %d is %s: %q", seen, r.Key, r.Value)
		}
		switch {
		case seen == 0:
			change(ahead + 1) // one of those that are looked at together next
		case seen >= ahead:
			for range 8 {
				change(0)
			}
		}
		seen++
		return true
	})
	if err != nil || page.More || seen != 2*ahead {
		t.Errorf("%d events shown, want %d: %v", seen, 2*ahead, err)
	}
}

// TestViewsEnd: a view that is kept by mistake shows nothing, rather than memory that
// has another use by then.
func TestViewsEnd(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	defer bolttest.Close(t, db)
	if _, err := store.Create(t.Context(), db, bolttest.Key(1), store.Draft{Value: []byte("value")}); err != nil {
		t.Fatal(err)
	}
	var got, listed *store.View
	err := db.Get(t.Context(), bolttest.Key(1), func(v *store.View) error { got = v; return nil })
	_, listErr := db.List(t.Context(), store.Query{}, func(v *store.View) bool { listed = v; return true })
	if err != nil || listErr != nil || got == nil || listed == nil {
		t.Fatal(err, listErr)
	}
	if got.Value != nil || listed.Value != nil {
		t.Errorf("views show %q and %q after they have ended", got.Value, listed.Value)
	}
}
