package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

func wantFileError(t *testing.T, dir, path string, says ...string) {
	t.Helper()
	db, err := bolttest.OpenDB(bolt.Options{Dir: dir})
	if err == nil {
		bolttest.Close(t, db)
		t.Fatal("the store opened")
	}
	fe := new(store.FileError)
	if !errors.As(err, &fe) || fe.Path != path || fe.Fix == "" {
		t.Errorf("error %v, want a FileError for %s that says what to do", err, path)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

// R21: a second opener is told at once. The lock is between open files, so
// that one process can play both.
func TestSecondProcessIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir})
	defer bolttest.Close(t, db)
	wantFileError(t, dir, dir, "another process")
}

// R18: what is not ours, or not of this version, is refused by name and left
// as it was.
func TestForeignFilesAreRefusedUntouched(t *testing.T) {
	t.Parallel()
	foreign := func(path string) error {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			return err
		}
		return errors.Join(db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }), db.Close())
	}
	version := func(format string) func(path string) error {
		return func(path string) error {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				return err
			}
			return errors.Join(db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte(format))
			}), db.Close())
		}
	}
	next, before := version("tidings event store 99"), version("tidings events 3")
	garbage := func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("no database "), 10000), 0o600) }
	empty := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	entry := func(path string) error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			return err
		}
		return errors.Join(db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("keys")).Put([]byte("default/a"), make([]byte, 12)) }), db.Close())
	}
	const segment = "log-00000000000000000002.db"
	tests := []struct {
		name, file string
		spoil      func(path string) error
		remove     bool
		says       string
	}{
		{"index of another program", "index.db", foreign, true, "not a file of the event store"},
		{"index of another version", "index.db", next, false, "format 99"},
		{"index of an earlier build", "index.db", before, false, "before format 1; export with the program that wrote it"},
		{"index is garbage", "index.db", garbage, true, "remove this file alone"},
		{"index is empty", "index.db", empty, true, "empty"},
		{"an entry of the index is damaged", "index.db", entry, false, `index.db: the entries in the index from "" on: `},
		{"log of another program", segment, foreign, true, "not a file of the event store"},
		{"log of another version", segment, next, false, "format 99"},
		{"log of an earlier build", segment, before, false, "before format 1; export with the program that wrote it"},
		{"log is garbage", segment, garbage, true, "backup"},
		{"log is empty", segment, empty, true, "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := bolttest.Open(t, bolt.Options{Dir: dir})
			bolttest.Create(t, db, 3, "v")
			bolttest.Close(t, db)
			path := filepath.Join(dir, tt.file)
			if tt.remove {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.spoil(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			wantFileError(t, dir, path, tt.says)
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the refused file was changed (%v)", err)
			}
		})
	}
}

func TestMissingLogFileIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := bolt.Options{Dir: dir, SegmentBytes: 4 << 10}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 20, strings.Repeat("x", 1000))
	bolttest.Close(t, db)
	logs, err := filepath.Glob(filepath.Join(dir, "log-*.db"))
	if err != nil || len(logs) < 4 {
		t.Fatalf("%d log files, %v", len(logs), err)
	}
	if err := os.Rename(logs[1], logs[1]+".away"); err != nil {
		t.Fatal(err)
	}
	wantFileError(t, dir, logs[2], "missing")
	if err := errors.Join(os.Rename(logs[1]+".away", logs[1]), os.Rename(logs[len(logs)-1], logs[len(logs)-1]+".away")); err != nil {
		t.Fatal(err)
	}
	wantFileError(t, dir, logs[len(logs)-2], "missing")
}

// The index is made from the log: without it nothing is lost.
func TestIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := bolt.Options{Dir: dir, SegmentBytes: 16 << 10, MemtableLimit: 10}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 100, strings.Repeat("x", 500))
	for i := range 50 {
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Op(1 + i%2), Draft: store.Draft{Value: []byte("new")}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want, stats := bolttest.Dump(t, db), db.Stats()
	bolttest.Close(t, db)
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	bolttest.Check(t, db)
	if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	if got := db.Stats(); got.Events != stats.Events || got.LiveBytes != stats.LiveBytes || got.Revision != stats.Revision {
		t.Errorf("counted %+v, before %+v", got, stats)
	}
}

// TestUnusableDirectory: the error names the path, the cause and what to do.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolttest.OpenDB(bolt.Options{Dir: filepath.Join(file, "store")})
	if err == nil {
		_ = db.Close()
		t.Fatal("opened below a file")
	}
	for _, want := range []string{file, "not a directory", "may write to"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
