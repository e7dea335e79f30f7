package query

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// State says whether something goes on at the end of what is looked at.
type State string

// The states.
const (
	Ongoing State = "ongoing" // it comes as it came before
	Over    State = "over"    // it has not come for longer than its rhythm explains
	Once    State = "once"    // it has no rhythm: it came once, or now and then
)

const (
	// frequent is the longest usual distance, in minutes, that is a rhythm though single distances are longer or shorter.
	// Longer ones are too few among the last minutes to tell a rhythm from chance, unless they are alike.
	frequent = 10
	// patience is how many times the usual distance something has to be missing until it is over.
	patience = 3
	// leastSilence is the shortest time after which something is over: reporters and mirrors wait for some seconds.
	leastSilence = time.Minute
)

// Rhythm is how something came: how often, when first and last, and in which of its last minutes and hours. The zero
// Rhythm is of nothing.
type Rhythm struct {
	Count       int64
	First, Last int64  // seconds
	minutes     lately // those in which it came
	hours       lately // likewise
	recent      int64  // how often it came in these
}

// lately has a bit for each of the last 128 minutes or hours, by the distance to the last one.
type lately [2]uint64

// last has the last one only.
var last = lately{1}

// before returns those that are so much further away.
func (l lately) before(by uint) lately {
	return lately{l[0] << by, l[1]<<by | l[0]<<(by-64) | l[0]>>(64-by)}
}

func (l *lately) add(o lately) { l[0], l[1] = l[0]|o[0], l[1]|o[1] }

func (l lately) count() int64 { return int64(bits.OnesCount64(l[0]) + bits.OnesCount64(l[1])) }

// Add adds what was observed. What comes in the order of time is added in place, as Merge would.
func (r *Rhythm) Add(o store.Occurred) {
	switch minutes := o.Second/60 - r.Last/60; {
	case r.Count == 0 || minutes < 0 || o.Count == 0:
		r.Merge(Rhythm{Count: o.Count, First: o.Second, Last: o.Second, minutes: last, hours: last, recent: o.Count})
		return
	case minutes > 0:
		were := r.minutes.count()
		r.minutes, r.hours = r.minutes.before(uint(minutes)), r.hours.before(uint(o.Second/3600-r.Last/3600))
		r.recent = r.recent * r.minutes.count() / max(1, were)
		r.minutes.add(last)
		r.hours.add(last)
	}
	r.Count, r.recent = r.Count+o.Count, r.recent+o.Count
	r.First, r.Last = min(r.First, o.Second), max(r.Last, o.Second)
}

// Merge adds what another rhythm has.
func (r *Rhythm) Merge(o Rhythm) {
	if o.Count == 0 {
		return
	}
	if r.Count == 0 || r.Last < o.Last {
		*r, o = o, *r
	}
	if r.Count += o.Count; o.Count > 0 {
		r.First = min(r.First, o.First)
	}
	r.hours.add(o.hours.before(uint(r.Last/3600 - o.Last/3600)))
	kept := o.minutes.before(uint(r.Last/60 - o.Last/60))
	r.minutes.add(kept)
	r.recent += o.recent * kept.count() / max(1, o.minutes.count())
}

// Every returns the usual distance between two occurrences, 0 if there is none: the one that three of four do not
// exceed, in whole minutes from a minute on. Two outbreaks far from each other have none, and neither has what comes
// rarely and irregularly.
func (r *Rhythm) Every() time.Duration {
	if r.First/60 == r.Last/60 {
		return time.Duration(r.Last-r.First) * time.Second / time.Duration(max(1, r.Count-1))
	}
	minutes, hours := gaps(r.minutes), gaps(r.hours)
	if often := usual(minutes); often == 1 {
		busy := time.Duration(r.minutes.count()) * time.Minute
		return max(time.Second, (busy / time.Duration(max(1, r.recent))).Round(time.Second))
	} else if often > 0 && often <= frequent && even(minutes) {
		return time.Duration(often) * time.Minute
	}
	if often := alike(minutes, 2); often > 0 {
		return time.Duration(often) * time.Minute
	}
	if often := alike(hours, 3); len(minutes) < 2 && often > 0 {
		return time.Duration(often) * time.Hour
	}
	return 0
}

// gaps returns the distances between the bits that are set, the first ones first.
func gaps(set lately) (gaps []int) {
	before := 0
	for i, rest := range set {
		for ; rest != 0; rest &= rest - 1 {
			if at := 64*i + bits.TrailingZeros64(rest); at > 0 {
				gaps = append(gaps, at-before)
				before = at
			}
		}
	}
	return gaps
}

// usual returns the distance that three of four do not exceed, 0 if there is none.
func usual(gaps []int) int {
	sorted := slices.Sorted(slices.Values(gaps))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(3*len(sorted)+3)/4-1]
}

// even reports whether distances tell when the next occurrence is due: three of four are within a multiple of the
// shortest quarter, or they grow, as those of a back-off. A probe that fails now and then has no such rhythm.
func even(gaps []int) bool {
	shortest := slices.Sorted(slices.Values(gaps))[len(gaps)/4]
	return usual(gaps) <= patience*shortest || slices.IsSortedFunc(gaps, func(a, b int) int { return cmp.Compare(b, a) })
}

// alike returns the usual one of at least so many distances, of which none is longer than another by more than a half
// and what the rounding to whole minutes or hours explains. One beat may have been late or missed: a single distance
// that is longer counts for nothing, up to a multiple of the shortest. It returns 0 if they are not alike.
func alike(gaps []int, least int) int {
	sorted := slices.Sorted(slices.Values(gaps))
	same := func(gaps []int) bool { return len(gaps) >= least && 2*(gaps[len(gaps)-1]-1) <= 3*gaps[0] }
	if n := len(sorted) - 1; n >= least && !same(sorted) && sorted[n] <= patience*sorted[0] {
		sorted = sorted[:n]
	}
	if !same(sorted) {
		return 0
	}
	return usual(sorted)
}

// At returns the state at a time.
func (r *Rhythm) At(now time.Time) State {
	every := r.Every()
	if every == 0 {
		return Once
	}
	if gaps := gaps(r.minutes); len(gaps) > 0 { // what comes more and more rarely, such as a back-off, is not over for that
		every = max(every, min(patience*every, time.Duration(gaps[0])*time.Minute))
	}
	if silence := now.Sub(time.Unix(r.Last, 0)); silence > max(leastSilence, patience*every) {
		return Over
	}
	return Ongoing
}
