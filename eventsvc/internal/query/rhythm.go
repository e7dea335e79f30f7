package query

import (
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
	// rhythmBits are the last minutes of a series by which its rhythm is judged, or the last hours of a slow one.
	rhythmBits = 64
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
	minutes     uint64 // of the last ones those in which it came, by the distance to the last one
	hours       uint64 // likewise
	recent      int64  // how often it came in these
}

// Add adds what was observed.
func (r *Rhythm) Add(o store.Occurred) {
	if r.Count > 0 && o.Second/60 == r.Last/60 {
		r.Count, r.recent = r.Count+o.Count, r.recent+o.Count
		r.First, r.Last = min(r.First, o.Second), max(r.Last, o.Second)
		return
	}
	r.Merge(Rhythm{Count: o.Count, First: o.Second, Last: o.Second, minutes: 1, hours: 1, recent: o.Count})
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
	if by := r.Last/3600 - o.Last/3600; by < rhythmBits {
		r.hours |= o.hours << uint(by)
	}
	if by := r.Last/60 - o.Last/60; by < rhythmBits {
		kept := o.minutes << uint(by)
		r.minutes |= kept
		r.recent += o.recent * int64(bits.OnesCount64(kept)) / int64(bits.OnesCount64(o.minutes))
	}
}

// Every returns the usual distance between two occurrences, 0 if there is none: the one that three of four do not
// exceed, in whole minutes from a minute on. Two outbreaks far from each other have none, and neither has what comes
// rarely and irregularly.
func (r *Rhythm) Every() time.Duration {
	if r.First/60 == r.Last/60 {
		return time.Duration(r.Last-r.First) * time.Second / time.Duration(max(1, r.Count-1))
	}
	minutes, hours := gaps(r.minutes), gaps(r.hours)
	switch often := usual(minutes); {
	case often == 1:
		busy := time.Duration(bits.OnesCount64(r.minutes)) * time.Minute
		return max(time.Second, (busy / time.Duration(max(1, r.recent))).Round(time.Second))
	case often > 0 && often <= frequent, alike(minutes, 2):
		return time.Duration(often) * time.Minute
	case len(minutes) < 2 && alike(hours, 3):
		return time.Duration(usual(hours)) * time.Hour
	}
	return 0
}

// gaps returns the distances between the bits that are set, the first ones first.
func gaps(set uint64) (gaps []int) {
	before := 0
	for rest := set &^ 1; rest != 0; rest &= rest - 1 {
		at := bits.TrailingZeros64(rest)
		gaps = append(gaps, at-before)
		before = at
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

// alike reports whether there are at least so many distances, of which none is longer than another by more than a half
// and what the rounding to whole minutes or hours explains.
func alike(gaps []int, least int) bool {
	return len(gaps) >= least && 2*(slices.Max(gaps)-1) <= 3*slices.Min(gaps)
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
