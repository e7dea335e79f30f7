package maintenance_test

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/storetest/parts"
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

func round(t testing.TB, p *parts.Parts) {
	t.Helper()
	if err := p.Maintenance.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// createMany creates n events of 20 kB.
func createMany(t testing.TB, p *parts.Parts, prefix string, n int) {
	t.Helper()
	for i := range n {
		p.Create(t, store.Key{Namespace: "ns", Name: fmt.Sprint(prefix, i)}, store.Draft{Value: make([]byte, 20_000)})
	}
}

// R11: the first rule that fits an event says how long it is kept.
func TestRetentionRules(t *testing.T) {
	t.Parallel()
	clock := newClock()
	p := parts.Open(t, parts.Options{Now: clock.Now, Policy: maintenance.Policy{Retention: 2 * time.Hour, Rules: []maintenance.Rule{
		{Namespace: "kept", Type: "Warning"},
		{Type: "Normal", Retention: time.Hour},
		{Namespace: "kept", Retention: 4 * time.Hour},
	}}})
	all := map[store.Key]int{ // the hours that it is kept; 0: for ever
		{Namespace: "kept", Name: "Warning"}:  0,
		{Namespace: "kept", Name: "Normal"}:   1,
		{Namespace: "kept", Name: "Odd"}:      4,
		{Namespace: "other", Name: "Warning"}: 2,
		{Namespace: "other", Name: "Normal"}:  1,
		{Namespace: "other", Name: "Odd"}:     2,
	}
	for key := range all {
		p.Create(t, key, store.Draft{Attributes: event.NewAttributes([event.NumFields]string{event.Type: key.Name}, nil)})
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

func TestShadowed(t *testing.T) {
	t.Parallel()
	rule := func(namespace, kind string) maintenance.Rule {
		return maintenance.Rule{Namespace: namespace, Type: kind}
	}
	for name, test := range map[string]struct {
		rules []maintenance.Rule
		want  map[int]int
	}{
		"none":                    {nil, nil},
		"special ones first":      {[]maintenance.Rule{rule("dev", "Warning"), rule("dev", ""), rule("", "Warning"), rule("", "")}, nil},
		"overlapping":             {[]maintenance.Rule{rule("", "Warning"), rule("dev", "")}, nil},
		"twice":                   {[]maintenance.Rule{rule("dev", "Normal"), rule("dev", "Normal")}, map[int]int{1: 0}},
		"behind its namespace":    {[]maintenance.Rule{rule("dev", ""), rule("dev", "Normal"), rule("", "Normal")}, map[int]int{1: 0}},
		"behind its type":         {[]maintenance.Rule{rule("a", ""), rule("", "Normal"), rule("dev", "Normal")}, map[int]int{2: 1}},
		"behind all":              {[]maintenance.Rule{rule("", ""), rule("dev", ""), rule("", "Normal")}, map[int]int{1: 0, 2: 0}},
		"in other words the same": {[]maintenance.Rule{rule("a", "Normal"), rule("b", "Normal"), rule("a", "Warning")}, nil},
	} {
		if got := maintenance.Shadowed(test.rules); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
