package maintenance_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// R11: events go when their time has come, watchers are told, their states
// stay readable as history for as long again, and then the disk is free.
func TestRetention(t *testing.T) {
	t.Parallel()
	clock, dir := bolttest.NewClock(), t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir, Now: clock.Now, Retention: time.Hour, SegmentBytes: 1 << 20, MemtableLimit: 300})
	defer func() { bolttest.Close(t, db) }()
	const n = 3000
	bolttest.Create(t, db, n, strings.Repeat("x", 2000))
	full := db.Revision()
	clock.Add(50 * time.Minute)
	for i := range 10 { // a write renews an event's life
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, bolttest.Change); err != nil {
			t.Fatal(err)
		}
	}
	bolttest.Maintain(t, db)
	if s := db.Stats(); s.Events != n {
		t.Fatalf("%d events before their time, want %d", s.Events, n)
	}
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	clock.Add(11 * time.Minute)
	bolttest.Maintain(t, db)
	bolttest.Check(t, db)
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

	clock.Add(2 * time.Hour)
	bolttest.Maintain(t, db)
	bolttest.Check(t, db)
	expired := new(store.ExpiredError)
	if _, _, err := store.Records(t.Context(), db, store.Query{Revision: full}); !errors.As(err, &expired) {
		t.Errorf("list of a state that is no longer held: %v", err)
	}
	clock.Add(2 * time.Hour) // now the deletions themselves are history
	bolttest.Maintain(t, db)
	bolttest.Maintain(t, db)
	bolttest.Check(t, db)
	s := db.Stats()
	if s.Events != 0 || s.LiveBytes != 0 || s.HistoryBytes != 0 {
		t.Errorf("left: %+v", s)
	}
	if got := bolttest.DirBytes(t, dir); got > 16<<20 {
		t.Errorf("%d MiB of files are left", got>>20)
	}
	revision := db.Revision()
	bolttest.Close(t, db)
	db = bolttest.Open(t, bolt.Options{Dir: dir, Now: clock.Now, Retention: time.Hour})
	if db.Revision() != revision {
		t.Errorf("revision %d after a restart, %d before", db.Revision(), revision)
	}
	bolttest.Check(t, db)
}

// R11: many updates of few events leave much dead and little alive in every
// file; that space comes back too, while readers go on.
func TestCompactionKeepsWhatIsAlive(t *testing.T) {
	t.Parallel()
	clock, dir := bolttest.NewClock(), t.TempDir()
	o := bolt.Options{Dir: dir, Now: clock.Now, History: time.Minute, SegmentBytes: 1 << 20, MemtableLimit: 500}
	db := bolttest.Open(t, o)
	defer func() { bolttest.Close(t, db) }()
	bolttest.Create(t, db, 1000, strings.Repeat("x", 500))
	for round := range 8 {
		storetest.Parallel(t, 900, func(i int) {
			if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "%d %0500d", round, i)}}, nil
			}); err != nil {
				t.Error(err)
			}
		})
		for i := range 10 {
			if _, err := db.Update(t.Context(), bolttest.Key(900+10*round+i), store.Any, bolttest.Remove); err != nil {
				t.Fatal(err)
			}
		}
		clock.Add(time.Hour)
		bolttest.Maintain(t, db)
		bolttest.Check(t, db)
	}
	clock.Add(time.Hour)
	bolttest.Maintain(t, db)
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
	before := bolttest.Dump(t, db)
	bolttest.Close(t, db)
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, o)
	bolttest.Check(t, db)
	if diff := cmp.Diff(before, bolttest.Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	bolttest.Maintain(t, db)
	bolttest.Check(t, db)
}

// TestNoRetention: in a store without a retention, as eventsvc open has one, nothing ever expires.
func TestNoRetention(t *testing.T) {
	t.Parallel()
	clock := bolttest.NewClock()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: clock.Now})
	defer bolttest.Close(t, db)
	bolttest.Create(t, db, 1, "v")
	clock.Add(10 * 365 * 24 * time.Hour)
	bolttest.Maintain(t, db)
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
			clock := bolttest.NewClock()
			o := bolt.Options{Dir: t.TempDir(), Now: clock.Now, Retention: time.Hour}
			db := bolttest.Open(t, o)
			bolttest.Create(t, db, 1, "v")
			clock.Add(30 * time.Minute)
			if _, err := store.Create(t.Context(), db, store.Key{Namespace: "other", Name: "renewed"}, store.Draft{}); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Update(t.Context(), store.Key{Namespace: "other", Name: "renewed"}, store.Any, bolttest.Remove); err != nil {
				t.Fatal(err)
			}
			revision := db.Revision()
			bolttest.Close(t, db)
			clock.Add(tt.jump)
			said, registry := new(bolttest.SyncBuffer), prometheus.NewRegistry()
			o.Log, o.Registry = slog.New(slog.NewTextHandler(said, nil)), registry
			db = bolttest.Open(t, o)
			defer bolttest.Close(t, db)
			if text := said.String(); tt.says == "" && strings.Contains(text, "clock") || !strings.Contains(text, tt.says) {
				t.Errorf("said %q, want %q", text, tt.says)
			}
			if held := bolttest.Gauge(t, registry, "store_expiry_held_seconds"); held != tt.held.Seconds() {
				t.Errorf("expiry is %v s behind, want %s", held, tt.held)
			}
			clock.Add(tt.wait)
			bolttest.Maintain(t, db)
			if s := db.Stats(); s.Events != tt.want {
				t.Errorf("%d events, want %d", s.Events, tt.want)
			}
			r, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "after"}, store.Draft{})
			if err != nil || r.Revision <= revision {
				t.Errorf("revision %d after %d, %v", r.Revision, revision, err)
			}
			clock.Add(7 * time.Hour)
			bolttest.Maintain(t, db)
			if s := db.Stats(); s.Events != 0 {
				t.Errorf("%d events 7 hours later", s.Events)
			}
			if held := bolttest.Gauge(t, registry, "store_expiry_held_seconds"); held != 0 {
				t.Errorf("expiry is still %v s behind", held)
			}
		})
	}
}
