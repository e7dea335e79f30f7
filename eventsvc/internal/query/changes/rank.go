package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/event"
)

// The weights of a score. Each has its reason; none was fitted to an incident.
const (
	// notable is the least evidence of a row: chance alone exceeds this value of a
	// chi-squared distribution with one degree of freedom once in a thousand series.
	notable = 10.83
	// likely is the least evidence of a row that is related to the strongest change, once
	// the evidence of that change is at least strong. Chance alone exceeds likely once in a
	// hundred series, but when something has certainly happened, more has probably changed.
	likely = 6.63
	strong = 2 * notable
	// certain is the evidence beyond which more does not count: a row is then louder, not
	// more certain, and the loudest rows of an incident are its symptoms.
	certain = 100
	// normalWeight is for events of type Normal, which controllers emit when they do
	// what they were told to.
	normalWeight = 0.6
	// newWeight is for reasons without any precedent, which evidence from counts does not show.
	newWeight = 1.25
	// lessWeight is for what has stopped: it mostly follows from something that failed.
	lessWeight = 0.5
	// symptomWeight is for a row that another one precedes.
	symptomWeight = 0.7
	// precedesWeight is for each row, up to maxPrecedes, that follows: what came first
	// can be the reason of what came after it, not the other way round.
	precedesWeight = 0.1
	maxPrecedes    = 5
	// spreadWeight is for each doubling of the objects concerned, up to maxSpread.
	spreadWeight = 0.05
	maxSpread    = 0.25
	// familyCounts is how many occurrences of a series outweigh what other namespaces
	// say about how bursty its reason is.
	familyCounts = 10
	// spreadNamespaces is from how many namespaces on a change is one row.
	spreadNamespaces = 3
	// onsetTolerance is the difference in time that has a meaning: the timestamps of
	// most reporters have whole seconds.
	onsetTolerance = 2
	// coincidence is the time before the strongest change began in which even a routine
	// event about the same namespace or the cluster is unlikely by chance.
	coincidence = 60
	// A problem of at least manyObjects that follows one of what others depend on, such as a Node, gives that one its
	// score. What came before up to maxWide of them is looked for.
	manyObjects, maxWide = 8, 8
	// chance is the most occurrences that may be expected between two changes if the first
	// is to count as a cause of the second.
	chance = 0.05
	// probeBurst is the smallest bound of the dispersion of failures. A probe that fails now and then fails three or
	// four times in a row, which alone is no outage.
	probeBurst = 3
	// maxCandidates bounds the rows whose onset is looked for.
	maxCandidates = 200
)

// rank returns the rows of the answer in their order.
func (c *comparison) rank(ctx context.Context) ([]*candidate, error) {
	if c.windows <= 0 {
		return nil, nil
	}
	rows := c.rates()
	rows, err := c.bearing(ctx, c.failures(rows))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		r.score = r.weighed()
	}
	slices.SortFunc(rows, byScore)
	anchor := strongest(rows)
	rows = slices.DeleteFunc(rows, func(r *candidate) bool {
		return r.evidence < notable && (anchor == nil || !related(r, anchor))
	})
	rows = rows[:min(len(rows), maxCandidates)]
	if err := c.onsets(ctx, rows); err != nil {
		return nil, err
	}
	rows = append(rows, origins(rows)...)
	near, err := c.coincident(ctx, anchor, rows)
	if err != nil {
		return nil, err
	}
	rows = c.seldom(append(rows, near...))
	if err := c.tell(ctx, rows); err != nil {
		return nil, err
	}
	c.cascade(rows)
	for _, r := range rows {
		r.score = round(r.weighed() * (1 + precedesWeight*float64(min(r.precedes, maxPrecedes))))
	}
	blame(rows)
	rows = c.silences(rows)
	slices.SortFunc(rows, byScore)
	rows, err = c.causes(ctx, together(slices.DeleteFunc(rows, func(r *candidate) bool { return !c.wanted(r) })))
	if err != nil {
		return nil, err
	}
	return c.rollouts(ctx, rows)
}

// blame takes from the score of each row that another one precedes. That one gets the score of problems of many
// objects.
func blame(rows []*candidate) {
	own := map[*candidate]float64{}
	for _, r := range rows {
		if own[r] = r.score; r.follows != nil {
			r.score = round(r.score * symptomWeight)
		}
	}
	for _, r := range rows {
		if f := r.follows; f != nil && r.objects >= manyObjects && f.basic() {
			f.score = max(f.score, own[r])
		}
	}
}

// wanted reports whether the question is about a row.
func (c *comparison) wanted(r *candidate) bool {
	return slices.ContainsFunc(r.tallies, c.wants) || c.q.Wanted == nil
}

// wants reports whether the question is about a series.
func (c *comparison) wants(s *tally) bool {
	return c.q.Wanted == nil || c.q.Wanted(event.Dimensions{Cluster: s.cluster, Namespace: s.namespace, Kind: s.kind, Reason: s.reason, Type: s.typ})
}

// together makes one row of those that are one change: under several reasons, such as Pulled, Created and Started of
// the same containers, or in routine steps, such as those of a rollout.
func together(rows []*candidate) []*candidate {
	kept := rows[:0]
	for _, r := range rows {
		i := slices.IndexFunc(kept, func(k *candidate) bool { return k.same(r) || r.stepOf(k) })
		switch {
		case i < 0:
			kept = append(kept, r)
		case r.reason != kept[i].reason && !slices.Contains(kept[i].also, r.reason): // a Job and its Pod have different ones
			kept[i].also = append(kept[i].also, r.reason)
		}
	}
	return kept
}

// same reports whether two rows are the same change under two reasons: of the same namespaces and kind, as often and
// since the same time. A problem is not the same as what is routine.
func (r *candidate) same(o *candidate) bool {
	return r.kind == o.kind && r.alarming() == o.alarming() && r.way == o.way && r.way != Less && r.way != Silent && r.now == o.now &&
		r.within(o) && o.within(r) && max(r.first-o.first, o.first-r.first) <= onsetTolerance
}

// within reports whether a row is of the cluster and namespace of o, and has no namespace that o lacks.
func (r *candidate) within(o *candidate) bool {
	if r.cluster != o.cluster || r.namespace != o.namespace {
		return false
	}
	has := map[string]bool{}
	for _, s := range o.tallies {
		has[s.namespace] = true
	}
	return !slices.ContainsFunc(r.tallies, func(s *tally) bool { return !has[s.namespace] })
}

// stepOf reports whether a row is a step of a routine change in the same namespaces: it began with it or follows from
// it. A problem is a row of its own.
func (r *candidate) stepOf(k *candidate) bool {
	if r.alarming() || k.alarming() || r.way == Less || k.way == Less || r.way == Silent || k.way == Silent {
		return false
	}
	began := r.onset
	if r.follows != nil && !r.follows.alarming() && r.follows.within(k) {
		began = r.follows.onset
	}
	return max(began-k.onset, k.onset-began) <= onsetTolerance && r.within(k)
}

func byScore(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.onset, b.onset), a.compare(b.tallyKey), strings.Compare(a.silent.reporter, b.silent.reporter),
		strings.Compare(string(a.way), string(b.way)), strings.Compare(a.object, b.object))
}

// weighed is the score of a row by itself. Its evidence counts by its logarithm.
func (r *candidate) weighed() float64 {
	score := math.Log2(1 + min(r.evidence, certain))
	if !r.alarming() {
		score *= normalWeight
	}
	switch {
	case r.unseen:
		score *= newWeight
	case r.way == Less:
		score *= lessWeight
	}
	if r.objects > 1 {
		score *= 1 + min(maxSpread, spreadWeight*math.Log2(float64(r.objects)))
	}
	return score
}

// alarming reports whether a row is about a problem. Kubernetes gives type Normal to the
// conditions of a node and to the back-off of an image, which are problems all the same.
func (k tallyKey) alarming() bool {
	switch k.reason {
	case "NodeNotReady", "NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "BackOff":
		return true
	}
	return k.typ == corev1.EventTypeWarning
}

// rates returns rows for the series whose counts are notable.
func (c *comparison) rates() (rows []*candidate) {
	for _, f := range c.tallies.order {
		for _, r := range c.familyRows(f) {
			for _, m := range r.members {
				m.objects, m.first = c.warned.concerned[m.tallyKey], m.tallies[0].came.First
			}
			r.first = r.came().First
			for _, s := range r.tallies {
				r.objects += c.warned.concerned[s.tallyKey]
				if c.warned.object != nil {
					r.own += c.warned.object.now[s.tallyKey]
				}
			}
			if c.warned.object == nil || r.own > 0 {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// familyRows returns the rows of a family. Series of several namespaces that change alike
// are one row.
func (c *comparison) familyRows(f *tally) (rows []*candidate) {
	burstiness := f.burstiness(c.windows)
	all := c.compare(f, burstiness)
	var alike, others []*candidate
	for _, s := range f.members {
		r := c.compare(s, burstiness)
		switch {
		case r == nil:
		case all != nil && (r.way == Less) == (all.way == Less):
			alike = append(alike, r)
		default:
			others = append(others, r)
		}
	}
	if all != nil && all.evidence >= notable && spreads(alike) {
		rows = append(rows, all.over(alike, f.members))
	} else {
		others = append(others, alike...)
	}
	for _, r := range others {
		if r.evidence >= likely {
			rows = append(rows, r)
		}
	}
	return rows
}

// difference is by how many occurrences a row differs from what was expected.
func (r *candidate) difference() float64 { return math.Abs(float64(r.now) - r.expected) }

// spreads reports whether a change is one of several namespaces: no namespace has more
// than half of it.
func spreads(alike []*candidate) bool {
	var sum, most float64
	for _, r := range alike {
		sum += r.difference()
		most = max(most, r.difference())
	}
	return len(alike) >= spreadNamespaces && most <= sum/2
}

// over makes r, the row of a family, that of several series: of those that changed alike and, as r counts them too, of
// all others that came in the window.
func (r *candidate) over(alike []*candidate, all []*tally) *candidate {
	slices.SortFunc(alike, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.difference(), a.difference()), a.compare(b.tallyKey))
	})
	r.members, r.tallies = alike, r.tallies[:0]
	for _, m := range alike {
		r.tallies = append(r.tallies, m.tallies...)
	}
	for _, s := range all {
		if s.came.Count > 0 && !slices.Contains(r.tallies, s) {
			r.tallies = append(r.tallies, s)
		}
	}
	return r
}

// failures adds rows for workloads that began to fail, or names them in the rows that
// their warnings have already.
func (c *comparison) failures(rows []*candidate) []*candidate {
	by := map[tallyKey]*candidate{}
	for _, r := range rows {
		for _, s := range r.tallies {
			by[s.tallyKey] = r
		}
	}
	from := c.answer.Range.From.Unix()
	begin := max(c.warned.reached, c.answer.HistoryFrom.Unix())
	windows := float64(from-begin) / c.q.Window.Seconds()
	if windows <= 0 {
		return rows
	}
	for _, f := range c.warned.workloads {
		i, ok := c.tallies.byKey[f.tallyKey]
		if !ok {
			continue
		}
		s, n := c.tallies.all[i], f.counts[f.reason]
		r := &candidate{
			tallyKey: f.tallyKey, tallies: []*tally{s}, way: Failing, now: n, object: f.name,
			objects: len(f.objects), first: f.first, had: int(c.warned.others[f.tallyKey]), dispersion: s.family.burstiness(c.windows), own: n,
		}
		if f.exact {
			r.exact = f.name
		}
		r.atMost(max(probeBurst, math.Sqrt(float64(n)))) // a burst counts as the square root of its events
		r.evidence = surprise(float64(n), float64(r.had), windows) / r.dispersion
		row := by[f.tallyKey]
		if row != nil && row.way != Less && 2*n >= row.now {
			row.object, row.exact = r.object, r.exact
			row.evidence = max(row.evidence, r.evidence)
			continue
		}
		if r.evidence >= notable && (row == nil || row.namespace != "" || r.evidence > row.evidence) {
			rows = append(rows, r)
		}
	}
	return rows
}

// about reports whether an event is one of a row.
func (r *candidate) about(c *comparison, attributes event.Attributes) bool {
	return r.concerns(c, string(attributes.Field(event.RegardingName)))
}

// concerns reports whether a row is about an object of its kind.
func (r *candidate) concerns(c *comparison, name string) bool {
	if o := c.warned.object; o != nil {
		return name == o.name
	}
	if r.way != Failing {
		return true
	}
	if r.exact != "" {
		return name == r.exact
	}
	return workload(name)+"-*" == r.object
}

// round keeps two digits, so that an answer does not depend on the last bits of a float.
func round(x float64) float64 { return math.Round(x*100) / 100 }
