package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// openBelow returns which files below a directory this process has open.
func openBelow(t *testing.T, dir string) (paths []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir) {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestDescriptors: every operation, also one that fails, leaves as many files open as there were: one for each file of
// the store, and one for its directory.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := bolt.Options{Dir: filepath.Join(dir, "store"), SegmentBytes: 64 << 10, MinFree: -1, MaxBytes: -1}
	db := bolttest.Open(t, o)
	want := func(what string, files int) {
		t.Helper()
		if open := openBelow(t, dir); len(open) != files {
			t.Errorf("after %s %d files are open, want %d: %q", what, len(open), files, open)
		}
	}
	read := func(*store.View) bool { return true }
	drained := func(w store.Watcher, err error) error {
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = storetest.Next(t, w)
		return err
	}
	ctx := t.Context()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	all := store.Range{From: time.Unix(0, 0), To: time.Now().Add(time.Hour)}
	bolttest.Create(t, db, 600, strings.Repeat("x", 300))
	var backup []byte
	operations := []struct {
		name string
		do   func() error
	}{
		{"an update", func() error { _, err := db.Update(ctx, bolttest.Key(1), store.Any, bolttest.Change); return err }},
		{"a get", func() error { return db.Get(ctx, bolttest.Key(1), func(*store.View) error { return nil }) }},
		{"a get of none", func() error {
			if err := db.Get(ctx, store.Key{Namespace: "a", Name: "b"}, nil); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		}},
		{"a list", func() error { _, err := db.List(ctx, store.Query{}, read); return err }},
		{"a list by field", func() error {
			s := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "Pulled"}}}
			_, err := db.List(ctx, store.Query{Selector: s, Limit: 10}, read)
			return err
		}},
		{"a list that ends early", func() error {
			_, err := db.List(ctx, store.Query{}, func(*store.View) bool { return false })
			return err
		}},
		{"a list without a caller", func() error { _, _ = db.List(gone, store.Query{}, read); return nil }},
		{"a list of old states", func() error { _, err := db.List(ctx, store.Query{Revision: 10}, read); return err }},
		{"a watch", func() error { return drained(db.Watch(ctx, store.WatchQuery{After: 1})) }},
		{"a watch of what is to come", func() error { w, err := db.Watch(ctx, store.WatchQuery{After: db.Revision()}); w.Close(); return err }},
		{"changes", func() error {
			return db.Changes(ctx, 1, db.Revision(), func([]store.Delivery, uint64) error { return nil })
		}},
		{"changes that end early", func() error {
			_ = db.Changes(ctx, 1, db.Revision(), func([]store.Delivery, uint64) error { return io.EOF })
			return nil
		}},
		{"counts", func() error {
			return db.Timeline().Count(ctx, countAll(all), func(store.Occurred) {})
		}},
		{"observations", func() error {
			_, err := db.Timeline().Observed(ctx, store.TimeQuery{Range: all}, func(*store.View, store.Moment) bool { return true })
			return err
		}},
		{"a search", func() error {
			filter := &event.Filter{Kind: event.FilterWord, Word: []byte("PULLED")}
			_, err := db.Timeline().Observed(ctx, store.TimeQuery{Range: all, Filter: filter}, func(*store.View, store.Moment) bool { return true })
			return err
		}},
		{"a count", func() error {
			return db.Timeline().Count(ctx, store.Count{Range: all, Group: func(event.Dimensions, event.Regarding) int { return 0 }}, func(store.Occurred) {})
		}},
		{"versions", func() error {
			return db.Timeline().Versions(ctx, &event.Selector{}, func(*store.View, bool) bool { return true })
		}},
		{"deleted ones", func() error { return db.Timeline().Deleted(ctx, bolttest.Key(2), read) }},
		{"gaps", func() error { _, _, err := db.Timeline().Gaps(ctx, db.Revision(), 10); return err }},
		{"the beginning", func() error { _, _, err := db.Timeline().Begin(ctx); return err }},
		{"deletions", func() error { _, err := db.Update(ctx, bolttest.Key(3), store.Any, bolttest.Remove); return err }},
		{"a checkpoint", db.Checkpoint},
		{"a new file", db.Seal},
		{"a round", func() error { return db.Maintain(ctx) }},
		{"a check", func() error { _, err := db.Check(ctx, nil); return err }},
		{"a check without a caller", func() error { _, _ = db.Check(gone, nil); return nil }},
		{"a backup", func() error { _, backup = backUp(t, db); return nil }},
		{"a backup that fails", func() error {
			s, err := db.Snapshot(ctx)
			if err != nil {
				return err
			}
			return errors.Join(s.Close(), wantFailed(s.Write(io.Discard)))
		}},
		{"a compaction", func() error { return db.Compact(ctx, false, nil) }},
		{"a compression", func() error { return db.Compact(ctx, true, nil) }},
		{"a compaction without a caller", func() error { _ = db.Compact(gone, true, nil); return nil }},
		{"a bump", func() error { _, err := db.BumpRevision(ctx, db.Revision()); return err }},
		{"a second opener", func() error { _, err := bolttest.OpenDB(o); return wantFailed(err) }},
		{"a restore over it", func() error { _, err := bolt.Restore(ctx, o.Dir, bytes.NewReader(backup), nil); return wantFailed(err) }},
		{"a restore that is cut short", func() error {
			_, err := bolt.Restore(ctx, filepath.Join(dir, "other"), bytes.NewReader(backup[:len(backup)/2]), nil)
			return wantFailed(err)
		}},
	}
	for pass := range 2 { // the second reads files that are compressed, after the states before were given up
		for _, op := range operations {
			if err := op.do(); err != nil && pass == 0 {
				t.Errorf("%s: %v", op.name, err)
			}
			want(op.name, len(db.Segments())+3) // index, write-ahead log, directory
		}
	}
	bolttest.Close(t, db)
	want("the end", 0)
	unusable(t, o, want)
}

func wantFailed(err error) error {
	if err == nil {
		return errors.New("it has succeeded")
	}
	return nil
}

// unusable opens stores of which one file is not what it was.
func unusable(t *testing.T, o bolt.Options, want func(what string, files int)) {
	t.Helper()
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(o.Dir, e.Name())
		whole := readFile(t, path)
		for _, damaged := range [][]byte{nil, []byte("garbage"), whole[:len(whole)/2], append(bytes.Repeat([]byte{math.MaxUint8}, len(whole)/3), whole[len(whole)/3:]...)} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if db, err := bolttest.OpenDB(o); err == nil { // what is damaged is not needed, or read later
				_ = db.Close()
			}
			want("a start with another "+e.Name(), 0)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
