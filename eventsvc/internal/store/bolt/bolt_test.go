package bolt_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
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
	db, err := bolttest.OpenDB(e.options)
	if err != nil {
		t.Fatal(err)
	}
	e.db = db
	return db
}

func (e *engine) Stop(t testing.TB) {
	t.Helper()
	bolttest.Check(t, e.db)
	bolttest.Close(t, e.db)
	checkFiles(t, e.options.Dir)
}

// checkFiles has bbolt itself check the pages of all files.
func checkFiles(t testing.TB, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				t.Errorf("%s: %v", path, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
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

// Bump implements storetest.Bumper.
func (e *engine) Bump(t testing.TB) uint64 {
	t.Helper()
	revision, err := e.db.BumpRevision(t.Context(), 0)
	if err != nil {
		t.Error(err)
	}
	return revision
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, now func() time.Time) storetest.Engine { return newEngine(t, now) })
}
