package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

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
	// similar is the part of the count in the window from which on a window before is one of an outage like this one.
	similar = 0.5
	// leastAgain is the smallest count in the window that can be a recurrence, maxHappened how often at most the same may
	// have happened before, and maxFormer how many former outages are left out.
	leastAgain, maxHappened, maxFormer = 3, 3, 3
	// chronic is for how many windows in a row what is similar has to come until it is usual.
	chronic = 8
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
// If it can have outages, both are without them: of a slot that has a multiple of the median only that counts.
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

// seconds is how long before the window the one of a number was.
func (timesBefore) seconds(i int) int64 {
	if i < dailyTimes {
		return int64(i+1) * daySeconds
	}
	return int64(i-dailyTimes+2) * 7 * daySeconds
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

// before is what a series did before the window, as it did in the window.
type before struct {
	since    int64 // windows for which it goes on
	newest   int64 // window, the newest of the former outage
	oldest   int64
	n        int64 // in that
	happened int   // outages like this one
	last     int64 // window of the last outage that was found
}

// close takes notice of a window before the window. They come in their order.
func (b *before) close(w windowCount, now int64) {
	if w.n < 1 || w.n < similar*float64(now) {
		return
	}
	switch {
	case b.happened == 0 && w.window == b.since:
		b.since++
		return
	case b.happened == 0 || w.window-b.last > 2:
		b.happened++
		if b.happened == 1 {
			b.newest = w.window
		}
	}
	if b.happened == 1 {
		b.oldest = w.window
	}
	b.n += int64(w.n)
	b.last = w.window
}

// formerly leaves out of what is usual the outages before the window that were like one in it: all that came while a
// warning came about as often as now.
func (c *comparison) formerly(ctx context.Context) error {
	window, from := int64(c.q.Window/time.Second), c.answer.Range.From.Unix()
	type cell struct {
		*tally
		window int64
	}
	cells := map[cell]int64{}
	var seen [][2]int64
	for _, like := range c.recurring() {
		newest, oldest := max(0, like.before.newest-1), like.before.oldest+1
		if len(seen) == maxFormer || slices.ContainsFunc(seen, func(in [2]int64) bool { return newest <= in[1] && in[0] <= oldest }) {
			continue
		}
		seen = append(seen, [2]int64{newest, oldest})
		err := c.count(ctx, from-(oldest+1)*window, from-newest*window, func(s *tally, o store.Occurred) {
			if o.Span > 0 {
				return
			}
			number := (from - 1 - o.Second) / window
			for _, one := range []*tally{s, s.family} {
				cells[cell{one, number}] += o.Count
				if number >= like.before.newest && number <= like.before.oldest {
					one.former.Add(o)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for of, n := range cells {
		slot := of.slots.at(of.window, c.tallies.shift)
		slot.n -= uint32(min(n, int64(slot.n)))
		slot.squares -= uint32(min(n*n, int64(slot.squares)))
		of.total -= n
	}
	c.tallies.judge(c.windows)
	return nil
}

// recurring returns the warnings that came about as often in few outages before the window and rarely else, those that
// come most often first.
func (c *comparison) recurring() (found []*tally) {
	for _, s := range c.tallies.all {
		b := &s.before
		long := (b.oldest - b.newest) * int64(c.q.Window/time.Second)
		now, others := s.came.Count, s.total-b.n // without these outages, to tell one from a common burst
		rare := 3*others <= now*now || now >= 2*leastOutage && 10*float64(others) <= float64(now)*c.windows
		if rare && s.alarming() && s.came.Count >= leastAgain && b.happened > 0 && b.happened <= maxHappened && long <= daySeconds {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.came.Count, a.came.Count), a.compare(b.tallyKey))
	})
	return found
}
