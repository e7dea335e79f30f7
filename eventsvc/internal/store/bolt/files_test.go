package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
)

// openDB opens a store, with -compress one that compresses.
func openDB(o bolt.Options) (*bolt.DB, error) {
	if *storetest.Compress && o.CompressAfter == 0 {
		o.CompressAfter = time.Nanosecond
	}
	return bolt.Open(o)
}

func open(t testing.TB, o bolt.Options) *bolt.DB {
	t.Helper()
	db, err := openDB(o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// closeDB closes a store, of which nothing may be damaged.
func closeDB(t testing.TB, db *bolt.DB) {
	t.Helper()
	check(t, db)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func key(i int) store.Key { return store.Key{Namespace: "ns", Name: fmt.Sprintf("e%04d", i)} }

// create stores n events, one after the other as long as they are few.
func create(t testing.TB, db *bolt.DB, n int, value string) {
	t.Helper()
	one := func(i int) {
		d := store.Draft{Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil), Value: []byte(value)}
		if _, err := store.Create(t.Context(), db, key(i), d); err != nil {
			t.Error(err)
		}
	}
	if n > 100 {
		storetest.Parallel(t, n, one)
		return
	}
	for i := range n {
		one(i)
	}
}

func wantFileError(t *testing.T, dir, path string, says ...string) {
	t.Helper()
	db, err := openDB(bolt.Options{Dir: dir})
	if err == nil {
		closeDB(t, db)
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

// R21: a second opener is told at once. bbolt's lock is between open files, so
// that one process can play both.
func TestSecondProcessIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, bolt.Options{Dir: dir})
	defer closeDB(t, db)
	wantFileError(t, dir, filepath.Join(dir, "index.db"), "another process")
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
			db := open(t, bolt.Options{Dir: dir})
			create(t, db, 3, "v")
			closeDB(t, db)
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
	db := open(t, o)
	create(t, db, 20, strings.Repeat("x", 1000))
	closeDB(t, db)
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
	db := open(t, o)
	create(t, db, 100, strings.Repeat("x", 500))
	for i := range 50 {
		if _, err := db.Update(t.Context(), key(i), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Op(1 + i%2), Draft: store.Draft{Value: []byte("new")}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want, stats := dump(t, db), db.Stats()
	closeDB(t, db)
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	db = open(t, o)
	defer closeDB(t, db)
	check(t, db)
	if diff := cmp.Diff(want, dump(t, db)); diff != "" {
		t.Error(diff)
	}
	if got := db.Stats(); got.Events != stats.Events || got.LiveBytes != stats.LiveBytes || got.Revision != stats.Revision {
		t.Errorf("counted %+v, before %+v", got, stats)
	}
}

// dump prints all events, and every change that is held.
func dump(t testing.TB, db *bolt.DB) (out []string) {
	t.Helper()
	q := store.Query{Revision: db.Revision()}
	for {
		records, page, err := store.Records(t.Context(), db, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			out = append(out, fmt.Sprintf("%s %d %s %x %s", r.Key, r.Revision, r.Time.UTC().Format(time.RFC3339Nano), r.Attributes, r.Value))
		}
		if !page.More {
			break
		}
		q.After = page.Last
	}
	at := db.Stats().Oldest
	w, err := db.Watch(t.Context(), store.WatchQuery{After: at})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for at < db.Revision() {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			out = append(out, fmt.Sprintf("%d: %d %s %d %s", d.Revision, d.Type, d.Object.Key, d.Object.Revision, d.Object.Value))
		}
		at = b.Revision
	}
	return out
}

func count0(*store.Record) (store.Decision, error) {
	return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte("changed")}}, nil
}

func remove(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Delete}, nil }

// TestUnusableDirectory: the error names the path, the cause and what to do.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := openDB(bolt.Options{Dir: filepath.Join(file, "store")})
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
