package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// options are those of a replica, with limits so small that segments, merges and replays happen all the time.
func options(dsn, dir string) postgres.Options {
	o := postgres.Options{
		Access: postgres.Access{DSN: dsn},
		Copy: bolt.Options{
			Dir: dir, SegmentBytes: 8 << 10, RingEntries: 16, MemtableLimit: 20, MaxBytes: -1, MinFree: -1,
		},
	}
	if *storetest.Compress {
		o.Copy.CompressAfter = time.Nanosecond
	}
	return o
}

// open opens a replica and waits until it has caught up.
func open(t testing.TB, o postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ready(t, db)
	return db
}

// ready waits until a replica has caught up.
func ready(t testing.TB, db *postgres.DB) {
	t.Helper()
	waittest.Becomes(t, func() error { return db.Ready(t.Context()) })
}

// A data directory is either that of a store or the copy of one database.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dsn, dir := service(t, server.Database(t)), t.TempDir()
	open(t, options(dsn, filepath.Join(dir, "copy"))).Close()
	own, err := bolt.Open(bolt.Options{Dir: filepath.Join(dir, "own")})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	newer := server.Database(t)
	pgtest.Exec(t, newer, "SELECT 1")
	if _, err := postgres.Migrate(t.Context(), postgres.Access{DSN: newer}, ""); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, newer, "INSERT INTO eventsvc.migration VALUES (9999, 'from_the_future')")
	for _, test := range []struct{ dsn, dir, says string }{
		{dsn, "own", "a store of its own"},
		{service(t, server.Database(t)), "copy", "is the copy of database"},
		{server.Database(t), "new", "eventsvc database migrate"},
		{newer, "new", "from_the_future"},
	} {
		db, err := postgres.Open(t.Context(), options(test.dsn, filepath.Join(dir, test.dir)))
		if refused := new(postgres.RefusedError); !errors.As(err, &refused) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.dir, err, test.says)
		}
		if err == nil {
			db.Close()
		}
	}
	for name, want := range map[string]bool{"copy": true, "own": false, "none": false} {
		if is, err := postgres.IsCopy(filepath.Join(dir, name)); is != want || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is a copy: %v, %v", name, is, err)
		}
	}
}
