package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// The bounds of what counts as usual.
const (
	// maxSlots is into how many parts the time before the window is cut: of 8 hours for a week and windows of 15 minutes.
	maxSlots = 32
	// leastSlots is how many parts tell an outage from what is usual.
	leastSlots = 4
	// outage is how many times the median a part may have until the rest of it is an outage. That is not usual, however
	// much it was, so that it hides no second one.
	outage = 3
	// burst is the same for the median of those in which it came, if these are several.
	burst = 4
	// leastOutage is the smallest count of a part that is one.
	leastOutage = 5
	// dailyTimes and weeklyTimes are how many days and weeks before the same time of the day is looked at, leastTimes how
	// many of them make it usual.
	dailyTimes, weeklyTimes, leastTimes = 7, 4, 3
	// A window before the one that is asked about was an outage like it if it has at least this part of its count.
	similar = 0.5
	// leastAgain is the smallest count in the window that can be a recurrence, or leastTogether series of any, maxHappened
	// how often at most the same may have happened before, and maxFormer how many former outages are left out.
	leastAgain, leastTogether, maxHappened, maxFormer = 3, 3, 3, 6
	// chronic is for how many windows in a row what is similar has to come until it is usual, shortChronic is as long for
	// short windows, and longChronic for long ones.
	chronic      = 8
	shortChronic = 2 * time.Hour
	longChronic  = 24 * time.Hour
)

// slot is a part of the time before the window, as long as some windows.
type slot struct{ n, squares uint32 }

func (s *slot) add(n, squares int64) {
	s.n = uint32(min(int64(s.n)+n, math.MaxUint32))
	s.squares = uint32(min(int64(s.squares)+squares, math.MaxUint32))
}

// slots are the counts of a series before the window, the newest first.
type slots struct {
	all   []slot
	shift uint8 // each has 2^shift windows
}

// at returns the slot of a window.
func (s *slots) at(window int64, shift uint8) *slot {
	s.widen(shift)
	i := int(window >> shift)
	for len(s.all) <= i {
		s.all = append(s.all, slot{})
	}
	return &s.all[i]
}

// widen makes slots longer.
func (s *slots) widen(shift uint8) {
	for ; s.shift < shift; s.shift++ {
		for i := range s.all {
			one := s.all[i]
			if i%2 == 0 {
				s.all[i/2] = one
			} else {
				s.all[i/2].add(int64(one.n), int64(one.squares))
			}
		}
		s.all = s.all[:(len(s.all)+1)/2]
	}
}

// usual returns how often a series came before the window, in all, and the sum of the squares of the counts of windows.
// If the series can have outages, both are without them: a slot with more than a multiple of the median counts as that
// multiple.
func (s *slots) usual(windows float64, outages bool) (n, squares float64) {
	of := int(math.Ceil(windows / float64(int64(1)<<s.shift)))
	counts, some := make([]uint32, max(of, len(s.all))), make([]uint32, 0, len(s.all))
	for i := range s.all {
		if counts[i] = s.all[i].n; counts[i] > 0 {
			some = append(some, counts[i])
		}
	}
	most := math.Inf(1)
	if outages && len(counts) >= leastSlots {
		most = max(leastOutage, outage*float64(median(counts)))
		if len(some) >= leastTimes { // it comes in bursts
			most = max(most, burst*float64(median(some)))
		}
	}
	for _, one := range s.all {
		part := 1.0
		if one.n > 0 {
			part = min(1, most/float64(one.n))
		}
		n += part * float64(one.n)
		squares += part * part * float64(one.squares)
	}
	return n, squares
}

// median sorts counts and returns the one in the middle, the lower of two.
func median(counts []uint32) uint32 {
	slices.Sort(counts)
	return counts[(len(counts)-1)/2]
}

// timesBefore are the counts of a series in the windows at the same time of former days and weeks.
type timesBefore [dailyTimes + weeklyTimes - 1]uint32

// seconds returns how long before the window that is asked about an earlier one was, by its number.
func (timesBefore) seconds(i int) int64 {
	if i < dailyTimes {
		return int64(i+1) * daySeconds
	}
	return int64(i-dailyTimes+2) * 7 * daySeconds
}

// add counts what was observed in the window of a number. The window that is asked about begins at from.
func (t *timesBefore) add(i int, o store.Occurred, from, window int64) {
	if earlier := from - t.seconds(i); o.Second < earlier+window && o.Second+max(o.Span, 1) > earlier {
		t[i] += uint32(o.Before(earlier+window) - o.Before(earlier))
	}
}

// usual returns the medians of the days and of the weeks that history has. What it lacks counts as nothing.
func (t *timesBefore) usual(daysHeld, weeksHeld int) (day, week float64) {
	pick := func(held int, of func(i int) uint32) float64 {
		counts := make([]uint32, max(held, leastTimes))
		for i := range held {
			counts[i] = of(i)
		}
		return float64(median(counts))
	}
	return pick(daysHeld, func(i int) uint32 { return t[i] }), pick(weeksHeld, func(i int) uint32 { return t[dailyTimes-1+i] })
}

// outageBefore is a time before the window, in windows.
type outageBefore struct{ newest, oldest int64 }

// meets reports whether two outages have a window in common, or almost.
func (o outageBefore) meets(other outageBefore) bool {
	return o.newest-1 <= other.oldest && other.newest-1 <= o.oldest
}

// before is what a series did before the window, as it did in the window.
type before struct {
	since    int64 // windows for which it goes on
	outages  [maxHappened]outageBefore
	happened int   // how many there were, those beyond the first ones too
	last     int64 // window of the last one
	n        int64 // in all of them
}

// close takes notice of a window before the window. They come in their order.
func (b *before) close(window, n, now int64) {
	switch {
	case float64(n) < similar*float64(now):
		return
	case b.happened == 0 && window == b.since:
		b.since++
		return
	case b.happened == 0 || window-b.last > 2:
		if b.happened++; b.happened <= maxHappened {
			b.outages[b.happened-1].newest = window
		}
	}
	if b.happened <= maxHappened {
		b.outages[b.happened-1].oldest = window
	}
	b.n += n
	b.last = window
}

// formerly leaves out of what is usual the outages before the window that were like one in it: all that came while
// something came about as often as now.
func (c *comparison) formerly(ctx context.Context) error {
	window, from := int64(c.q.Window/time.Second), c.answer.Range.From.Unix()
	type cell struct {
		*tally
		window int64
	}
	cells := map[cell]int64{}
	came, seen := map[*tally]*formerly{}, int64(-1) // windows
	for _, like := range c.recurring() {
		err := c.count(ctx, from-(like.oldest+2)*window, from-max(0, like.newest-1)*window, 1, nil, func(s *tally, o store.Occurred) {
			number := (from - 1 - o.Second) / window
			if o.Span > 0 || number <= seen { // near two outages
				return
			}
			for _, one := range []*tally{s, s.family} {
				cells[cell{one, number}] += o.Count
				if came[one] == nil {
					came[one] = &formerly{enough: similar * float64(one.came.Count)}
				}
				came[one].add(o, number >= like.newest && number <= like.oldest)
			}
		})
		if err != nil {
			return err
		}
		for _, f := range came {
			f.close(c.q.Window <= shortChronic)
		}
		seen = like.oldest + 1
	}
	for of, n := range cells {
		slot := of.slots.at(of.window, c.tallies.shift)
		slot.n -= uint32(min(n, int64(slot.n)))
		slot.squares -= uint32(min(n*n, int64(slot.squares)))
		of.total, of.left = of.total-n, of.left+n
	}
	for s, f := range came {
		if f.counted || s.total == 0 {
			s.former = f.newest
		}
	}
	c.tallies.judge(c.windows)
	return nil
}

// formerly is how a series came in former outages, read from the newest on.
type formerly struct {
	enough  float64      // is as often as now
	like    query.Rhythm // in windows of an outage
	last    query.Rhythm // without a break
	newest  query.Rhythm // last, when it was enough
	ended   bool         // newest is all of that
	counted bool         // it came as often as now in the windows of an outage
}

// unbroken is how many seconds without an occurrence end an outage that is told of.
const unbroken = 5 * minute

// add counts what came, maybe in the windows of an outage.
func (f *formerly) add(o store.Occurred, like bool) {
	if f.last.Count > 0 && f.last.First-o.Second >= unbroken {
		f.last, f.ended = query.Rhythm{}, f.newest.Count > 0
	}
	if f.last.Add(o); !f.ended && float64(f.last.Count) >= f.enough {
		f.newest = f.last
	}
	if like {
		f.like.Add(o)
	}
}

// close ends the windows of an outage. If these are short, the outage may be one with breaks.
func (f *formerly) close(short bool) {
	if float64(f.like.Count) >= f.enough {
		f.counted = true
		if short && f.newest.Count == 0 {
			f.newest, f.ended = f.like, true
		}
	}
	f.like = query.Rhythm{}
}

// recurring returns the outages before the window in which a problem came about as often as now and rarely else, or
// several series did, the newest first.
func (c *comparison) recurring() (found []outageBefore) {
	var rare []*tally
	for _, s := range c.tallies.all {
		if s.recurs(c.windows) {
			rare = append(rare, s)
		}
	}
	slices.SortFunc(rare, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.came.Count, a.came.Count), a.compare(b.tallyKey))
	})
	longest := min(max(chronic, int64(shortChronic/c.q.Window)), int64(longChronic/c.q.Window))
	for _, s := range rare {
		for _, like := range s.before.outages[:s.before.happened] {
			if len(found) == maxFormer || slices.ContainsFunc(found, like.meets) || like.oldest-like.newest > longest {
				continue
			}
			together := 0
			for _, other := range rare {
				if slices.ContainsFunc(other.before.outages[:other.before.happened], like.meets) {
					together++
				}
			}
			if s.came.Count >= leastAgain || together >= leastTogether {
				found = append(found, like)
			}
		}
	}
	slices.SortFunc(found, func(a, b outageBefore) int { return cmp.Compare(a.newest, b.newest) })
	return found
}

// recurs reports whether a series came about as often in few outages before the window, and rarely else.
func (s *tally) recurs(windows float64) bool {
	b, now, others := &s.before, s.came.Count, s.total-s.before.n // without these outages, to tell one from a common burst
	if now == 0 || b.happened == 0 || b.happened > maxHappened {
		return false
	}
	if !s.alarming() { // routine comes together by chance, unless the reason is rare everywhere
		return 3*others <= now && (s.family == nil || s.family.recurs(windows))
	}
	return 3*others <= now*now || now >= 2*leastOutage && 10*float64(others) <= float64(now)*windows
}
