package changes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// strongest returns the first row that others can be related to, nil if there is none.
func strongest(rows []*candidate) *candidate {
	for _, r := range rows {
		if r.way != Less && r.evidence >= strong {
			return r
		}
	}
	return nil
}

// onsetBins bounds the memory for the onset of one row.
const onsetBins = 4096

// course is how often something came in each part of the window, and in which second first.
type course struct{ counts, firsts []int64 }

func newCourse(parts int64) *course { return &course{make([]int64, parts), make([]int64, parts)} }

func (c *course) add(part, n, first int64) {
	if c.counts[part] == 0 || first < c.firsts[part] {
		c.firsts[part] = first
	}
	c.counts[part] += n
}

// onset returns the second at which a row began.
func (c *course) onset(r *candidate) int64 {
	return c.firsts[onset(c.counts, max(r.expected, r.level))]
}

// onsets finds when each row began.
func (c *comparison) onsets(ctx context.Context, rows []*candidate) error {
	from, to := c.answer.Range.From.Unix(), c.answer.Range.To.Unix()
	width := (to-from-1)/onsetBins + 1
	parts := (to-from-1)/width + 1
	courses := map[*tally]*course{}
	for _, r := range rows {
		r.onset = r.first
		if r.way == More || r.way == Again {
			for _, s := range r.tallies {
				courses[s] = newCourse(parts)
			}
		}
	}
	if len(courses) == 0 {
		return nil
	}
	err := c.count(ctx, from, to, minute, nil, func(s *tally, o store.Occurred) {
		if n := o.Before(to); courses[s] != nil && n > 0 {
			courses[s].add((o.Second-from)/width, n, o.Second)
		}
	})
	for _, r := range rows {
		if r.way != More && r.way != Again {
			continue
		}
		r.onset = cmp.Or(sumOf(courses, r.tallies, parts).onset(r), from)
		for _, m := range r.members {
			if m.onset = m.first; m.way == More || m.way == Again {
				m.onset = cmp.Or(courses[m.tallies[0]].onset(m), from)
			}
		}
	}
	return err
}

// sumOf returns the course of several tallies together.
func sumOf(courses map[*tally]*course, tallies []*tally, parts int64) *course {
	sum := newCourse(parts)
	for _, s := range tallies {
		for i, n := range courses[s].counts {
			if n > 0 {
				sum.add(int64(i), n, courses[s].firsts[i])
			}
		}
	}
	return sum
}

// origins returns the row of the namespace in which a change of several began, if one is
// ahead of the others: the change may have spread from there.
func origins(rows []*candidate) (found []*candidate) {
	for _, r := range rows {
		if r.way == Less || len(r.members) < 2 {
			continue
		}
		byOnset := slices.SortedFunc(slices.Values(r.members), func(a, b *candidate) int {
			return cmp.Or(cmp.Compare(a.onset, b.onset), a.compare(b.tallyKey))
		})
		if m := byOnset[0]; m.evidence >= notable && byOnset[1].onset-m.onset >= onsetTolerance {
			found = append(found, m)
		}
	}
	return found
}

// wide returns the rows about problems of many objects, in their order.
func wide(rows []*candidate) (found []*candidate) {
	for _, r := range rows {
		if len(found) < maxWide && r.way != Less && r.evidence >= strong && r.alarming() && r.objects >= manyObjects {
			found = append(found, r)
		}
	}
	return found
}

// coincident returns rows for series that are not notable by their counts in the window, but by what they have in the
// minute before the strongest change began or, if they are about what others depend on, before another one of many
// objects did. The cause of an outage may be a single event of a kind that comes several times a day.
func (c *comparison) coincident(ctx context.Context, anchor *candidate, rows []*candidate) (near []*candidate, err error) {
	if anchor == nil || c.q.Window <= coincidence*time.Second || c.warned.object != nil {
		return nil, nil
	}
	known, weak := map[*tally]bool{}, map[*tally]*candidate{}
	for _, r := range rows {
		for _, s := range r.tallies {
			if known[s] = r.evidence >= notable || !r.basic(); !known[s] {
				weak[s] = r
			}
		}
	}
	near, err = c.before(ctx, anchor, known)
	for _, r := range wide(rows) {
		if err != nil || r == anchor {
			continue
		}
		var found []*candidate
		found, err = c.before(ctx, r, known)
		near = append(near, slices.DeleteFunc(found, func(r *candidate) bool { return !r.basic() })...)
	}
	return slices.DeleteFunc(near, func(r *candidate) bool {
		w := weak[r.tallies[0]]
		if w != nil { // it is a row already
			w.evidence, w.onset, w.near, w.anchor = r.evidence, r.onset, r.near, r.anchor
		}
		return w != nil
	}), err
}

// basic reports whether a row is about a problem of what others depend on.
func (r *candidate) basic() bool { return hasNone[r.kind] && r.alarming() && r.way != Less }

// before returns rows for series that are notable by what they have in the minute before a change began, and notes that
// these are known.
func (c *comparison) before(ctx context.Context, anchor *candidate, known map[*tally]bool) (near []*candidate, err error) {
	from, to := c.answer.Range.From.Unix(), c.answer.Range.To.Unix()
	from, to = max(from, anchor.onset-coincidence), min(to, anchor.onset+onsetTolerance)
	found := map[*tally]*candidate{}
	err = c.count(ctx, from, to, minute, nil, func(s *tally, o store.Occurred) {
		if known[s] || s.usual >= c.windows { // one of these is there by chance
			return
		}
		r := found[s]
		if r == nil {
			r = &candidate{
				tallyKey: s.tallyKey, tallies: []*tally{s}, way: More, now: s.came.Count, expected: s.usual / c.windows, against: onAverage,
				first: s.came.First, onset: o.Second, anchor: anchor, objects: c.warned.concerned[s.tallyKey],
			}
			found[s] = r
		}
		r.near += o.Before(to)
		r.onset = min(r.onset, o.Second)
	})
	parts := c.q.Window.Seconds() / float64(to-from)
	for _, s := range c.tallies.all { // their order has no effect on the answer
		r := found[s]
		if r == nil || !related(r, anchor) {
			continue
		}
		r.dispersion = c.dispersion(s, s.family.burstiness(c.windows))
		before := int64(s.usual) + s.came.Count - r.near
		if s.total == 0 {
			before += int64(s.family.had)
		}
		if r.evidence = surprise(float64(r.near), float64(before), (c.windows+1)*parts-1) / r.dispersion; r.evidence >= likely {
			near, known[s] = append(near, r), true
		}
	}
	return near, err
}

// onset returns the bin from which on the rest of the window differs most from what was
// expected: the likeliest moment at which the rate changed.
func onset(bins []int64, expected float64) (at int) {
	var most, n float64
	for i, bin := range slices.Backward(bins) {
		if bin == 0 {
			continue
		}
		n += float64(bin)
		e := (expected + 0.5) * float64(len(bins)-i) / float64(len(bins)) // half an event, so that none is not expected
		if g := likelihood(n, e) - (n - e); n > e && g >= most {
			at, most = i, g
		}
	}
	return at
}

// cascade finds which rows others precede. What became less frequent has no onset.
func (c *comparison) cascade(rows []*candidate) {
	for _, r := range rows {
		if r.way == Less || r.evidence < notable {
			continue
		}
		for _, earlier := range rows {
			if earlier == r || !earlier.explains() || !related(r, earlier) {
				continue
			}
			if r.related++; !earlier.precede(r) || !c.tied(earlier, r) {
				continue
			}
			earlier.precedes++
			if r.follows == nil || r.likelier(earlier, r.follows) {
				r.follows = earlier
			}
		}
	}
}

// likelier reports whether a is a likelier cause of a row than b: the first one, but what spans several namespaces has
// rather none in one of them, unless notes name it or others depend on it.
func (r *candidate) likelier(a, b *candidate) bool {
	far := func(c *candidate) int {
		if r.namespace != "" || c.clusterWide() || slices.Contains(r.points, c.namespace) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a.onset, b.onset), a.compare(b.tallyKey)) < 0
}

// precede reports whether a row began before another, or at the same time if it is about an object that others depend
// on.
func (r *candidate) precede(later *candidate) bool {
	by := later.onset - r.onset
	return by >= onsetTolerance || by > -onsetTolerance && hasNone[r.kind] && !hasNone[later.kind]
}

// tied reports whether one change precedes another closely, and more closely than chance lets its occurrences: what
// comes all the time precedes everything. Closely is within causeTime or, after a problem, one beat of the later
// change.
func (c *comparison) tied(earlier, later *candidate) bool {
	longest, came := causeTime, later.came()
	if earlier.alarming() {
		longest = max(longest, min(came.Every(), maxCauseTime))
	}
	gap := time.Duration(later.onset-earlier.onset) * time.Second
	if gap > longest {
		return false
	}
	usual := 0.5 // less than once, so that what was never seen before does not precede everything either
	for _, s := range earlier.tallies {
		usual += s.usual
	}
	return usual/c.windows*gap.Seconds()/c.q.Window.Seconds() < chance
}

// cause returns what a row follows, unless what goes on of it began later, or something before it would be so near by
// chance: each of the rows that could be its cause began somewhere in the window. What the row depends on, what its
// notes name, and what is about the same object, is none by chance.
func (c *comparison) cause(r *candidate) *candidate {
	f := r.follows
	if r.later() {
		return nil
	}
	if f == nil || f.way == Changed || f.basic() || slices.Contains(r.points, f.namespace) || f.namespace == r.namespace && r.name() != "" && f.name() == r.name() {
		return f
	}
	if float64(r.related)*float64(max(0, r.onset-f.onset))/c.q.Window.Seconds() > seldomCame {
		return nil
	}
	return f
}

// name is the name of the object or workload that a row is about, empty if there are several.
func (r *candidate) name() string { return cmp.Or(r.object, r.named) }

// explains reports whether a row can be the reason of others. One that is there only since
// something stronger is cannot be the reason of that, unless it came just before.
func (r *candidate) explains() bool {
	return r.way != Less && (r.evidence >= notable || r.anchor != nil)
}

// related reports whether one change can be the reason of another: they concern the same
// namespace, or one of them the whole cluster, or notes of one name the namespace of the other.
func related(a, b *candidate) bool {
	return a.cluster == b.cluster && (a.namespace == b.namespace || a.clusterWide() || b.clusterWide() ||
		slices.Contains(a.points, b.namespace) || slices.Contains(b.points, a.namespace))
}

// clusterWide reports whether a row concerns more than one namespace: it spans several,
// its object has none, or it is about the cluster's own components.
func (r *candidate) clusterWide() bool {
	return hasNone[r.kind] || r.namespace == "" || r.namespace == systemNamespace
}

// hasNone has the kinds of objects without a namespace. The namespace of their events tells nothing.
var hasNone = map[string]bool{"Node": true, "PersistentVolume": true, "Namespace": true, "StorageClass": true, "APIService": true, "Cluster": true}
