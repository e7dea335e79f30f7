package bolt_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/usage"
)

// TestProjectedAge: the age that is projected early is the one that the oldest event has
// when the limit begins to remove events, and the log says so once.
func TestProjectedAge(t *testing.T) {
	t.Parallel()
	const (
		limit = 24 << 20
		every = time.Minute
	)
	clock := newFakeClock()
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	db := open(t, bolt.Options{
		Dir: t.TempDir(), Now: clock.now, MaxBytes: limit, MinFree: -1, SegmentBytes: 1 << 20, Retention: 1000 * time.Hour,
		Registry: registry, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	defer closeDB(t, db)
	value := []byte(strings.Repeat("x", 10_000))
	projected := map[int64]float64{} // by the number of events
	age, n := time.Duration(0), int64(0)
	for ; db.Stats().Events == n; n++ {
		if n > 10_000 {
			t.Fatal("the limit removes nothing")
		}
		_, err := db.Update(t.Context(), store.Key{Namespace: "ns", Name: fmt.Sprintf("e%05d", n)}, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: value}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n%10 == 9 {
			maintain(t, db)
			projected[n+1] = gauge(t, registry, "store_projected_age_seconds")
		}
		age = time.Duration(n) * every
		clock.add(every)
	}
	if p := projected[10]; p != 0 {
		t.Errorf("%.0f s after 10 events, which are too few", p)
	}
	known := 0
	for events, p := range projected {
		if events < n/5 {
			continue
		}
		known++
		if ratio := p / age.Seconds(); ratio < 0.75 || ratio > 1.25 {
			t.Errorf("after %d of %d events: %.2f of the age that they got, %s", events, n, ratio, age)
		}
	}
	if known == 0 {
		t.Error("nothing was projected")
	}
	if n := strings.Count(log.String(), "is going to remove events before"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	if got := gauge(t, registry, "store_retention_seconds"); got != (1000 * time.Hour).Seconds() {
		t.Errorf("retention %.0f s", got)
	}
}

// TestProjectionAndRules: the longest retention counts, and only a projection that can be
// trusted does.
func TestProjectionAndRules(t *testing.T) {
	t.Parallel()
	const limit = 72 << 20
	for name, c := range map[string]struct {
		options bolt.Options
		age     bool // is projected
		kept    time.Duration
		warned  bool
	}{
		"a longer rule": {bolt.Options{Retention: 30 * time.Minute, Rules: []maintenance.Rule{{Retention: 9000 * time.Hour}}}, true, 9000 * time.Hour, true},
		"a shorter rule, not yet at work": {
			bolt.Options{Retention: 9000 * time.Hour, Rules: []maintenance.Rule{{Type: "Warning", Retention: 3 * time.Hour}}}, false, 9000 * time.Hour, false,
		},
		"for ever":           {bolt.Options{}, true, usage.Forever, true},
		"a rule for ever":    {bolt.Options{Retention: 30 * time.Minute, Rules: []maintenance.Rule{{}}}, true, usage.Forever, true},
		"not compressed yet": {bolt.Options{Retention: 9000 * time.Hour, CompressAfter: 100 * time.Hour}, false, 9000 * time.Hour, false},
		"as long as is kept": {bolt.Options{Retention: 3 * time.Hour}, true, 3 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, registry := newFakeClock(), prometheus.NewRegistry()
			var log bytes.Buffer
			o := c.options
			o.Dir, o.Now, o.MaxBytes, o.MinFree, o.Registry, o.Log = t.TempDir(), clock.now, limit, -1, registry, slog.New(slog.NewTextHandler(&log, nil))
			db := open(t, o)
			defer closeDB(t, db)
			fillUp(t, db, "a", 20)
			clock.add(50 * time.Minute)
			fillUp(t, db, "b", 200)
			maintain(t, db)
			if p := gauge(t, registry, "store_projected_age_seconds"); (p > 0) != c.age {
				t.Errorf("projected: %.0f s", p)
			}
			if got := gauge(t, registry, "store_retention_seconds"); got != c.kept.Seconds() {
				t.Errorf("retention %.0f s", got)
			}
			if strings.Contains(log.String(), "is going to remove events before") != c.warned {
				t.Errorf("warned: %q", log.String())
			}
		})
	}
}

// TestNoProjection: without a limit, and when everything fits, there is nothing to warn of.
func TestNoProjection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit     int64
		projected bool
	}{"no limit": {-1, false}, "enough": {1 << 40, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newFakeClock()
			registry := prometheus.NewRegistry()
			var log bytes.Buffer
			db := open(t, bolt.Options{
				Dir: t.TempDir(), Now: clock.now, MaxBytes: test.limit, MinFree: -1, Retention: 100 * time.Hour,
				Registry: registry, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			defer closeDB(t, db)
			fillUp(t, db, "a", 20)
			clock.add(2 * time.Hour)
			maintain(t, db)
			if p := gauge(t, registry, "store_projected_age_seconds"); (p > (100*time.Hour).Seconds()) != test.projected || !test.projected && p != 0 {
				t.Errorf("projected: %.0f s", p)
			}
			if strings.Contains(log.String(), "is going to remove events before") {
				t.Error(log.String())
			}
		})
	}
}
