package bolt

import (
	"testing"

	"tidings.example/eventsvc/internal/store"
)

// TestDeletedLooksOnce: the index is asked for the key of a deleted event once.
func TestDeletedLooksOnce(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	putInside(t, db, "a", []byte("last"))
	key := store.Key{Namespace: "ns", Name: "a"}
	if _, err := db.Update(t.Context(), key, store.Any, func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Delete}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.committer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, found := db.index.Stats().TxN, 0
	if err := db.Timeline().Deleted(t.Context(), key, func(v *store.View) bool {
		found++
		return string(v.Value) == "last"
	}); err != nil || found != 1 {
		t.Errorf("%d deleted versions were found: %v", found, err)
	}
	if n := db.index.Stats().TxN - before; n != 1 {
		t.Errorf("the index was read %d times", n)
	}
}
