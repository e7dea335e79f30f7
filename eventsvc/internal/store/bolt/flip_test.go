package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/waittest"
)

// flipEvents is how many events the spoiled store has: enough for every kind of
// page and record. The names are so long that the index has branches; the last
// value is longer than a page of the log.
const flipEvents = 14

func flipKey(i int) store.Key {
	return store.Key{Namespace: "ns", Name: fmt.Sprintf("e%04d-%s", i, strings.Repeat("n", 400))}
}

func flipValue(i int) string {
	if i == flipEvents-1 {
		return strings.Repeat("long value ", 1600)
	}
	return strings.Repeat("value ", 400)
}

// flipDraft is an event of the spoiled store: every second one has parts.
func flipDraft(i int) store.Draft {
	reason := "Pulled"
	if i == 9 {
		reason = "Rare"
	}
	d := store.Draft{Value: []byte(flipValue(i)), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: reason}, nil)}
	return d
}

// R13: whichever byte of a file is flipped, what is served is what was written,
// or an error. Nothing panics. The files are a sealed one of the log, its head,
// and the index.
func TestFlippedBytesAreNeverServed(t *testing.T) {
	t.Parallel()
	whole := wholeFiles(t)
	dir := t.TempDir()
	if err := restore(dir, whole); err != nil {
		t.Fatal(err)
	}
	if detected, err := readSpoiled(t, dir); detected || err != nil {
		t.Fatalf("with no byte flipped: %t, %v", detected, err)
	}
	for name := range whole {
		if name == wal.FileName {
			continue // see TestFlippedBytesInTheWAL
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flipBytes(t, whole, name)
		})
	}
}

// R13: a damaged name does not hide what a file says of its columns.
func TestDamagedNamesHideNothing(t *testing.T) {
	t.Parallel()
	whole := wholeFiles(t)
	for name, file := range whole {
		for at := range file {
			if !bytes.HasPrefix(file[at:], []byte("columns")) { // a note and a bucket
				continue
			}
			dir := t.TempDir()
			if err := spoil(dir, whole, name, at+1); err != nil {
				t.Fatal(err)
			}
			if _, err := readSpoiled(t, dir); t.Failed() {
				t.Fatalf("with byte %d of %s flipped: opened with %v", at+1, name, err)
			}
		}
	}
}

// wholeFiles returns the files of a store, by name: the write-ahead log, an index, and two of the log, the sealed one
// of which is compressed with -compress.
func wholeFiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir, MemtableLimit: 4, SegmentBytes: 24 << 10})
	for i := range flipEvents {
		if _, err := store.Create(t.Context(), db, flipKey(i), flipDraft(i)); err != nil {
			t.Fatal(err)
		}
	}
	if *storetest.Compress {
		bolttest.Maintain(t, db)
		if sealed, compressed := db.Sealed(); sealed != 1 || compressed != 1 {
			t.Fatalf("%d of %d files are compressed", compressed, sealed)
		}
	}
	bolttest.Close(t, db)
	paths, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(paths) != 3 {
		t.Fatalf("%d files (%v), want an index and two of the log", len(paths), err)
	}
	whole := map[string][]byte{wal.FileName: readFile(t, filepath.Join(dir, wal.FileName))}
	for _, path := range paths {
		// What bbolt has made a file longer by is no part of the store.
		const page = 16 << 10
		file := readFile(t, path)
		used := len(bytes.TrimRight(file, "\x00"))
		whole[filepath.Base(path)] = file[:min(len(file), (used+page-1)/page*page)]
	}
	return whole
}

// flipBytes flips bytes of one file, one at a time, and reads the store with
// each: every one in the long form.
func flipBytes(t *testing.T, whole map[string][]byte, name string) {
	used := len(bytes.TrimRight(whole[name], "\x00"))
	step := used/100 | 1
	if *storetest.Long {
		step = 1
	}
	var next, found, refused atomic.Int64
	var wg sync.WaitGroup
	for range 24 { // reading waits now and then
		dir := t.TempDir()
		wg.Go(func() {
			for {
				at := (int(next.Add(1)) - 1) * step
				if at >= used || t.Failed() {
					return
				}
				if err := spoil(dir, whole, name, at); err != nil {
					t.Error(err)
					return
				}
				switch detected, err := readSpoiled(t, dir); {
				case err != nil:
					refused.Add(1)
				case detected:
					found.Add(1)
				}
				if t.Failed() {
					t.Logf("with byte %d of %s flipped", at, name)
				}
			}
		})
	}
	wg.Wait()
	if found.Load()+refused.Load() == 0 {
		t.Error("no flip was detected: the test looks at the wrong place")
	}
	t.Logf("%s: %d flips of %d bytes, %d found when reading, %d when opening", name, (used+step-1)/step, used, found.Load(), refused.Load())
}

// restore writes all files of a directory as they were.
func restore(dir string, whole map[string][]byte) error {
	for file, want := range whole {
		path := filepath.Join(dir, file)
		is, err := os.ReadFile(path)
		if err == nil && bytes.Equal(is, want) {
			continue
		}
		if err == nil && len(is) == len(want) {
			err = overwrite(path, is, want)
		} else { // a new file: to cut the old one short would wait for the disk
			err = errors.Join(os.RemoveAll(path), os.WriteFile(path, want, 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spoil writes all files of a directory as they were, except one byte.
func spoil(dir string, whole map[string][]byte, name string, at int) error {
	if err := restore(dir, whole); err != nil {
		return err
	}
	spoiled := bytes.Clone(whole[name])
	spoiled[at] ^= 1 << (at % 8)
	return overwrite(filepath.Join(dir, name), whole[name], spoiled)
}

// overwrite writes what differs from what a file has, from the first to the
// last byte.
func overwrite(path string, is, want []byte) error {
	from, to := 0, len(want)
	for is[from] == want[from] {
		from++
	}
	for is[to-1] == want[to-1] {
		to--
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(want[from:to], int64(from))
	return errors.Join(err, f.Close())
}

// showsAsWritten compares what is shown of an event with what was written.
func showsAsWritten(t *testing.T, v *store.View, i int) {
	t.Helper()
	d := flipDraft(i)
	if v.Key != flipKey(i) || !bytes.Equal(v.Value, d.Value) || !bytes.Equal(v.Attributes, d.Attributes) {
		t.Errorf("shown is %s: %q", v.Key, v.Value)
	}
}

// getSpoiled reads every event, and reports whether that found something.
func getSpoiled(t *testing.T, db *bolt.DB) (detected bool) {
	t.Helper()
	for i := range flipEvents {
		err := db.Get(t.Context(), flipKey(i), func(v *store.View) error {
			showsAsWritten(t, v, i)
			return nil
		})
		ce := new(store.CorruptError)
		switch {
		case errors.As(err, &ce):
			detected = true
		case err != nil:
			t.Errorf("get: %v, want a CorruptError", err)
		}
	}
	return detected
}

// listSpoiled lists all events, and some, and reports whether that found
// something.
func listSpoiled(t *testing.T, db *bolt.DB) (detected bool) {
	t.Helper()
	rare := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "Rare"}}}
	for want, q := range map[int]store.Query{flipEvents: {}, 1: {Selector: rare}} {
		n := 0
		_, err := db.List(t.Context(), q, func(v *store.View) bool {
			i := n
			if n++; q.Selector != nil {
				i = 9
			}
			showsAsWritten(t, v, i)
			return true
		})
		if err != nil {
			detected = true
		} else if n != want {
			t.Errorf("%d events listed, want %d", n, want)
		}
	}
	return detected
}

// timeSpoiled reads what was observed, and reports whether that found something.
func timeSpoiled(t *testing.T, db *bolt.DB) (detected bool) {
	t.Helper()
	in := store.Range{From: time.Unix(0, 0), To: time.Now().Add(2 * time.Hour)}
	n, shown := int64(0), 0
	err := db.Timeline().Count(t.Context(), countAll(in), func(o store.Occurred) { n += o.Count })
	if err != nil {
		detected = true
	} else if n != flipEvents {
		t.Errorf("%d observed, want %d", n, flipEvents)
	}
	_, err = db.Timeline().Observed(t.Context(), store.TimeQuery{Range: in}, func(v *store.View, _ store.Moment) bool {
		for i := range flipEvents {
			if v.Key == flipKey(i) {
				shown++
				showsAsWritten(t, v, i)
			}
		}
		return true
	})
	if err != nil {
		return true
	}
	if shown != flipEvents {
		t.Errorf("%d events shown, want %d", shown, flipEvents)
	}
	return detected
}

// readSpoiled reads everything from a store of which one byte is wrong, and
// reports whether reading it found that.
func readSpoiled(t *testing.T, dir string) (detected bool, err error) {
	t.Helper()
	db, err := bolttest.OpenDB(bolt.Options{Dir: dir})
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	detected = getSpoiled(t, db)
	detected = listSpoiled(t, db) || detected
	detected = timeSpoiled(t, db) || detected
	if w, err := db.Watch(t.Context(), store.WatchQuery{After: 1}); err == nil {
		ctx, cancel := waittest.Context(t)
		defer cancel()
		n := 0
		for at := uint64(1); at < db.Revision() && err == nil; {
			var b store.Batch
			b, err = w.Next(ctx)
			n, at = n+len(b.Changes), b.Revision
		}
		detected = detected || n < flipEvents // one is missing, or cannot be read
	}
	report, err := db.Check(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		detected = true
	}
	return detected, nil
}
