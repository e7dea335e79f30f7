package changes

import (
	"cmp"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/store"
)

// candidate is a row before the answer is cut to its limit.
type candidate struct {
	tallyKey
	tallies    []*tally     // their occurrences are counted, the most affected first
	members    []*candidate // of a row over several namespaces: those of its tallies
	way        Kind
	unseen     bool // never before, but for former outages
	now        int64
	expected   float64
	against    string  // where expected is from
	level      float64 // of the time just before, from which an onset stands out
	evidence   float64 // G² over the dispersion
	dispersion float64 // of the counts of its series
	had        int     // other namespaces that had it before

	silent    source // the one that is silent
	elsewhere string // how it bears on the namespaces of the question; empty: it is theirs
	note      string // of its sample

	points  []string      // namespaces that its notes name
	named   string        // the object, if all its events are about one
	telling *store.Record // the event whose note tells most
	object  string        // the workload that it is about
	exact   string        // the object, if it is one
	own     int64         // occurrences of the object of the question
	objects int           // concerned
	near    int64         // occurrences shortly before anchor began
	anchor  *candidate

	first, onset int64
	began        int64 // second before the window at which it began; 0: it began in the window
	precedes     int
	related      int      // rows that could be its cause by what they are about
	also         []string // reasons of rows that are the same change
	follows      *candidate
	parts        *parted       // nil: it is not known of what incidents it is
	explained    *candidate    // a changed object may be its cause
	record       *store.Record // of a changed object
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
	if s.usual == 0 || windows <= 0 {
		return 1
	}
	mean, uneven := s.usual/windows, max(0, s.usual-float64(s.even))/windows
	return max(1, (s.squares/windows-uneven*uneven)/mean)
}

// burstiness is the dispersion of the series of a family: of the one in the middle, each as often as it came.
func (s *tally) burstiness(windows float64) float64 {
	members := slices.Clone(s.members)
	slices.SortFunc(members, func(a, b *tally) int { return cmp.Compare(a.dispersion(windows), b.dispersion(windows)) })
	var total, half float64
	for _, m := range members {
		total += m.usual
	}
	for _, m := range members {
		if half += m.usual; half > 0 && 2*half >= total {
			return m.dispersion(windows)
		}
	}
	return 1
}

// dispersion returns that of a series. The fewer occurrences it has, the more it is that of
// its family.
func (c *comparison) dispersion(s *tally, burstiness float64) float64 {
	own := s.dispersion(c.windows)
	if s.family == nil {
		return own
	}
	total := s.usual
	return (total*own + familyCounts*burstiness) / (total + familyCounts)
}

// atMost bounds the dispersion of a row that had no occurrences before, so that an outage in the history of its family
// does not hide the next one. The bound is at least 2: a single event tells nothing about dispersion.
func (r *candidate) atMost(dispersion float64) { r.dispersion = min(r.dispersion, max(2, dispersion)) }

// compare compares the count of a series or of a family with what is usual. It returns nil if there is no difference.
func (c *comparison) compare(s *tally, burstiness float64) *candidate {
	now := float64(s.came.Count)
	r := &candidate{tallyKey: s.tallyKey, tallies: []*tally{s}, now: s.came.Count}
	rising := c.expect(r, s)
	if (now > r.expected) != rising || now == r.expected {
		return nil
	}
	r.way, r.dispersion = Less, c.dispersion(s, burstiness)
	before := r.expected * c.windows
	switch {
	case rising && s.total == 0 && !s.older && (s.left == 0 || s.former.Count > 0): // former outages do not count
		r.way, r.unseen = New, true
		r.atMost(now)
		if s.family != nil { // so many namespaces have seen their first one
			r.had = s.family.had
			before = float64(r.had)
		}
	case rising:
		r.way = More
		if s.usual < now { // such a history tells as little about dispersion as none
			r.atMost(now)
		}
	}
	if rising && s.former.Count > 0 {
		r.way = Again
	}
	r.evidence = surprise(now, before, c.windows) / r.dispersion
	return r
}

// expect sets what is expected of a series: how often it comes on average or, if that explains more of what is seen, at
// this time of the day. It reports whether the series came more often than on average.
func (c *comparison) expect(r *candidate, s *tally) (rising bool) {
	r.expected, r.against = s.usual/c.windows, onAverage
	r.level = max(float64(s.total)/c.windows, float64(s.prev))
	rising = float64(s.came.Count) > r.expected
	day, week := s.times.usual(c.days, c.weeks)
	dayBefore, weekBefore, prev := float64(s.times[0]), float64(s.times[dailyTimes-1]), float64(s.prev)
	dayHeld, weekHeld, prevHeld := c.days > 0, c.days >= dailyTimes, c.windows >= 1
	if rising && s.alarming() { // once is not usual, unless it was little or goes on for long
		dayHeld, weekHeld, prevHeld = dayHeld && dayBefore < leastOutage, weekHeld && weekBefore < leastOutage, prev < leastOutage || s.before.since >= chronic
	}
	for _, b := range []struct {
		n    float64
		held bool
		text string
	}{
		{prev, prevHeld, "in the window before"}, {dayBefore, dayHeld, "a day before"}, {weekBefore, weekHeld, "a week before"},
		{day, rising, "at this time of the day"}, {week, rising, "at this time of the week"},
	} {
		if b.held && (rising && b.n > r.expected || !rising && b.n < r.expected) {
			r.expected, r.against = b.n, b.text
		}
	}
	return rising
}
