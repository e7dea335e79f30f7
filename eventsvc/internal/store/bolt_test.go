package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// boltEngine runs the contract suite on real files, with limits so small that
// segments, merges and replays from the log happen all the time.
type boltEngine struct {
	options bolt.Options
	db      *bolt.DB
}

func newBolt(t testing.TB, now func() time.Time) *boltEngine {
	return &boltEngine{options: boltOptions(t, now)}
}

func boltOptions(t testing.TB, now func() time.Time) bolt.Options {
	return bolt.Options{
		Dir: t.TempDir(), Now: now,
		SegmentBytes: 8 << 10, RingEntries: 16, MemtableLimit: 20, History: 2 * time.Minute,
	}
}

func (e *boltEngine) Start(t testing.TB) store.Store {
	t.Helper()
	db, err := bolttest.OpenDB(e.options)
	if err != nil {
		t.Fatal(err)
	}
	e.db = db
	return db
}

func (e *boltEngine) Stop(t testing.TB) {
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

// Trim implements trimmer.
func (e *boltEngine) Trim(t testing.TB) uint64 {
	t.Helper()
	if err := e.db.Maintain(t.Context()); err != nil {
		t.Error(err)
	}
	return e.db.Stats().Oldest
}

// Bump implements bumper.
func (e *boltEngine) Bump(t testing.TB) uint64 {
	t.Helper()
	revision, err := e.db.BumpRevision(t.Context(), 0)
	if err != nil {
		t.Error(err)
	}
	return revision
}

func TestBolt(t *testing.T) {
	t.Parallel()
	testContract(t, func(t testing.TB, now func() time.Time) engine { return newBolt(t, now) })
}

// With all sealed log files compressed, the store promises the same.
func TestBoltCompressed(t *testing.T) {
	t.Parallel()
	testContract(t, func(t testing.TB, now func() time.Time) engine {
		e := newBolt(t, now)
		e.options.CompressAfter = time.Nanosecond
		return e
	})
}
