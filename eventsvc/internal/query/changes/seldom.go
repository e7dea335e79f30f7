package changes

import (
	"cmp"
	"slices"
)

// seldomCame is the most that may be expected in a window of a series, and of all that come no more often, if it comes
// seldom: such a window has anything of them by chance once in five times.
const seldomCame = 0.2

// seldom adds to the rows of a question with a search or about an object what came of it, though seldom before or
// never. Too few came for evidence, but who searches for a rare reason asks whether it came.
func (c *comparison) seldom(rows []*candidate) []*candidate {
	if c.q.Wanted == nil && !c.q.ofObject() || c.windows < 1 {
		return rows
	}
	known, expected := map[*tally]bool{}, map[*tally]float64{}
	for _, r := range rows {
		for _, s := range r.tallies {
			known[s] = true
		}
	}
	wanted := c.searched()
	for _, s := range wanted {
		day, week := s.times.usual(c.days, c.weeks)
		expected[s] = max(float64(s.total)/c.windows, day, week)
	}
	slices.SortFunc(wanted, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(expected[a], expected[b]), a.compare(b.tallyKey))
	})
	sum := 0.0
	for _, s := range wanted {
		if sum += expected[s]; sum > seldomCame {
			break
		}
		if s.came.Count > 0 && !known[s] {
			rows = append(rows, c.rare(s))
		}
	}
	return rows
}

// rare returns the row of a series that comes seldom.
func (c *comparison) rare(s *tally) *candidate {
	r := &candidate{
		tallyKey: s.tallyKey, tallies: []*tally{s}, way: More, now: s.came.Count, expected: float64(s.total) / c.windows, against: onAverage,
		first: s.came.First, onset: s.came.First, objects: c.warned.concerned[s.tallyKey], dispersion: c.dispersion(s, s.family.burstiness(c.windows)),
	}
	switch {
	case s.last.Count > 0:
		r.way = Again
		if s.former.Count == 0 {
			s.former = s.last
		}
	case s.total == 0 && !s.older:
		r.way, r.unseen = New, true
	}
	if c.q.ofObject() {
		r.own = c.warned.object.now[s.tallyKey]
	}
	r.evidence = surprise(float64(r.now), float64(s.total), c.windows) / r.dispersion
	return r
}

// searched returns the series that the question is about: of an object those in which it came.
func (c *comparison) searched() (found []*tally) {
	for _, s := range c.tallies.all {
		if c.q.asked(s.namespace) && c.wants(s) && (!c.q.ofObject() || c.warned.object.now[s.tallyKey] > 0) {
			found = append(found, s)
		}
	}
	return found
}

// compared says how much was compared with what.
func (c *comparison) compared() string {
	var n int64
	reasons := map[string]bool{}
	for _, s := range c.searched() {
		came := s.came.Count
		if c.q.ofObject() {
			came = c.warned.object.now[s.tallyKey]
		}
		if n += came; came > 0 {
			reasons[s.reason] = true
		}
	}
	text := counted(int(n), "event")
	switch len(reasons) {
	case 0:
		text = "no events"
	case 1:
		for reason := range reasons {
			text += " of " + reason
		}
	default:
		text += " of " + counted(len(reasons), "reason")
	}
	return text + ", compared with the " + c.past() + " before"
}
