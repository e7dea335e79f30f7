package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/waittest"
)

// expires checks that nothing can be read at a revision, or watched after it.
func expires(t *testing.T, db *bolt.DB, revision uint64) {
	t.Helper()
	expired := new(store.ExpiredError)
	if _, _, err := store.Records(t.Context(), db, store.Query{Revision: revision}); !errors.As(err, &expired) {
		t.Errorf("list at %d: %v", revision, err)
	}
	if _, err := db.Watch(t.Context(), store.WatchQuery{After: revision}); !errors.As(err, &expired) {
		t.Errorf("watch after %d: %v", revision, err)
	}
	if err := db.Changes(t.Context(), revision, db.Revision(), nil); !errors.As(err, &expired) {
		t.Errorf("changes after %d: %v", revision, err)
	}
}

// R4: no revision that was given out means something else in a restored store,
// however often a backup is restored; who knows one has to list again.
func TestRestoreReusesNoRevision(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	bolttest.Create(t, db, 7, "value")
	revision, backup := backUp(t, db)
	for range 5 { // after the backup: clients have seen these
		if _, err := db.Update(t.Context(), bolttest.Key(1), store.Any, bolttest.Change); err != nil {
			t.Fatal(err)
		}
	}
	newest := db.Revision()
	bolttest.Close(t, db)

	for round := range 4 {
		o := bolt.Options{Dir: filepath.Join(t.TempDir(), "store")}
		report, err := bolt.Restore(t.Context(), o.Dir, bytes.NewReader(backup), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, index := range []string{"kept", "removed"} {
			if index == "removed" {
				if err := os.Remove(filepath.Join(o.Dir, "index.db")); err != nil {
					t.Fatal(err)
				}
			}
			db = bolttest.Open(t, o)
			if s := db.Stats(); s.Events != 7 || s.Revision != report.CompactRevision || s.Oldest != s.Revision || s.Revision <= newest {
				t.Fatalf("round %d, index %s: %+v, reported %+v, newest before %d", round, index, s, report, newest)
			}
			for _, known := range []uint64{2, revision, newest, db.Revision() - 1} {
				expires(t, db, known)
			}
			future := new(store.FutureError)
			if _, err := db.Watch(t.Context(), store.WatchQuery{After: db.Revision() + 1}); !errors.As(err, &future) {
				t.Errorf("watch after a revision to come: %v", err)
			}
			bolttest.Check(t, db)
			bolttest.Close(t, db)
		}
		db = bolttest.Open(t, o)
		w, err := db.Watch(t.Context(), store.WatchQuery{After: report.CompactRevision})
		if err != nil {
			t.Fatal(err)
		}
		r, err := db.Update(t.Context(), bolttest.Key(1), store.Any, bolttest.Change)
		if err != nil || r.Record.Revision <= newest {
			t.Fatalf("revision %d, %v; %d was given out", r.Record.Revision, err, newest)
		}
		if b, err := storetest.Next(t, w); err != nil || len(b.Changes) != 1 || b.Changes[0].Revision != r.Record.Revision {
			t.Errorf("%+v, %v", b, err)
		}
		if err := db.Compact(t.Context(), false, nil); err != nil { // also makes the index again
			t.Fatal(err)
		}
		bolttest.Check(t, db)
		newest = db.Revision()
		if round == 2 { // of a store that was restored
			revision, backup = backUp(t, db)
		}
		bolttest.Close(t, db)
	}
}

// An open store that is bumped goes on: writers, readers of the newest state and
// watches notice nothing, but that revisions have a gap.
func TestBumpWhileOpen(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 16 << 10, MemtableLimit: 50, RingEntries: 32, History: time.Nanosecond})
	defer bolttest.Close(t, db)
	bolttest.Create(t, db, 50, "value")
	from := db.Revision()
	w, err := db.Watch(t.Context(), store.WatchQuery{After: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	const each = 100
	for n := range 4 {
		all.Go(func() {
			for i := range each {
				if _, err := db.Update(t.Context(), bolttest.Key(n), store.Any, func(*store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "%d", i)}}, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if records, _, err := store.Records(t.Context(), db, store.Query{}); err != nil || len(records) != 50 {
				t.Errorf("%d events, %v", len(records), err)
			}
		}
	})
	all.Go(func() { // must not move the compact revision back
		for ctx.Err() == nil {
			if err := db.Maintain(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	var oldest uint64
	for range 5 {
		if now := db.Stats().Oldest; now < oldest {
			t.Errorf("the oldest revision is %d, and was %d", now, oldest)
		}
		known := db.Revision()
		revision, err := db.BumpRevision(t.Context(), 0)
		if err != nil || revision <= known {
			t.Errorf("bumped from %d to %d, %v", known, revision, err)
		}
		expires(t, db, known)
		oldest = revision
	}
	seen, last := map[store.Key]int{}, from
	for n := 0; n < 4*each; {
		b, err := storetest.Next(t, w)
		if expired := new(store.ExpiredError); errors.As(err, &expired) {
			// It was too slow for the ring: then it has to be told.
			t.Logf("the watch had to begin again behind %d changes", n)
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if d.Revision <= last {
				t.Errorf("revision %d after %d", d.Revision, last)
			}
			last = d.Revision
			if string(d.Object.Value) != fmt.Sprint(seen[d.Object.Key]) {
				t.Errorf("%s: %s, want %d", d.Object.Key, d.Object.Value, seen[d.Object.Key])
			}
			seen[d.Object.Key]++
			n++
		}
	}
	cancel()
	waittest.Join(t, &all)
	if err := db.Compact(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	bolttest.Check(t, db)
}

// The clock goes on from the last write, although that has not the newest revision.
func TestClockBehindABump(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	o := bolt.Options{Dir: t.TempDir(), Now: clock.Now}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 3, "value")
	if _, err := db.BumpRevision(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	written, err := store.Read(t.Context(), db, bolttest.Key(2))
	if err != nil {
		t.Fatal(err)
	}
	bolttest.Close(t, db)
	clock.Add(-time.Hour)
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	r, err := db.Update(t.Context(), bolttest.Key(2), store.Any, bolttest.Change)
	if err != nil || r.Record.Time.Before(written.Time) {
		t.Errorf("written at %s, %v, after %s", r.Record.Time, err, written.Time)
	}
}

func TestBumped(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 21, 0, 0, 0, time.UTC)
	micros := uint64(now.UnixMicro())
	for name, c := range map[string]struct {
		known uint64
		now   time.Time
		want  uint64
	}{
		"a young store":          {13, now, micros},
		"a store restored today": {micros - 1_000_000, now, micros},
		"the clock is behind":    {micros + 5, now, micros + 5 + 1_000_000_000},
		"it stands":              {micros, now, micros + 1_000_000_000},
		"it is before 1970":      {13, time.Unix(-1, 0), 1_000_000_013},
	} {
		if got := bolt.Bumped(c.known, c.now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if end := bolt.Bumped(0, time.Date(2255, 1, 1, 0, 0, 0, 0, time.UTC)); end >= 1<<53 {
		t.Errorf("%d is no number that a float64 holds", end)
	}
}
