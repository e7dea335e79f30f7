package bolt_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
)

// fakeClock is a wall clock that the test moves.
type fakeClock struct{ unix atomic.Int64 }

func newFakeClock() *fakeClock {
	c := new(fakeClock)
	c.unix.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *fakeClock) now() time.Time      { return time.Unix(0, c.unix.Load()) }
func (c *fakeClock) add(d time.Duration) { c.unix.Add(int64(d)) }

func maintain(t testing.TB, db *bolt.DB) {
	t.Helper()
	if err := db.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func dirBytes(t testing.TB, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// R11: events go when their time has come, watchers are told, their states
// stay readable as history for as long again, and then the disk is free.
func TestRetention(t *testing.T) {
	t.Parallel()
	clock, dir := newFakeClock(), t.TempDir()
	db := open(t, bolt.Options{Dir: dir, Now: clock.now, Retention: time.Hour, SegmentBytes: 1 << 20, MemtableLimit: 300})
	defer func() { closeDB(t, db) }()
	const n = 3000
	create(t, db, n, strings.Repeat("x", 2000))
	full := db.Revision()
	clock.add(50 * time.Minute)
	for i := range 10 { // a write renews an event's life
		if _, err := db.Update(t.Context(), key(i), store.Any, count0); err != nil {
			t.Fatal(err)
		}
	}
	maintain(t, db)
	if s := db.Stats(); s.Events != n {
		t.Fatalf("%d events before their time, want %d", s.Events, n)
	}
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	clock.add(11 * time.Minute)
	maintain(t, db)
	check(t, db)
	if s := db.Stats(); s.Events != 10 {
		t.Errorf("%d events after their time, want the 10 that were renewed", s.Events)
	}
	removed := map[string]bool{}
	for len(removed) < n-10 {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if d.Type != store.Removed || len(d.Object.Value) != 2000 || removed[d.Object.Name] {
				t.Fatalf("told of %s: type %d, %d bytes", d.Object.Name, d.Type, len(d.Object.Value))
			}
			removed[d.Object.Name] = true
		}
	}
	if _, page, err := store.Records(t.Context(), db, store.Query{Revision: full, Limit: 1, Count: true}); err != nil || page.Remaining != n-1 {
		t.Errorf("the state before is history: %d remaining, %v", page.Remaining, err)
	}

	clock.add(2 * time.Hour)
	maintain(t, db)
	check(t, db)
	expired := new(store.ExpiredError)
	if _, _, err := store.Records(t.Context(), db, store.Query{Revision: full}); !errors.As(err, &expired) {
		t.Errorf("list of a state that is no longer held: %v", err)
	}
	clock.add(2 * time.Hour) // now the deletions themselves are history
	maintain(t, db)
	maintain(t, db)
	check(t, db)
	s := db.Stats()
	if s.Events != 0 || s.LiveBytes != 0 || s.HistoryBytes != 0 {
		t.Errorf("left: %+v", s)
	}
	if got := dirBytes(t, dir); got > 16<<20 {
		t.Errorf("%d MiB of files are left", got>>20)
	}
	revision := db.Revision()
	closeDB(t, db)
	db = open(t, bolt.Options{Dir: dir, Now: clock.now, Retention: time.Hour})
	if db.Revision() != revision {
		t.Errorf("revision %d after a restart, %d before", db.Revision(), revision)
	}
	check(t, db)
}

// R11: many updates of few events leave much dead and little alive in every
// file; that space comes back too, while readers go on.
func TestCompactionKeepsWhatIsAlive(t *testing.T) {
	t.Parallel()
	clock, dir := newFakeClock(), t.TempDir()
	o := bolt.Options{Dir: dir, Now: clock.now, History: time.Minute, SegmentBytes: 1 << 20, MemtableLimit: 500}
	db := open(t, o)
	defer func() { closeDB(t, db) }()
	create(t, db, 1000, strings.Repeat("x", 500))
	for round := range 8 {
		storetest.Parallel(t, 900, func(i int) {
			if _, err := db.Update(t.Context(), key(i), store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "%d %0500d", round, i)}}, nil
			}); err != nil {
				t.Error(err)
			}
		})
		for i := range 10 {
			if _, err := db.Update(t.Context(), key(900+10*round+i), store.Any, remove); err != nil {
				t.Fatal(err)
			}
		}
		clock.add(time.Hour)
		maintain(t, db)
		check(t, db)
	}
	clock.add(time.Hour)
	maintain(t, db)
	s := db.Stats()
	if s.Events != 920 || float64(s.FileBytes) > 1.5*float64(s.LiveBytes+s.HistoryBytes)+(64<<20) {
		t.Errorf("%+v: the files are too large", s)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "log-*.db"))
	if err != nil || len(logs) > 6 {
		t.Errorf("%d log files, %v", len(logs), err)
	}

	// Versions that are dead but still in the files do not come back to life
	// when the index is made again.
	before := dump(t, db)
	closeDB(t, db)
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	db = open(t, o)
	check(t, db)
	if diff := cmp.Diff(before, dump(t, db)); diff != "" {
		t.Error(diff)
	}
	maintain(t, db)
	check(t, db)
}

// gauge reads a gauge.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// TestNoRetention: in a store without a retention, as eventsvc open has one, nothing ever expires.
func TestNoRetention(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	db := open(t, bolt.Options{Dir: t.TempDir(), Now: clock.now})
	defer closeDB(t, db)
	create(t, db, 1, "v")
	clock.add(10 * 365 * 24 * time.Hour)
	maintain(t, db)
	if s := db.Stats(); s.Events != 1 {
		t.Errorf("%d events, want 1", s.Events)
	}
}

// R16: jumps of the wall clock, found at start. Those that are not followed are
// said, and expiry that is delayed is seen in the metrics for as long.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	const (
		aheadWarning  = `level=WARN msg="the system clock is far ahead of the last write`
		behindWarning = `level=WARN msg="the system clock is behind the last write`
	)
	tests := []struct {
		name string
		jump time.Duration
		wait time.Duration // until maintenance
		want int64         // events left of one that is 30 minutes old and kept for 1 hour
		says string        // at start
		held time.Duration // what expiry is behind, as the metric has it
	}{
		{name: "none", want: 1},
		{name: "a little", jump: 20 * time.Minute, want: 1},
		{name: "stopped past the retention", jump: 2 * time.Hour, want: 0},
		{name: "a day ahead", jump: 24 * time.Hour, want: 1, says: aheadWarning, held: 24 * time.Hour},
		{name: "a day ahead, then the retention", jump: 24 * time.Hour, wait: 31 * time.Minute, want: 0, says: aheadWarning, held: 24 * time.Hour},
		{name: "a day back", jump: -24 * time.Hour, want: 1, says: behindWarning},
		{name: "a day back, then the retention", jump: -24 * time.Hour, wait: 29 * time.Minute, want: 1, says: behindWarning},
		{name: "a day back, longer", jump: -24 * time.Hour, wait: 31 * time.Minute, want: 0, says: behindWarning},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			clock := newFakeClock()
			o := bolt.Options{Dir: t.TempDir(), Now: clock.now, Retention: time.Hour}
			db := open(t, o)
			create(t, db, 1, "v")
			clock.add(30 * time.Minute)
			if _, err := store.Create(t.Context(), db, store.Key{Namespace: "other", Name: "renewed"}, store.Draft{}); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Update(t.Context(), store.Key{Namespace: "other", Name: "renewed"}, store.Any, remove); err != nil {
				t.Fatal(err)
			}
			revision := db.Revision()
			closeDB(t, db)
			clock.add(tt.jump)
			said, registry := new(syncBuffer), prometheus.NewRegistry()
			o.Log, o.Registry = slog.New(slog.NewTextHandler(said, nil)), registry
			db = open(t, o)
			defer closeDB(t, db)
			if text := said.String(); tt.says == "" && strings.Contains(text, "clock") || !strings.Contains(text, tt.says) {
				t.Errorf("said %q, want %q", text, tt.says)
			}
			if held := gauge(t, registry, "store_expiry_held_seconds"); held != tt.held.Seconds() {
				t.Errorf("expiry is %v s behind, want %s", held, tt.held)
			}
			clock.add(tt.wait)
			maintain(t, db)
			if s := db.Stats(); s.Events != tt.want {
				t.Errorf("%d events, want %d", s.Events, tt.want)
			}
			r, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "after"}, store.Draft{})
			if err != nil || r.Revision <= revision {
				t.Errorf("revision %d after %d, %v", r.Revision, revision, err)
			}
			clock.add(7 * time.Hour)
			maintain(t, db)
			if s := db.Stats(); s.Events != 0 {
				t.Errorf("%d events 7 hours later", s.Events)
			}
			if held := gauge(t, registry, "store_expiry_held_seconds"); held != 0 {
				t.Errorf("expiry is still %v s behind", held)
			}
		})
	}
}
