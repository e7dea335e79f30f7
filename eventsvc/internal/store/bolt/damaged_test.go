package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// R13: one damaged record keeps no others from being indexed again, from
// expiring, or from being forgotten, and what it replaced does not come back.
func TestDamageIsPassedOver(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	o := bolt.Options{Dir: t.TempDir(), Now: clock.Now, Retention: time.Hour, History: time.Minute}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 20, "first")
	put := func(i int, value string) {
		t.Helper()
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte(value)}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(5, "needle in the newest version")
	put(6, "needle that was replaced")
	put(6, "last")
	stats := db.Stats()
	bolttest.Close(t, db)
	path := filepath.Join(o.Dir, "log-00000000000000000002.db")
	file := bytes.ReplaceAll(readFile(t, path), []byte("needle"), []byte("NEEDLE"))
	if err := errors.Join(os.WriteFile(path, file, 0o600), os.Remove(filepath.Join(o.Dir, "index.db"))); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, o)
	defer func() {
		if err := db.Close(); err != nil { // the damage stays
			t.Error(err)
		}
	}()
	if got := db.Stats(); got != stats && (got.Events != stats.Events || got.LiveBytes != stats.LiveBytes) {
		t.Errorf("counted %+v, before %+v", got, stats)
	}
	for i := range 20 {
		r, err := store.Read(t.Context(), db, bolttest.Key(i))
		ce := new(store.CorruptError)
		switch {
		case i == 5 && !errors.As(err, &ce):
			t.Errorf("the damaged version is answered with %q, %v", r.Value, err)
		case i != 5 && err != nil:
			t.Error(err)
		}
	}
	report, err := db.Check(t.Context(), nil)
	if err != nil || !strings.Contains(fmt.Sprint(report.Problems), "checksum mismatch") {
		t.Errorf("the check says %v, %v", report, err)
	}
	clock.Add(2 * time.Hour)
	bolttest.Maintain(t, db)
	clock.Add(2 * time.Minute)
	bolttest.Maintain(t, db)
	if got := db.Stats(); got.Events != 1 || got.Oldest != got.Revision {
		t.Errorf("after all but the damaged event should be gone and forgotten: %+v", got)
	}
}

// TestDamageBehindTheIndex: a damaged record that an index which is made again begins with, and that no state which can
// be read needs, does not keep maintenance from its work.
func TestDamageBehindTheIndex(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	o := bolt.Options{Dir: t.TempDir(), Now: clock.Now, History: time.Minute}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 20, "needle")
	clock.Add(2 * time.Minute)
	bolttest.Maintain(t, db)
	bolttest.Maintain(t, db)
	if s := db.Stats(); s.Oldest <= 2 {
		t.Fatalf("nothing is compacted: %+v", s)
	}
	bolttest.Close(t, db)
	path := filepath.Join(o.Dir, "log-00000000000000000002.db")
	file := bytes.Replace(readFile(t, path), []byte("needle"), []byte("NEEDLE"), 1)
	if err := errors.Join(os.WriteFile(path, file, 0o600), os.Remove(filepath.Join(o.Dir, "index.db"))); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, o)
	bolttest.Maintain(t, db)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// R13: what is damaged can be dropped. All else stays, lists and backups work again, no older version comes back, and
// who watches from before the damage is told to list again.
func TestDropDamaged(t *testing.T) {
	t.Parallel()
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
			db := bolttest.Open(t, o)
			put := func(i int, value string) {
				t.Helper()
				if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, func(*store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte(value)}}, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			bolttest.Create(t, db, 20, "first")
			if err := db.Seal(); err != nil {
				t.Fatal(err)
			}
			put(5, "needle in the newest version")
			put(7, "replaced")
			if err := db.Seal(); err != nil {
				t.Fatal(err)
			}
			put(7, "last")
			if err := db.Compact(t.Context(), compress, nil); err != nil {
				t.Fatal(err)
			}
			revision, damaged := db.Stats().Revision, 1
			bolttest.Close(t, db)
			path := filepath.Join(o.Dir, "log-00000000000000000022.db")
			if compress {
				damaged = 2 // which have a checksum together
				spoilCells(t, path, func(v []byte) []byte {
					v[len(v)/2] ^= 4
					return v
				})
			} else if err := os.WriteFile(path, bytes.ReplaceAll(readFile(t, path), []byte("needle"), []byte("NEEDLE")), 0o600); err != nil {
				t.Fatal(err)
			}
			dropped, err := bolt.DropDamaged(t.Context(), o, nil)
			if err != nil || len(dropped.Damage) != damaged || !slices.Equal(dropped.Events, []string{bolttest.Key(5).String()}) {
				t.Fatalf("dropped was %+v, %v; want %d records, and event 5", dropped, err, damaged)
			}
			if again, err := bolt.DropDamaged(t.Context(), o, nil); err != nil || len(again.Damage)+len(again.Events) > 0 {
				t.Errorf("the second time %+v was dropped, %v", again, err)
			}
			db = bolttest.Open(t, o)
			defer bolttest.Close(t, db)
			bolttest.Check(t, db)
			if s := db.Stats(); s.Events != 19 || s.Revision < revision {
				t.Errorf("afterwards there is %+v; want 19 events and a revision from %d on", s, revision)
			}
			if _, err := store.Read(t.Context(), db, bolttest.Key(5)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the damaged event is answered with %v", err)
			}
			if r, err := store.Read(t.Context(), db, bolttest.Key(7)); err != nil || string(r.Value) != "last" {
				t.Errorf("event 7 is %q, %v", r.Value, err)
			}
			if _, err := db.Watch(t.Context(), store.WatchQuery{After: revision - 1}); err == nil {
				t.Error("a watch goes on over the gap")
			}
			put(5, "again")
			bolttest.Check(t, db)
		})
	}
}

// TestNameOfAnotherFile: a file of the log that says that it begins elsewhere than its name is refused: all its events
// would seem to be newer or older than they are.
func TestNameOfAnotherFile(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 3, "first")
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	bolttest.Close(t, db)
	path := filepath.Join(o.Dir, "log-00000000000000000002.db")
	if err := os.Rename(path, filepath.Join(o.Dir, "log-00000000000000000001.db")); err != nil {
		t.Fatal(err)
	}
	_, err := bolttest.OpenDB(o)
	if fe := new(store.FileError); !errors.As(err, &fe) || !strings.Contains(fe.Reason, "revision 2") {
		t.Errorf("opened with %v", err)
	}
}

// TestListOverDamagedColumns: a list with a selector is whole although a column of a file that has the records
// themselves is damaged.
func TestListOverDamagedColumns(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := bolttest.Open(t, o)
	const events, every = 800, 8 // one of eight is a warning
	bolttest.Fill(t, db, events, func(i int) (store.Key, store.Draft) {
		kind := "Normal"
		if i%every == 0 {
			kind = "Warning"
		}
		return bolttest.Key(i), store.Draft{Attributes: event.NewAttributes([event.NumFields]string{event.Type: kind}, nil), Value: []byte("value")}
	})
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	bolttest.Close(t, db)
	spoiled := 0
	editBucket(t, filepath.Join(o.Dir, "log-00000000000000000002.db"), "columns", func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if k[8] == typeColumn {
				spoiled++
				v = bytes.Clone(v)
				v[len(v)/2] ^= 4
				if err := b.Put(bytes.Clone(k), v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	db = bolttest.Open(t, o)
	defer func() {
		if err := db.Close(); err != nil { // the damage stays
			t.Error(err)
		}
	}()
	got := 0
	page, err := db.List(t.Context(), store.Query{Selector: field(event.Type, "Warning")}, func(*store.View) bool {
		got++
		return true
	})
	if err != nil || got != events/every || page.More || spoiled == 0 {
		t.Errorf("listed are %d events of %d, with %d damaged pieces: %v", got, events/every, spoiled, err)
	}
	count := store.Count{Range: store.Range{To: time.Now().Add(time.Hour)}, Filter: field(event.Type, "Warning").Filter(), Group: func(event.Dimensions, event.Regarding) int { return 0 }}
	if err := db.Timeline().Count(t.Context(), count, func(store.Occurred) {}); !errors.As(err, new(*store.CorruptError)) {
		t.Errorf("the same events are counted over the damage: %v", err)
	}
}

// typeColumn is the column of types.
const typeColumn = 1
