package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/waittest"
)

// A file that cannot be written stops the store: writes are refused, reads and watches go on until the process
// ends, and Run returns why. That the log cannot be written is found when the write-ahead log is
// checkpointed into it, and that the index cannot when something is merged. The next start has what
// was acknowledged.
func TestUnwritableFilesStopTheStore(t *testing.T) {
	t.Parallel()
	for _, file := range []string{wal.FileName, "log-00000000000000000002.db", "index.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			o := bolt.Options{Dir: t.TempDir(), MemtableLimit: 50}
			db := bolttest.Open(t, o)
			bolttest.Create(t, db, 90, "value")
			if err := db.Compact(t.Context(), false, nil); err != nil { // what is merged is not in the memtable
				t.Fatal(err)
			}
			stopped := make(chan error, 1)
			go func() { stopped <- db.Run(t.Context()) }()
			path := filepath.Join(o.Dir, file)
			storetest.Replace(t, path, path, os.O_RDONLY) // which can be read, and not written
			if file != wal.FileName {
				if _, err := store.Create(t.Context(), db, bolttest.Key(1000), store.Draft{Value: []byte("taken")}); err != nil {
					t.Errorf("the write-ahead log can be written: %v", err)
				}
			}
			if strings.HasPrefix(file, "log") {
				if err := db.Checkpoint(); !errors.Is(err, store.ErrUnwritable) {
					t.Errorf("checkpointed into a file that cannot be written: %v", err)
				}
			}
			for i := 0; file == "index.db" && db.Ready(t.Context()) == nil; i++ { // a merge finds out
				if _, err := db.Update(t.Context(), bolttest.Key(i%90), store.Any, bolttest.Change); err != nil && !errors.Is(err, store.ErrUnwritable) {
					t.Fatal(err)
				}
			}
			refuses(t, db)
			if err := waittest.Within(t, stopped); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), file) {
				t.Errorf("the store has stopped with %v, want the file and why", err)
			}
			want := bolttest.Dump(t, db)
			_ = db.Close() // cannot merge into an index that has failed
			db = bolttest.Open(t, o)
			defer bolttest.Close(t, db)
			bolttest.Check(t, db)
			if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" {
				t.Error(diff)
			}
			if _, err := store.Create(t.Context(), db, bolttest.Key(2000), store.Draft{Value: []byte("taken")}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A write-ahead log that finds no room has failed like one that cannot be written: a part of the frame may be on the
// disk, and nothing may be appended behind it.
func TestFullWriteAheadLog(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 20, "value")
	want := bolttest.Dump(t, db)
	storetest.Replace(t, filepath.Join(o.Dir, wal.FileName), "/dev/full", os.O_RDWR)
	if _, err := store.Create(t.Context(), db, bolttest.Key(1000), store.Draft{Value: []byte("refused")}); !errors.Is(err, store.ErrUnwritable) || errors.Is(err, store.ErrFull) {
		t.Errorf("no room in the write-ahead log: %v", err)
	}
	refuses(t, db)
	_ = db.Close() // which cannot write either
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	if _, err := store.Create(t.Context(), db, bolttest.Key(2000), store.Draft{Value: []byte("taken")}); err != nil {
		t.Error(err)
	}
}

// refuses wants writes refused, and what was there before as it was.
func refuses(t *testing.T, db *bolt.DB) {
	t.Helper()
	before, revision := bolttest.Dump(t, db), db.Revision()
	if _, err := store.Create(t.Context(), db, bolttest.Key(1001), store.Draft{Value: []byte("refused")}); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("written to a file that cannot be: %v", err)
	}
	if _, err := db.Update(t.Context(), bolttest.Key(0), store.Any, bolttest.Remove); !errors.Is(err, store.ErrUnwritable) || db.Ready(t.Context()) == nil {
		t.Errorf("and again: %v, ready: %v", err, db.Ready(t.Context()))
	}
	if diff := cmp.Diff(before, bolttest.Dump(t, db)); diff != "" || db.Revision() != revision {
		t.Errorf("revision %d, was %d: %s", db.Revision(), revision, diff)
	}
}

// A commit that has failed may be on the disk all the same. No reader sees it before the next
// start; after that it is there whole, and its revision is not given to another write.
func TestFailedCommitIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 20, "value")
	want, revision := bolttest.Dump(t, db), db.Revision()
	if err := db.FailAfterCommit(bolttest.Key(3), []byte("unknown")); !errors.Is(err, store.ErrUnwritable) {
		t.Fatal(err)
	}
	refuses(t, db)
	if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	r, err := store.Read(t.Context(), db, bolttest.Key(3))
	if err != nil || string(r.Value) != "unknown" || r.Revision != revision+1 {
		t.Errorf("revision %d, %q, %v", r.Revision, r.Value, err)
	}
	next, err := db.Update(t.Context(), bolttest.Key(3), store.Any, bolttest.Change)
	if err != nil || next.Record.Revision != revision+2 {
		t.Errorf("revision %d, %v", next.Record.Revision, err)
	}
	bolttest.Check(t, db)
}
