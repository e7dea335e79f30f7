package changes

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// silenceBurst is the least dispersion of all that comes from one place: much of it comes together.
	silenceBurst = 4
	// silentWeight is for a cluster from which nothing comes any more: what happens there is not known. partWeight is for
	// a namespace or a reporter.
	silentWeight, partWeight = 2.5, 1.5
	// silentTime is for how long a namespace or a reporter that is gone is news.
	silentTime = 24 * time.Hour
)

// source is from where events come: a cluster, a namespace in it, or a reporter there. What it lacks is empty.
type source struct{ cluster, namespace, reporter string }

// has reports whether a series is of a source.
func (k source) has(s *tally) bool {
	return k.cluster == s.cluster && (k.namespace == "" || k.namespace == s.namespace) && (k.reporter == "" || k.reporter == s.reporter)
}

// stream is what came from a source.
type stream struct {
	source
	came, total int64 // in the window, and before it
	newest      int64 // second of the newest before the window
	usual       float64
	times       timesBefore
	slots       [maxSlots]float64 // counts of all its series
}

// silences adds a row for each cluster, namespace and reporter from which nothing comes any more, in place of rows for
// what has stopped there.
func (c *comparison) silences(rows []*candidate) []*candidate {
	if c.q.ofObject() {
		return rows
	}
	var found []*candidate
	var silent []source
	for _, s := range c.streams() {
		if slices.ContainsFunc(silent, func(in source) bool {
			return in.cluster == s.cluster && (in.namespace == "" && in.reporter == "" || in.namespace == s.namespace)
		}) {
			continue
		}
		if r := c.silence(s); r != nil {
			found, silent = append(found, r), append(silent, s.source)
		}
	}
	rows = slices.DeleteFunc(rows, func(r *candidate) bool {
		return r.way == Less && slices.ContainsFunc(silent, func(in source) bool {
			return !slices.ContainsFunc(r.tallies, func(s *tally) bool { return !in.has(s) })
		})
	})
	return append(rows, found...)
}

// streams returns what came from each source: clusters first, then namespaces, then reporters.
func (c *comparison) streams() []*stream {
	all := map[source]*stream{}
	for _, s := range c.tallies.all {
		of := []source{{cluster: s.cluster}, {cluster: s.cluster, namespace: s.namespace}}
		if s.reporter != several && s.reporter != "" {
			of = append(of, source{cluster: s.cluster, reporter: s.reporter})
		}
		for _, k := range of {
			one := all[k]
			if one == nil {
				one = &stream{source: k}
				all[k] = one
			}
			one.came += s.came.Count
			one.total += s.total
			one.newest = max(one.newest, s.newest)
			one.usual += s.usual
			s.slots.widen(c.tallies.shift)
			for i, slot := range s.slots.all {
				one.slots[i] += float64(slot.n)
			}
			for i, n := range s.times {
				one.times[i] += n
			}
		}
	}
	rank := func(s *stream) int {
		switch {
		case s.reporter != "":
			return 2
		case s.namespace != "":
			return 1
		}
		return 0
	}
	sorted := make([]*stream, 0, len(all))
	for _, s := range all {
		if s.came == 0 && s.total > 0 && (s.namespace == "" || c.q.asked(s.namespace)) {
			sorted = append(sorted, s)
		}
	}
	slices.SortFunc(sorted, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.cluster, b.cluster), strings.Compare(a.namespace, b.namespace), strings.Compare(a.reporter, b.reporter))
	})
	return sorted
}

// silence returns the row of a source from which nothing came, nil if that is usual.
func (c *comparison) silence(s *stream) *candidate {
	to, begin := c.answer.Range.To.Unix(), c.answer.HistoryFrom.Unix()
	long := to - s.newest
	whole := s.namespace == "" && s.reporter == ""
	if s.newest <= begin || !whole && long > int64(max(silentTime, 2*c.q.Window)/time.Second) {
		return nil
	}
	window := c.q.Window.Seconds()
	usual, dispersion, against := c.rhythm(s, long)
	expected := min(usual, s.usual/float64(s.newest-begin)*window)
	r := &candidate{
		tallyKey: tallyKey{cluster: s.cluster, namespace: s.namespace}, tallies: []*tally{{tallyKey: tallyKey{cluster: s.cluster, namespace: s.namespace}, reporter: s.reporter}},
		way: Silent, expected: expected, against: against, first: s.newest, onset: s.newest, dispersion: max(silenceBurst, dispersion), silent: s.source,
	}
	r.evidence = 2 * expected * float64(long) / window / r.dispersion
	if r.evidence < strong {
		return nil
	}
	weight := partWeight
	if whole {
		weight = silentWeight
	}
	r.score = round(weight * math.Log2(1+min(r.evidence, certain)))
	return r
}

// rhythm returns how often something came from a source in a window before it was silent, how much that changes, and
// of when that is: of this time of three days or more, or else of the slots.
func (c *comparison) rhythm(s *stream, long int64) (usual, dispersion float64, against string) {
	var counts []float64
	for i := range c.days {
		if s.times.seconds(i) > long {
			counts = append(counts, float64(s.times[i]))
		}
	}
	if len(counts) >= leastTimes {
		usual, dispersion = middle(counts)
		if s.namespace != "" || s.reporter != "" {
			usual = counts[0] // a part is often silent by chance
		}
		return usual, dispersion, "at this time of the day"
	}
	slot := float64(int64(1) << c.tallies.shift) // windows
	silent := (float64(long)/c.q.Window.Seconds() - 1) / slot
	first, end := min(maxSlots, int(math.Ceil(silent))), min(maxSlots, int(math.Floor(c.windows/slot)))
	if end-first < leastSlots {
		return 0, 0, ""
	}
	usual, dispersion = middle(s.slots[first:end])
	return usual / slot, dispersion, onAverage
}

// middle returns the median of counts, which it sorts, and by how much they usually vary: the square of their median
// distance from it, as that of a normal distribution has it, in parts of it.
func middle(counts []float64) (median, dispersion float64) {
	half := (len(counts) - 1) / 2
	slices.Sort(counts)
	median = counts[half]
	away := make([]float64, len(counts))
	for i, n := range counts {
		away[i] = math.Abs(n - median)
	}
	slices.Sort(away)
	return median, math.Pow(1.4826*away[half], 2) / max(1, median)
}

// String names a source.
func (k source) String() string {
	var parts []string
	if k.reporter != "" {
		parts = append(parts, "reporter "+k.reporter)
	}
	if k.namespace != "" {
		parts = append(parts, "namespace "+k.namespace)
	}
	if k.cluster != "" {
		parts = append(parts, "cluster "+k.cluster)
	}
	return cmp.Or(strings.Join(parts, " of "), "all that you may list")
}
