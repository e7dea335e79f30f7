package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

const (
	// maxParted is of how many rows the incidents are told apart, maxCells how many patterns of workloads are told apart.
	maxParted, maxCells = 8, 10_000
	// leastPart is the smallest incident that is told apart.
	leastPart = 3
)

// parted is what came of a row, as far as a search finds it, when it is of several incidents.
type parted struct {
	found query.Rhythm // of what the search finds
	live  query.Rhythm // of what goes on, if something else is over or comes now and then
	going []*outcome   // of which that is
	name  string       // the workload of live, if it is one
	over  *outcome     // the largest of what is over
}

// outcome is what came of one workload without a break, or of several at the same time whose notes tell the same.
type outcome struct {
	came    query.Rhythm
	name    string            // of the workload, empty if there are several
	tells   string            // the pattern that tells most
	of      map[workCell]bool // what it has
	pattern map[string]int64
}

// workCell is a pattern of notes about one workload.
type workCell struct{ cluster, namespace, name, pattern string }

// apart tells the incidents of the first rows apart: something that is over, and something else that goes on. Of a
// question with a search it counts what that finds.
func (c *comparison) apart(ctx context.Context, rows []*candidate) error {
	rows = rows[:min(len(rows), maxParted)]
	of := map[tallyKey][]*candidate{}
	for _, r := range rows {
		if r.way == Less || r.way == Silent || r.way == Changed || !r.alarming() && c.q.Finds == nil {
			continue
		}
		for _, s := range r.tallies {
			of[s.tallyKey] = append(of[s.tallyKey], r)
		}
	}
	if len(of) == 0 {
		return nil
	}
	cells, err := c.cells(ctx, of)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if all := cells[r]; len(all) > 0 {
			c.divide(r, all)
		}
	}
	return nil
}

// cells counts what came in the window of rows by workload and pattern.
func (c *comparison) cells(ctx context.Context, of map[tallyKey][]*candidate) (map[*candidate]map[workCell]query.Rhythm, error) {
	type key struct {
		tallyKey
		workCell
	}
	groups, keys, seen := map[key]int{}, []key{}, []query.Rhythm{}
	wanted := &event.Filter{Kind: event.FilterDimensions, Wants: func(d event.Dimensions) bool { return of[keyOf(&d)] != nil && c.q.wanted(d) }}
	count := store.Count{
		Range: c.answer.Range, Filter: event.All(wanted, c.q.Finds), By: append(slices.Clone(compared), event.PatternDimension), Objects: true,
		Group: func(d event.Dimensions, o event.Regarding) int {
			k := key{keyOf(&d), workCell{d.Cluster, d.Namespace, workload(o.Name), d.Pattern}}
			if rows := of[k.tallyKey]; rows == nil || !slices.ContainsFunc(rows, func(r *candidate) bool { return r.concerns(c, o.Name) }) {
				return -1
			}
			i, ok := groups[k]
			if !ok && len(keys) < maxCells {
				i, ok = len(keys), true
				groups[k], keys, seen = i, append(keys, k), append(seen, query.Rhythm{})
			}
			if !ok {
				return -1
			}
			return i
		},
	}
	count.Sees = c.q.sees
	err := c.timeline.Count(ctx, count, func(o store.Occurred) {
		seen[o.Group].Add(store.Occurred{Second: o.Second, Count: o.Before(c.answer.Range.To.Unix())})
	})
	cells := map[*candidate]map[workCell]query.Rhythm{}
	for i, k := range keys {
		for _, r := range of[k.tallyKey] {
			if cells[r] == nil {
				cells[r] = map[workCell]query.Rhythm{}
			}
			one := cells[r][k.workCell]
			one.Merge(seen[i])
			cells[r][k.workCell] = one
		}
	}
	return cells, err
}

// divide notes what a row has of several incidents.
func (c *comparison) divide(r *candidate, cells map[workCell]query.Rhythm) {
	p, all := &parted{}, outcomes(cells)
	for _, o := range all {
		p.found.Merge(o.came)
	}
	for _, o := range all {
		if o.came.Count >= leastPart && !c.asUsual(r, o) {
			p.take(o, o.came.At(c.answer.Range.To))
		}
	}
	most := r.began == 0 && 2*p.live.Count >= p.found.Count && p.live.Count < p.found.Count // the rest is what comes now and then
	if p.live.Count == 0 || p.over == nil && !most {
		p = &parted{found: p.found}
	}
	r.parts = p
}

// take takes notice of an incident.
func (p *parted) take(o *outcome, state query.State) {
	switch {
	case state == query.Ongoing:
		if len(p.going) == 0 {
			p.name = o.name
		} else if p.name != o.name {
			p.name = ""
		}
		p.live.Merge(o.came)
		p.going = append(p.going, o)
	case state == query.Over && 10*o.came.Count >= p.found.Count && (p.over == nil || o.came.Count > p.over.came.Count):
		p.over = o
	}
}

// asUsual reports whether what came of a row came already when the window began, and no more often than is usual.
func (c *comparison) asUsual(r *candidate, o *outcome) bool {
	return float64(o.came.Count) <= r.expected && c.already(o.came)
}

// already reports whether something came already when the window began: it came within a beat of the beginning.
func (c *comparison) already(came query.Rhythm) bool {
	return came.First-c.answer.Range.From.Unix() <= int64(came.Every().Seconds())
}

// later reports whether what goes on of a row began long after another incident of the row, whose cause is not its own.
func (r *candidate) later() bool {
	return r.parts != nil && r.parts.live.Count > 0 && r.parts.live.First-r.onset > unbroken
}

// outcomes puts together what is of one incident, those that came first, first.
func outcomes(cells map[workCell]query.Rhythm) (found []*outcome) {
	keys := make([]workCell, 0, len(cells))
	for k := range cells {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b workCell) int {
		return cmp.Or(cmp.Compare(cells[a].First, cells[b].First), strings.Compare(a.cluster, b.cluster), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name), strings.Compare(a.pattern, b.pattern))
	})
	by := map[workCell]*outcome{} // the last one of each workload
	for _, k := range keys {
		work := workCell{k.cluster, k.namespace, k.name, ""}
		o := by[work]
		if o == nil || o.brokenBy(cells[k].First) {
			o = &outcome{name: k.name, of: map[workCell]bool{}, pattern: map[string]int64{}}
			by[work], found = o, append(found, o)
		}
		o.came.Merge(cells[k])
		o.of[k] = true
		o.pattern[k.pattern] += cells[k].Count
	}
	whole := found[:0]
	told := map[string]*outcome{} // the last one with a pattern that tells most
	for _, o := range found {
		o.tells = telltale(o.pattern)
		same := told[o.tells]
		if same == nil || same.brokenBy(o.came.First) {
			told[o.tells], whole = o, append(whole, o)
			continue
		}
		if same.came.Merge(o.came); same.name != o.name {
			same.name = ""
		}
		for k := range o.of {
			same.of[k] = true
		}
	}
	return whole
}

// brokenBy reports whether an incident was over when something began.
func (o *outcome) brokenBy(second int64) bool {
	return second-o.came.Last > max(unbroken, 3*int64(o.came.Every().Seconds()))
}

// telltale returns the pattern that tells most: of many words, and often.
func telltale(patterns map[string]int64) (best string) {
	most := -1.0
	for pattern, n := range patterns {
		tells := float64(len(wordsOf(pattern))) * math.Log2(1+math.Log2(1+float64(n)))
		if tells > most || tells == most && pattern < best {
			best, most = pattern, tells
		}
	}
	return best
}
