package maintenance_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/usage"
)

// TestProjectedAge: the age that is projected early is the one that the oldest event has
// when the limit begins to remove events, and the log says so once.
func TestProjectedAge(t *testing.T) {
	t.Parallel()
	const (
		limit = 12 << 20
		every = time.Minute
	)
	clock := newClock()
	var log bytes.Buffer
	p := bolttest.OpenParts(t, bolttest.PartsOptions{
		Now: clock.Now, MaxBytes: limit, SegmentBytes: usage.SegmentBytes(limit), Policy: maintenance.Policy{Retention: 1000 * time.Hour}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	value := []byte(strings.Repeat("x", 10_000))
	projected := map[int64]float64{} // by the number of events
	age, n := time.Duration(0), int64(0)
	for ; p.Usage.Live().Events == n; n++ {
		if n > 10_000 {
			t.Fatal("the limit removes nothing")
		}
		p.Create(t, store.Key{Namespace: "ns", Name: fmt.Sprintf("e%05d", n)}, store.Draft{Value: value})
		if n%10 == 9 {
			round(t, p)
			projected[n+1] = p.Metric(t, "store_projected_age_seconds")
		}
		age = time.Duration(n) * every
		clock.Add(every)
	}
	if early := projected[10]; early != 0 {
		t.Errorf("%.0f s after 10 events, which are too few", early)
	}
	known := 0
	for events, projection := range projected {
		if events < n/5 {
			continue
		}
		known++
		if ratio := projection / age.Seconds(); ratio < 0.75 || ratio > 1.25 {
			t.Errorf("after %d of %d events: %.2f of the age that they got, %s", events, n, ratio, age)
		}
	}
	if known == 0 {
		t.Error("nothing was projected")
	}
	if n := strings.Count(log.String(), "is going to remove events before"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	if got := p.Metric(t, "store_retention_seconds"); got != (1000 * time.Hour).Seconds() {
		t.Errorf("retention %.0f s", got)
	}
}

// TestProjectionAndRules: the longest retention counts, and only a projection that can be
// trusted does.
func TestProjectionAndRules(t *testing.T) {
	t.Parallel()
	const limit = 72 << 20
	for name, c := range map[string]struct {
		policy maintenance.Policy
		age    bool // is projected
		kept   time.Duration
		warned bool
	}{
		"a longer rule": {maintenance.Policy{Retention: 30 * time.Minute, Rules: parse(t, "[{name: a, keep: 9000h}]")}, true, 9000 * time.Hour, true},
		"a shorter rule, not yet at work": {
			maintenance.Policy{Retention: 9000 * time.Hour, Rules: parse(t, "[{name: a, where: type=Warning, keep: 3h}]")}, false, 9000 * time.Hour, false,
		},
		"for ever":           {maintenance.Policy{}, true, usage.Forever, true},
		"a rule for ever":    {maintenance.Policy{Retention: 30 * time.Minute, Rules: parse(t, "[{name: a, keep: 0}]")}, true, usage.Forever, true},
		"not compressed yet": {maintenance.Policy{Retention: 9000 * time.Hour, CompressAfter: 100 * time.Hour}, false, 9000 * time.Hour, false},
		"as long as is kept": {maintenance.Policy{Retention: 3 * time.Hour}, true, 3 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			var log bytes.Buffer
			p := bolttest.OpenParts(t, bolttest.PartsOptions{Now: clock.Now, MaxBytes: limit, SegmentBytes: 64 << 20, Policy: c.policy, Log: slog.New(slog.NewTextHandler(&log, nil))})
			createMany(t, p, "a", 20)
			clock.Add(50 * time.Minute)
			createMany(t, p, "b", 200)
			round(t, p)
			if age := p.Metric(t, "store_projected_age_seconds"); (age > 0) != c.age {
				t.Errorf("projected: %.0f s", age)
			}
			if got := p.Metric(t, "store_retention_seconds"); got != c.kept.Seconds() {
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
			clock := newClock()
			var log bytes.Buffer
			p := bolttest.OpenParts(t, bolttest.PartsOptions{
				Now: clock.Now, MaxBytes: test.limit, SegmentBytes: 64 << 20, Policy: maintenance.Policy{Retention: 100 * time.Hour}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			createMany(t, p, "a", 20)
			clock.Add(2 * time.Hour)
			round(t, p)
			if age := p.Metric(t, "store_projected_age_seconds"); (age > (100*time.Hour).Seconds()) != test.projected || !test.projected && age != 0 {
				t.Errorf("projected: %.0f s", age)
			}
			if strings.Contains(log.String(), "is going to remove events before") {
				t.Error(log.String())
			}
		})
	}
}
