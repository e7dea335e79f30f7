package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
)

// rateWindow is the time before now for which rates are counted, if the events are that old.
const rateWindow = time.Hour

// Part are the events of a namespace, a type or a reporter.
type Part struct {
	Name      string  `json:"name"`
	Events    int64   `json:"events"`
	Bytes     int64   `json:"bytes"`
	PerSecond float64 `json:"perSecond"`

	recent int64
}

// RulePart is what a rule would save.
type RulePart struct {
	Name   string `json:"name"`
	Does   string `json:"does"`
	Events int64  `json:"events"` // that the rule decides about
	Bytes  int64  `json:"bytes"`
	// Of these, those that would not be there: all of them if the rule drops, or those that are older than it keeps
	// them.
	SavedEvents int64 `json:"savedEvents"`
	SavedBytes  int64 `json:"savedBytes"`
}

// Breakdown is what the events of a store take. The parts are in falling order of rate,
// then of bytes, so who writes most is first.
type Breakdown struct {
	Stats
	Oldest     time.Time `json:"oldest"`              // when the oldest event was last written
	OldestAge  float64   `json:"oldestAgeSeconds"`    // since then
	PerSecond  float64   `json:"perSecond"`           // events
	Projected  float64   `json:"projectedAgeSeconds"` // see [Stats.Projected]
	Namespaces []Part    `json:"namespaces"`
	Types      []Part    `json:"types"`
	Reporters  []Part    `json:"reporters"`

	Rules []RulePart `json:"rules,omitempty"` // in their order, if some were asked about
}

// FitsFor returns how long the events that fit into MaxBytes take to arrive at the rate of the past hour; 0 if none has
// arrived.
func (b *Breakdown) FitsFor() time.Duration {
	if b.PerSecond <= 0 {
		return 0
	}
	return time.Duration(min(Forever.Seconds(), float64(b.Fits())/b.PerSecond) * float64(time.Second))
}

// Lister is what a breakdown reads.
type Lister interface {
	List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error)
	Stats() Stats
}

// breakdownPage is the number of events that are read in one go.
const breakdownPage = 10_000

// BreakdownOf reads all events of one revision, page by page, so that writes go on meanwhile. An event counts once,
// with its newest version. maxBytes replaces the limit of the store, unless it is 0. Rules are those of which it says
// what they would save.
func BreakdownOf(ctx context.Context, s Lister, maxBytes int64, by *rules.Set, now time.Time) (*Breakdown, error) {
	c := counting{all: &Part{}, oldest: now, now: now, rules: by, saved: make([]RulePart, len(by.All()))}
	for i, r := range by.All() {
		c.saved[i].Name, c.saved[i].Does = r.Name, r.String()
	}
	for i := range c.by {
		c.by[i] = map[string]*Part{}
	}
	for q := (store.Query{Limit: breakdownPage}); ; {
		page, err := s.List(ctx, q, func(v *store.View) bool { c.add(v); return true })
		if err != nil {
			return nil, err
		}
		if !page.More {
			break
		}
		q.Revision, q.After = page.Revision, page.Last
	}
	stats := s.Stats()
	stats.MaxBytes = cmp.Or(maxBytes, stats.MaxBytes)
	seconds := min(rateWindow, now.Sub(c.oldest)).Seconds()
	c.all.finish(seconds)
	return &Breakdown{
		Stats: stats, Oldest: c.oldest, OldestAge: now.Sub(c.oldest).Seconds(), PerSecond: c.all.PerSecond, Projected: stats.Projected(c.oldest, now).Seconds(),
		Namespaces: sortedParts(c.by[0], seconds), Types: sortedParts(c.by[1], seconds), Reporters: sortedParts(c.by[2], seconds),
		Rules: c.saved,
	}, nil
}

// counting counts the events that are read.
type counting struct {
	all         *Part
	by          [3]map[string]*Part // namespaces, types and reporters
	oldest, now time.Time
	rules       *rules.Set
	saved       []RulePart // by the index of the rule
}

func (c *counting) add(v *store.View) {
	if v.Time.Before(c.oldest) {
		c.oldest = v.Time
	}
	c.decide(v)
	recent := v.Time.After(c.now.Add(-rateWindow))
	c.all.add(v.Bytes, recent)
	names := [3]string{v.Namespace, string(v.Attributes.Field(event.Type)), string(v.Attributes.Reporter())}
	for i, name := range names {
		p := c.by[i][name]
		if p == nil {
			p = &Part{Name: name}
			c.by[i][name] = p
		}
		p.add(v.Bytes, recent)
	}
}

// decide counts a version for the rule that decides about it.
func (c *counting) decide(v *store.View) {
	if len(c.saved) == 0 {
		return
	}
	facts := rules.FactsOf([]byte(v.Namespace), v.Attributes)
	i := c.rules.Decides(&facts)
	if i < 0 {
		return
	}
	rule, part := &c.rules.All()[i], &c.saved[i]
	part.Events++
	part.Bytes += int64(v.Bytes)
	if rule.Drop || rule.Keep > 0 && v.Time.Before(c.now.Add(-rule.Keep)) {
		part.SavedEvents++
		part.SavedBytes += int64(v.Bytes)
	}
}

func (p *Part) add(bytes int, recent bool) {
	p.Events++
	p.Bytes += int64(bytes)
	if recent {
		p.recent++
	}
}

// finish computes the rate.
func (p *Part) finish(seconds float64) {
	if seconds >= 1 {
		p.PerSecond = float64(p.recent) / seconds
	}
}

func sortedParts(parts map[string]*Part, seconds float64) []Part {
	all := make([]Part, 0, len(parts))
	for _, p := range parts {
		p.finish(seconds)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.recent, a.recent), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}
