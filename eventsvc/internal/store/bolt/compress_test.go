package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// compressible is an event that has its texts in two forms.
func compressible(i int) store.Draft {
	name, reason := fmt.Sprintf("web-%d", i), []string{"Pulled", "Started", "Killing"}[i%3]
	note := fmt.Sprintf("container %q has %s after %d ms", name, reason, i*7919%1000)
	value := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"web"}},"reason":%q,"note":%q}`, name, reason, note) +
		"\x0a" + string(rune(len(name))) + name + "\x12" + string(rune(len(reason))) + reason + "\x1a" + string(rune(len(note))) + note
	at := event.Occurrence{Time: goldenTime().Add(time.Duration(i) * time.Second), Count: 1, New: 1}
	return store.Draft{Value: []byte(value), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: reason, event.RegardingName: name}, map[string]string{"app": "web"}).With(at)}
}

// fillCompressible makes a store of some log files with history in them.
func fillCompressible(t *testing.T, db *bolt.DB) {
	t.Helper()
	for file := range 3 {
		storetest.Parallel(t, 300, func(i int) {
			_, err := db.Update(t.Context(), bolttest.Key(file*200+i), store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: compressible(i)}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		storetest.Parallel(t, 20, func(i int) {
			if _, err := db.Update(t.Context(), bolttest.Key(file*200+i), store.Any, bolttest.Remove); err != nil {
				t.Error(err)
			}
		})
		if err := db.Seal(); err != nil {
			t.Fatal(err)
		}
	}
}

// wantCompressed fails unless so many of the sealed log files are compressed.
func wantCompressed(t *testing.T, db *bolt.DB, want int) {
	t.Helper()
	if sealed, n := db.Sealed(); n != want || sealed < 3 {
		t.Fatalf("%d of %d files are compressed, want %d", n, sealed, want)
	}
}

// logBytes returns what the files of the log take.
func logBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "log-*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		n += disk.Usage(path)
	}
	return n
}

// R6, R17, R18, R22: what a store says stays the same when its log files are compressed and
// rewritten, also to what began to read before, and in a backup.
func TestCompression(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime, MemtableLimit: 100}
	db := bolttest.Open(t, o)
	fillCompressible(t, db)
	want, counts := bolttest.Dump(t, db), occurred(t, db)
	same := func(when string, db *bolt.DB) {
		t.Helper()
		if !slices.Equal(bolttest.Dump(t, db), want) || fmt.Sprint(occurred(t, db)) != fmt.Sprint(counts) {
			t.Errorf("%s it says something else", when)
		}
		bolttest.Check(t, db)
	}
	before := logBytes(t, o.Dir)
	w, err := db.Watch(t.Context(), store.WatchQuery{After: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	seen := 0
	next := func() {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(b.Changes)
	}
	next()
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	wantCompressed(t, db, 3)
	same("compressed", db)
	for seen < 3*320 {
		next()
	}
	if after := logBytes(t, o.Dir); after > before/2 {
		t.Errorf("%d bytes, before %d", after, before)
	}
	if _, archive := backUp(t, db); true {
		restored := filepath.Join(t.TempDir(), "restored")
		if _, err := bolt.Restore(t.Context(), restored, bytes.NewReader(archive), nil); err != nil {
			t.Fatal(err)
		}
		copied := bolttest.Open(t, bolt.Options{Dir: restored, Now: goldenTime})
		wantCompressed(t, copied, 3)
		if n, all := copied.Stats().Events, db.Stats().Events; n != all {
			t.Errorf("%d events were restored of %d", n, all)
		}
		bolttest.Close(t, copied)
	}
	bolttest.Close(t, db)
	if err := os.Remove(filepath.Join(o.Dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, o)
	same("with an index made again", db)
	bolttest.Close(t, db)
}

// TestCompactSealsHead: a compaction that compresses has all events in columns, also those of the newest file, unless
// they are few. One that does not leaves that file alone.
func TestCompactSealsHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events   int
		compress bool
		want     []bool
	}{
		"compressed": {2000, true, []bool{true}},
		"few":        {200, true, nil},
		"plain":      {2000, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bolt.Options{Dir: t.TempDir()}
			db := bolttest.Open(t, o)
			bolttest.Create(t, db, c.events, strings.Repeat("value ", 100))
			want := bolttest.Dump(t, db)
			for range 2 { // the second one has nothing to seal
				if err := db.Compact(t.Context(), c.compress, nil); err != nil {
					t.Fatal(err)
				}
				if got := db.Compressed(); !slices.Equal(got, c.want) {
					t.Errorf("sealed files are compressed: %v, want %v", got, c.want)
				}
			}
			if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "next"}, store.Draft{Value: []byte("next")}); err != nil {
				t.Fatal(err)
			}
			bolttest.Close(t, db)
			db = bolttest.Open(t, o)
			if _, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: "next"}); err != nil {
				t.Error(err)
			}
			if got := bolttest.Dump(t, db); len(got) <= len(want) {
				t.Errorf("%d lines of a dump, before %d", len(got), len(want))
			}
			bolttest.Close(t, db)
		})
	}
}

// TestOldEventsCompressed: events that were observed long ago, as imported ones were, are compressed at once, behind
// younger ones too.
func TestOldEventsCompressed(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: clock.Now, CompressAfter: time.Hour})
	for file, ago := range []time.Duration{30 * time.Minute, 90 * time.Minute} {
		_, err := db.Update(t.Context(), bolttest.Key(file), store.Any, func(*store.Record) (store.Decision, error) {
			a := event.NewAttributes([event.NumFields]string{event.Reason: "Old"}, nil).With(event.Occurrence{Time: clock.Now().Add(-ago), Count: 1, New: 1})
			return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a, Value: []byte("v")}}, nil
		})
		if err := errors.Join(err, db.Seal()); err != nil {
			t.Fatal(err)
		}
	}
	bolttest.Maintain(t, db)
	if compressed := db.Compressed(); !slices.Equal(compressed, []bool{false, true}) {
		t.Errorf("compressed are, of the files of events of 30 and of 90 minutes ago: %v", compressed)
	}
	bolttest.Close(t, db)
}

// R11: what is dead goes from compressed files too, and they are unlinked when nothing is
// left.
func TestCompactionOfCompressed(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: clock.Now, Retention: time.Hour, History: time.Minute, SegmentBytes: 64 << 10, CompressAfter: 10 * time.Minute})
	fillCompressible(t, db)
	bolttest.Maintain(t, db)
	if _, n := db.Sealed(); n != 0 {
		t.Fatalf("%d files are compressed that are young", n)
	}
	clock.Add(11 * time.Minute)
	for before := -1; ; { // a round need not have time for all
		bolttest.Maintain(t, db)
		_, n := db.Sealed()
		if n == before {
			break
		}
		before = n
	}
	if sealed, n := db.Sealed(); n < 3 {
		t.Fatalf("%d of %d old files are compressed", n, sealed)
	}
	kept := bolttest.Dump(t, db)
	storetest.Parallel(t, 500, func(i int) {
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, bolttest.Remove); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	clock.Add(2 * time.Minute)
	bolttest.Maintain(t, db)
	if s := db.Stats(); s.DeadBytes > s.LiveBytes {
		t.Errorf("much is dead after a compaction: %+v", s)
	}
	left := bolttest.Dump(t, db)
	if len(left) == 0 || len(left) >= len(kept) {
		t.Errorf("%d lines are left of %d", len(left), len(kept))
	}
	if sealed, n := db.Sealed(); n == 0 {
		t.Errorf("%d of %d files are compressed after a compaction", n, sealed)
	}
	clock.Add(2 * time.Hour)
	bolttest.Maintain(t, db)
	clock.Add(2 * time.Minute)
	bolttest.Maintain(t, db)
	if s := db.Stats(); s.Events != 0 || s.Segments > 2 {
		t.Errorf("after the retention there is %+v", s)
	}
	bolttest.Close(t, db)
}

// editBucket changes a bucket of a compressed log file.
func editBucket(t *testing.T, path, bucket string, edit func(b *bbolt.Bucket) error) {
	t.Helper()
	f, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = f.Update(func(tx *bbolt.Tx) error { return edit(tx.Bucket([]byte(bucket))) })
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// cellsOf is the column whose pieces have what is left open by the shapes of 512 versions, a checksum for 32 of them.
const cellsOf = 50

// spoilCells changes the first piece of the cells of a compressed log file: nil deletes it.
func spoilCells(t *testing.T, path string, spoil func(piece []byte) []byte) {
	t.Helper()
	editBucket(t, path, "columns", func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if k[8] != cellsOf {
				continue
			}
			k = bytes.Clone(k)
			if v = spoil(bytes.Clone(v)); v == nil {
				return b.Delete(k)
			}
			return b.Put(k, v)
		}
		return errors.New("there are no cells")
	})
}

// R13: damage of a column costs the events that have to do with it, is named, and stays known. Nothing else is lost.
func TestDamagedColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most  int
		spoil func(piece []byte) []byte
	}{
		"flipped": {32, func(v []byte) []byte {
			v[len(v)/2] ^= 4
			return v
		}},
		"missing": {512, func([]byte) []byte { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20, CompressAfter: time.Nanosecond}
			db := bolttest.Open(t, o)
			const events = 800
			bolttest.Fill(t, db, events, func(i int) (store.Key, store.Draft) { return bolttest.Key(i), compressible(i) })
			if err := db.Seal(); err != nil {
				t.Fatal(err)
			}
			bolttest.Maintain(t, db)
			bolttest.Close(t, db)
			spoilCells(t, filepath.Join(o.Dir, "log-00000000000000000002.db"), c.spoil)
			var lost []int
			for again := range 2 { // the second time with a file that was written again
				db = bolttest.Open(t, o)
				now := lostOf(t, db, events)
				if n := len(now); n == 0 || n > c.most || now[n-1]-now[0] != n-1 || again > 0 && !slices.Equal(now, lost) {
					t.Errorf("lost are the events %v, before %v; want at most %d beside each other", now, lost, c.most)
				}
				lost = now
				if r, err := db.Check(t.Context(), nil); err != nil || len(r.Problems) == 0 {
					t.Errorf("the check says %+v, %v", r, err)
				}
				if _, err := db.Update(t.Context(), bolttest.Key(events-1), store.Any, bolttest.Remove); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
				if err := errors.Join(db.Compact(t.Context(), false, nil), db.Close()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// lostOf returns the events but the last that are answered with an error, which names a column or what was damaged
// before. All others are as they were written.
func lostOf(t *testing.T, db *bolt.DB, events int) (lost []int) {
	t.Helper()
	for i := range events - 1 {
		r, err := store.Read(t.Context(), db, bolttest.Key(i))
		if ce := new(store.CorruptError); errors.As(err, &ce) {
			if lost = append(lost, i); !strings.Contains(err.Error(), "column") && !strings.Contains(err.Error(), "written again") {
				t.Fatalf("event %d: %v, which names no column", i, err)
			}
		} else if err != nil || !bytes.Equal(r.Value, compressible(i).Value) {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return lost
}

// R13: whichever byte of the columns of a compressed log file is flipped, what is served is what was written, or an
// error, and a check finds it. The short form flips a hundred, other ones each time.
func TestFlippedBytesOfColumns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir, MemtableLimit: 4, CompressAfter: time.Nanosecond})
	for i := range flipEvents {
		if _, err := store.Create(t.Context(), db, flipKey(i), flipDraft(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	bolttest.Maintain(t, db)
	if sealed, n := db.Sealed(); sealed != 1 || n != 1 {
		t.Fatalf("%d of %d files are compressed", n, sealed)
	}
	bolttest.Close(t, db)
	const name = "log-00000000000000000002.db"
	whole := map[string][]byte{}
	for _, file := range []string{name, filepath.Base(db.Segments()[1]), "index.db"} {
		whole[file] = readFile(t, filepath.Join(dir, file))
	}
	var places []int
	editBucket(t, filepath.Join(dir, name), "columns", func(b *bbolt.Bucket) error {
		return b.ForEach(func(_, v []byte) error {
			at := bytes.LastIndex(whole[name], v) // an older page may have it too
			for i := range v {
				places = append(places, at+i)
			}
			return nil
		})
	})
	step := len(places)/100 | 1
	if *storetest.Long {
		step = 1
	}
	for i := randtest.New(t).IntN(step); i < len(places); i += step {
		if err := spoil(dir, whole, name, places[i]); err != nil {
			t.Fatal(err)
		}
		if detected, err := readSpoiled(t, dir); !detected && err == nil || t.Failed() {
			t.Fatalf("byte %d of the columns, and %d of the file, was flipped, and nothing found", i, places[i])
		}
	}
}

// TestLargeBesideColumns: an event that is too large for a column is in its compressed log file as it is.
func TestLargeBesideColumns(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), CompressAfter: time.Nanosecond}
	db := bolttest.Open(t, o)
	large := store.Draft{Value: bytes.Repeat([]byte("large"), 4<<20)}
	for i, d := range []store.Draft{compressible(0), large, compressible(2)} {
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	before := bolttest.Dump(t, db)
	bolttest.Maintain(t, db)
	if sealed, n := db.Sealed(); sealed != 1 || n != 1 {
		t.Errorf("%d of %d files are compressed, want one", n, sealed)
	}
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	bolttest.Check(t, db)
	if !slices.Equal(bolttest.Dump(t, db), before) {
		t.Error("compressed it says something else")
	}
	bolttest.Close(t, db)
}

// R10: events are written and read while log files are compressed.
func TestCompressionUnderLoad(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 128 << 10, MemtableLimit: 500})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	converted := make(chan error, 1)
	rounds := make(chan struct{})
	go func() {
		for {
			if err := db.Compact(ctx, true, nil); err != nil {
				converted <- err
				return
			}
			select {
			case rounds <- struct{}{}:
			default:
			}
		}
	}()
	storetest.Parallel(t, 2000, func(i int) {
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), compressible(i)); err != nil {
			t.Error(err)
		}
		old := i / 2
		if r, err := store.Read(t.Context(), db, bolttest.Key(old)); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		} else if err == nil && !bytes.Equal(r.Value, compressible(old).Value) {
			t.Errorf("event %d is %q", old, r.Value)
		}
		if i%50 == 0 {
			n := 0
			if _, err := db.List(t.Context(), store.Query{Limit: 200}, func(*store.View) bool { n++; return true }); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		waittest.Within(t, rounds)
		if _, err := store.Read(t.Context(), db, bolttest.Key(1)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := waittest.Within(t, converted); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := db.Stats().Events; n != 2000 {
		t.Errorf("%d events", n)
	}
	bolttest.Close(t, db)
}
