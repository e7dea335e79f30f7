package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/maintenance"
)

// clock is a wall clock that the test moves.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.nanos.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time      { return time.Unix(0, c.nanos.Load()) }
func (c *clock) Add(d time.Duration) { c.nanos.Add(int64(d)) }

func round(t testing.TB, p *bolttest.Parts) {
	t.Helper()
	if err := p.Maintenance.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// createMany creates n events of 20 kB.
func createMany(t testing.TB, p *bolttest.Parts, prefix string, n int) {
	t.Helper()
	for i := range n {
		p.Create(t, store.Key{Namespace: "ns", Name: fmt.Sprint(prefix, i)}, store.Draft{Value: make([]byte, 20_000)})
	}
}

// parse returns rules that a test may replace.
func parse(t testing.TB, text string) func() *rules.Set {
	t.Helper()
	set, err := rules.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return func() *rules.Set { return set }
}

// ofType creates an event of a type.
func ofType(t testing.TB, p *bolttest.Parts, key store.Key, kind string) {
	t.Helper()
	p.Create(t, key, store.Draft{Attributes: event.NewAttributes([event.NumFields]string{event.Type: kind}, nil)})
}

// R11: the first rule that fits an event says how long it is kept. A rule with drop is passed over.
func TestRetentionRules(t *testing.T) {
	t.Parallel()
	clock := newClock()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{Now: clock.Now, Policy: maintenance.Policy{Retention: 2 * time.Hour, Rules: parse(t, `
- {name: dropped, where: "type in (Normal,Odd)", drop: true}
- {name: ever, where: type=Warning, namespaces: [kept], keep: 0}
- {name: normal, where: type=Nor*, keep: 1h}
- {name: rest, namespaces: ["kep*"], keep: 4h}`)}})
	all := map[store.Key]int{ // the hours that it is kept; 0: for ever
		{Namespace: "kept", Name: "Warning"}:  0,
		{Namespace: "kept", Name: "Normal"}:   1,
		{Namespace: "kept", Name: "Odd"}:      4,
		{Namespace: "other", Name: "Warning"}: 2,
		{Namespace: "other", Name: "Normal"}:  1,
		{Namespace: "other", Name: "Odd"}:     2,
	}
	for key := range all {
		ofType(t, p, key, key.Name)
	}
	for hours := range 6 {
		clock.Add(time.Second)
		round(t, p)
		for key, until := range all {
			if _, exists := p.Read(t, key); exists != (until == 0 || hours < until) {
				t.Errorf("%s after %d hours: exists %t", key, hours, exists)
			}
		}
		clock.Add(time.Hour)
	}
}

// TestEightDurations: events of as many different retentions as there can be go each in their hour, whenever they were
// written.
func TestEightDurations(t *testing.T) {
	t.Parallel()
	clock := newClock()
	var text strings.Builder
	for n := range rules.MaxDurations {
		fmt.Fprintf(&text, "- {name: r%d, where: type=T%d, keep: %dh}\n", n, n, n+1)
	}
	p := bolttest.OpenParts(t, bolttest.PartsOptions{Now: clock.Now, Policy: maintenance.Policy{Retention: 20 * time.Hour, Rules: parse(t, text.String())}})
	due := map[store.Key]int{} // hours after the begin
	for hour := range 22 {
		if hour < 4 {
			for n := range rules.MaxDurations + 1 {
				key := store.Key{Namespace: "ns", Name: fmt.Sprintf("e%d-%d", hour, n)}
				ofType(t, p, key, fmt.Sprint("T", n))
				if due[key] = hour + n + 1; n == rules.MaxDurations {
					due[key] = hour + 20
				}
			}
		}
		clock.Add(time.Second)
		round(t, p)
		for key, until := range due {
			if _, exists := p.Read(t, key); exists != (hour < until) {
				t.Errorf("%s after %d hours, due after %d: exists %t", key, hour, until, exists)
			}
		}
		clock.Add(time.Hour)
	}
}

// TestChangedRules: rules that keep events for less than those before delete those too over which expiry has passed
// already.
func TestChangedRules(t *testing.T) {
	t.Parallel()
	clock := newClock()
	first, second := parse(t, "[{name: a, where: type=Normal, keep: 1h}]"), parse(t, "[{name: a, where: type=Normal, keep: 1h}, {name: b, where: type=Warning, keep: 1h}]")
	now := first
	p := bolttest.OpenParts(t, bolttest.PartsOptions{Now: clock.Now, Policy: maintenance.Policy{Retention: 9 * time.Hour, Rules: func() *rules.Set { return now() }}})
	for _, kind := range []string{"Normal", "Warning", "Odd"} {
		ofType(t, p, store.Key{Namespace: "ns", Name: kind}, kind)
	}
	exist := func(want ...string) {
		t.Helper()
		clock.Add(2 * time.Hour)
		round(t, p)
		for _, kind := range []string{"Normal", "Warning", "Odd"} {
			if _, exists := p.Read(t, store.Key{Namespace: "ns", Name: kind}); exists != slices.Contains(want, kind) {
				t.Errorf("%s exists: %t", kind, exists)
			}
		}
	}
	exist("Warning", "Odd")
	now = second
	exist("Odd")
	now = parse(t, "[{name: ever, keep: 0}]")
	clock.Add(20 * time.Hour)
	exist("Odd")
	now = first
	exist()
}
