package bolt_test

import (
	"context"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
)

// engine runs the conformance suite on real files, with limits so small that
// segments, merges and replays from the log happen all the time.
type engine struct {
	options bolt.Options
	db      *bolt.DB
}

func newEngine(t testing.TB, now func() time.Time) *engine {
	return &engine{options: bolt.Options{
		Dir: t.TempDir(), Now: now,
		SegmentBytes: 8 << 10, RingEntries: 16, MemtableLimit: 20, History: 2 * time.Minute,
	}}
}

func (e *engine) Start(t testing.TB) store.Store {
	t.Helper()
	db, err := bolt.Open(e.options)
	if err != nil {
		t.Fatal(err)
	}
	e.db = db
	return db
}

func (e *engine) Stop(t testing.TB) {
	t.Helper()
	check(t, e.db)
	if err := e.db.Close(); err != nil {
		t.Error(err)
	}
}

// Trim implements storetest.Trimmer.
func (e *engine) Trim(t testing.TB) uint64 {
	t.Helper()
	if err := e.db.Maintain(t.Context()); err != nil {
		t.Error(err)
	}
	return e.db.Stats().Oldest
}

// check fails the test if the store's own check finds anything.
func check(t testing.TB, db *bolt.DB) {
	t.Helper()
	report, err := db.Check(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Errorf("check: %v", err)
		return
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s", p)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, now func() time.Time) storetest.Engine { return newEngine(t, now) })
}
