package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/event"
)

// The weights of a score. Each has its reason; none was fitted to an incident.
const (
	// notable is the least evidence of a row: chance alone exceeds this value of a
	// chi-squared distribution with one degree of freedom once in a thousand series.
	notable = 10.83
	// likely is the least evidence of a row that is related to the strongest change, if
	// that has at least strong evidence: chance alone exceeds it in one of a hundred. Once
	// something has certainly happened, more than that has probably changed.
	likely = 6.63
	strong = 2 * notable
	// certain is where evidence ends to count. Beyond it a row is louder, not more
	// certain, and what is loudest in an incident are its symptoms.
	certain = 100
	// normalWeight is for events of type Normal, which controllers emit when they do
	// what they were told to.
	normalWeight = 0.6
	// newWeight is for reasons without any precedent: a count cannot say that.
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
	// maxCandidates bounds the rows whose onset is looked for.
	maxCandidates = 200
)

// candidate is a row before the answer is cut to its limit.
type candidate struct {
	tallyKey
	tallies  []*tally     // whose occurrences it counts, most affected first
	members  []*candidate // of a row over several namespaces: those of its tallies
	way      ChangeKind
	now      int64
	expected float64
	against  string  // where expected is from
	evidence float64 // G² over the dispersion
	spread   float64 // of the dispersion
	had      int     // other namespaces that had it before

	object  string // the workload that it is about
	exact   string // the object, if it is one
	own     int64  // occurrences of the object of the question
	objects int    // concerned
	near    int64  // occurrences shortly before anchor began
	anchor  *candidate

	first, onset int64
	precedes     int
	follows      *candidate
	score        float64
}

// surprise is Dunning's G²: twice the logarithm of how much likelier the counts are if
// the window and the history before it have rates of their own than if they share one.
func surprise(now, before, windows float64) float64 {
	rate := (now + before) / (1 + windows)
	return 2 * (likelihood(now, rate) + likelihood(before, rate*windows))
}

func likelihood(n, expected float64) float64 {
	if n == 0 {
		return 0
	}
	return n * math.Log(n/expected)
}

// dispersion is the variance of the counts of windows over their mean, at least 1: how
// much burstier than chance a series is. G² is divided by it (quasi-likelihood).
func (s *tally) dispersion(windows float64) float64 {
	if s.total == 0 || windows <= 0 {
		return 1
	}
	mean := float64(s.total) / windows
	return max(1, (s.squares/windows-mean*mean)/mean)
}

// burstiness is the dispersion of the series of a family, weighted by their counts.
func (s *tally) burstiness(windows float64) float64 {
	var sum, total float64
	for _, m := range s.members {
		sum += float64(m.total) * m.dispersion(windows)
		total += float64(m.total)
	}
	if total == 0 {
		return 1
	}
	return sum / total
}

// spread is the dispersion of a series. The fewer occurrences it has, the more it is that
// of its family.
func (c *changes) spread(s *tally, burstiness float64) float64 {
	own := s.dispersion(c.windows)
	if s.family == nil {
		return own
	}
	total := float64(s.total)
	return (total*own + familyCounts*burstiness) / (total + familyCounts)
}

// compare compares the count of a series or of a family with the earlier one that
// explains it best. It returns nil if there is no difference.
func (c *changes) compare(s *tally, burstiness float64) *candidate {
	mean, now := float64(s.total)/c.windows, float64(s.now)
	r := &candidate{tallyKey: s.tallyKey, tallies: []*tally{s}, now: s.now, expected: mean, against: "on average"}
	baselines := []struct {
		n    int64
		held bool
		text string
	}{
		{s.prev, c.windows >= 1, "in the window before"},
		{s.day, c.baseline.day, "a day before"},
		{s.week, c.baseline.week, "a week before"},
	}
	rising := now > mean
	for _, b := range baselines {
		if n := float64(b.n); b.held && (rising && n > r.expected || !rising && n < r.expected) {
			r.expected, r.against = n, b.text
		}
	}
	if (now > r.expected) != rising || now == r.expected {
		return nil
	}
	r.way, r.spread = ChangeLess, c.spread(s, burstiness)
	before := r.expected * c.windows
	switch {
	case rising && s.total == 0:
		r.way = ChangeNew
		if s.family != nil { // that many namespaces have seen their first one
			r.had = s.family.had
			before = float64(r.had)
		}
	case rising:
		r.way = ChangeMore
	}
	r.evidence = surprise(now, before, c.windows) / r.spread
	return r
}

// rank returns the rows of the answer in their order.
func (c *changes) rank(ctx context.Context) ([]*candidate, error) {
	if c.windows <= 0 {
		return nil, nil
	}
	rows := c.rates()
	rows = c.failures(rows)
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
	rows = append(rows, near...)
	cascade(rows)
	for _, r := range rows {
		r.score = r.weighed()
		if r.follows != nil {
			r.score *= symptomWeight
		}
		r.score = round(r.score * (1 + precedesWeight*float64(min(r.precedes, maxPrecedes))))
	}
	slices.SortFunc(rows, byScore)
	return rows, nil
}

// strongest returns the first row that others can be related to, nil if there is none.
func strongest(rows []*candidate) *candidate {
	for _, r := range rows {
		if r.way != ChangeLess && r.evidence >= strong {
			return r
		}
	}
	return nil
}

func byScore(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.onset, b.onset), a.compare(b.tallyKey),
		strings.Compare(string(a.way), string(b.way)), strings.Compare(a.object, b.object))
}

// weighed is the score of a row by itself. Its evidence counts by its logarithm.
func (r *candidate) weighed() float64 {
	score := math.Log2(1 + min(r.evidence, certain))
	if !r.alarming() {
		score *= normalWeight
	}
	switch r.way {
	case ChangeNew:
		score *= newWeight
	case ChangeLess:
		score *= lessWeight
	}
	if r.objects > 1 {
		score *= 1 + min(maxSpread, spreadWeight*math.Log2(float64(r.objects)))
	}
	return score
}

// alarming reports whether a row is about a problem. Kubernetes gives type Normal to the
// conditions of a node and to the back-off of an image, which are problems all the same.
func (r *candidate) alarming() bool {
	switch r.reason {
	case "NodeNotReady", "NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "BackOff":
		return true
	}
	return r.typ == corev1.EventTypeWarning
}

// rates returns the series whose counts are notable. Series of several namespaces that
// change alike are one row.
func (c *changes) rates() (rows []*candidate) {
	for _, f := range c.tallies.order {
		burstiness := f.burstiness(c.windows)
		all := c.compare(f, burstiness)
		var members, alike []*candidate
		for _, s := range f.members {
			r := c.compare(s, burstiness)
			if r == nil {
				continue
			}
			if all != nil && (r.way == ChangeLess) == (all.way == ChangeLess) {
				alike = append(alike, r)
			}
			if r.evidence >= likely {
				members = append(members, r)
			}
		}
		if all == nil || all.evidence < notable || !spreads(alike) {
			rows = append(rows, members...)
			continue
		}
		rows = append(rows, all.over(alike))
		for _, r := range members {
			if (r.way == ChangeLess) != (all.way == ChangeLess) {
				rows = append(rows, r)
			}
		}
	}
	kept := rows[:0]
	for _, r := range rows {
		for _, m := range r.members {
			m.objects, m.first = c.warned.spread[m.tallyKey], m.tallies[0].first
		}
		for _, s := range r.tallies {
			r.objects += c.warned.spread[s.tallyKey]
			r.first = min(cmp.Or(r.first, s.first), s.first)
			if o := c.warned.object; o != nil {
				r.own += o.now[s.tallyKey]
			}
		}
		if o := c.warned.object; o == nil || r.own > 0 {
			kept = append(kept, r)
		}
	}
	return kept
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

// over makes r, the row of a family, that of several series.
func (r *candidate) over(alike []*candidate) *candidate {
	slices.SortFunc(alike, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.difference(), a.difference()), a.compare(b.tallyKey))
	})
	r.members, r.tallies = alike, r.tallies[:0]
	for _, m := range alike {
		r.tallies = append(r.tallies, m.tallies...)
	}
	return r
}

// failures adds rows for workloads that began to fail, or names them in the rows that
// their warnings have already.
func (c *changes) failures(rows []*candidate) []*candidate {
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
		s := c.tallies.of(f.tallyKey)
		if s == nil {
			continue
		}
		n := f.counts[f.reason]
		r := &candidate{
			tallyKey: f.tallyKey, tallies: []*tally{s}, way: ChangeFailing, now: n, object: f.name,
			objects: len(f.objects), first: f.first, had: int(c.warned.others[f.tallyKey]), spread: s.family.burstiness(c.windows), own: n,
		}
		if f.exact {
			r.exact = f.name
		}
		r.evidence = surprise(float64(n), float64(r.had), windows) / r.spread
		row := by[f.tallyKey]
		if row != nil && row.way != ChangeLess && 2*n >= row.now {
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

// of returns the tally of a key, nil if there is none.
func (t *tallies) of(k tallyKey) *tally {
	if i, ok := t.byKey[k]; ok {
		return t.all[i]
	}
	return nil
}

// onsetBins bounds the memory for the onset of one row.
const onsetBins = 4096

// onsets finds when each row began.
func (c *changes) onsets(ctx context.Context, rows []*candidate) error {
	from, to := c.answer.Range.From.Unix(), c.answer.Range.To.Unix()
	width := (to-from-1)/onsetBins + 1
	bins := map[*tally][]int64{}
	for _, r := range rows {
		r.onset = r.first
		if r.way == ChangeMore {
			for _, s := range r.tallies {
				bins[s] = make([]int64, (to-from-1)/width+1)
			}
		}
	}
	if len(bins) == 0 {
		return nil
	}
	err := c.pieces(ctx, from, to, func(s *tally, second, n int64) {
		if b := bins[s]; b != nil {
			b[(second-from)/width] += n
		}
	})
	for _, r := range rows {
		if r.way != ChangeMore {
			continue
		}
		sum := make([]int64, (to-from-1)/width+1)
		for _, s := range r.tallies {
			for i, n := range bins[s] {
				sum[i] += n
			}
		}
		r.onset = from + width*int64(onset(sum, r.expected))
		for _, m := range r.members {
			if m.onset = m.first; m.way == ChangeMore {
				m.onset = from + width*int64(onset(bins[m.tallies[0]], m.expected))
			}
		}
	}
	return err
}

// origins returns the row of the namespace in which a change of several began, if one is
// ahead of the others: the change may have spread from there.
func origins(rows []*candidate) (found []*candidate) {
	for _, r := range rows {
		if r.way == ChangeLess || len(r.members) < 2 {
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

// coincident returns rows for series that are not notable by their counts in the window,
// but by what they have in the minute before the strongest change began. The cause of an
// outage may be a single event of a kind that comes several times a day.
func (c *changes) coincident(ctx context.Context, anchor *candidate, rows []*candidate) (near []*candidate, err error) {
	if anchor == nil || c.q.Window <= coincidence*time.Second || c.warned.object != nil {
		return nil, nil
	}
	known := map[*tally]bool{}
	for _, r := range rows {
		for _, s := range r.tallies {
			known[s] = true
		}
	}
	from, to := c.answer.Range.From.Unix(), c.answer.Range.To.Unix()
	from, to = max(from, anchor.onset-coincidence), min(to, anchor.onset+onsetTolerance)
	found := map[*tally]*candidate{}
	err = c.pieces(ctx, from, to, func(s *tally, second, n int64) {
		if known[s] {
			return
		}
		r := found[s]
		if r == nil {
			r = &candidate{
				tallyKey: s.tallyKey, tallies: []*tally{s}, way: ChangeMore, now: s.now, expected: float64(s.total) / c.windows,
				first: s.first, onset: second, anchor: anchor, objects: c.warned.spread[s.tallyKey],
			}
			found[s] = r
		}
		r.near += n
		r.onset = min(r.onset, second)
	})
	parts := c.q.Window.Seconds() / float64(to-from)
	for _, s := range c.tallies.all { // in an order that does not change
		r := found[s]
		if r == nil || !related(r, anchor) {
			continue
		}
		r.spread = c.spread(s, s.family.burstiness(c.windows))
		before := s.total + s.now - r.near
		if s.total == 0 {
			before += int64(s.family.had)
		}
		if r.evidence = surprise(float64(r.near), float64(before), (c.windows+1)*parts-1) / r.spread; r.evidence >= likely {
			near = append(near, r)
		}
	}
	return near, err
}

// onset returns the bin from which on the rest of the window differs most from what was
// expected: the likeliest moment at which the rate changed.
func onset(bins []int64, expected float64) (at int) {
	var most, n float64
	for i := len(bins) - 1; i >= 0; i-- {
		if bins[i] == 0 {
			continue
		}
		n += float64(bins[i])
		e := (expected + 0.5) * float64(len(bins)-i) / float64(len(bins)) // half an event, so that none is not expected
		if g := likelihood(n, e) - (n - e); n > e && g >= most {
			at, most = i, g
		}
	}
	return at
}

// cascade finds which rows others precede. What became less frequent has no onset.
func cascade(rows []*candidate) {
	for _, r := range rows {
		if r.way == ChangeLess {
			continue
		}
		for _, earlier := range rows {
			if earlier.way == ChangeLess || r.evidence < notable || r.onset-earlier.onset < onsetTolerance || !related(r, earlier) {
				continue
			}
			earlier.precedes++
			if r.follows == nil || earlier.onset < r.follows.onset {
				r.follows = earlier
			}
		}
	}
}

// related reports whether one change can be the reason of another: they concern the same
// namespace, or one of them the whole cluster.
func related(a, b *candidate) bool {
	return a.cluster == b.cluster && (a.namespace == b.namespace || a.clusterWide() || b.clusterWide())
}

// clusterWide reports whether a row concerns more than one namespace: it spans several,
// its object has none, or it is about the cluster's own components.
func (r *candidate) clusterWide() bool {
	switch r.kind {
	case "Node", "PersistentVolume", "Namespace", "StorageClass", "APIService":
		return true
	}
	return r.namespace == "" || r.namespace == "kube-system"
}

// about reports whether an event is one of a row.
func (r *candidate) about(c *changes, attributes event.Attributes) bool {
	name := string(attributes.Field(event.RegardingName))
	if o := c.warned.object; o != nil {
		return name == o.name
	}
	if r.way != ChangeFailing {
		return true
	}
	if r.exact != "" {
		return name == r.exact
	}
	return workload(name)+"-*" == r.object
}

// round keeps two digits, so that an answer does not depend on the last bits of a float.
func round(x float64) float64 { return math.Round(x*100) / 100 }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
