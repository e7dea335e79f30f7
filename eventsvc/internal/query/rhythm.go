package query

import (
	"math/bits"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// State says whether something goes on at the end of what is looked at.
type State string

// The states.
const (
	Ongoing State = "ongoing" // it comes as it came before
	Over    State = "over"    // it has not come for longer than its rhythm explains
	Once    State = "once"    // it came in one second only: it has no rhythm
)

const (
	// rhythmMinutes are the last minutes of a series by which its rhythm is judged.
	rhythmMinutes = 64
	// patience is how many times the usual distance something has to be missing until it is over.
	patience = 3
	// leastSilence is the shortest time after which something is over: reporters and mirrors wait for some seconds.
	leastSilence = time.Minute
)

// Rhythm is how something came: how often, when first and last, and in which of its last minutes. The zero Rhythm is of
// nothing.
type Rhythm struct {
	Count       int64
	First, Last int64  // seconds
	minutes     uint64 // of the last ones those in which it came, by the distance to the last one
	recent      int64  // how often it came in these
}

// Add adds what was observed.
func (r *Rhythm) Add(o store.Occurred) {
	if r.Count > 0 && o.Second/60 == r.Last/60 {
		r.Count, r.recent = r.Count+o.Count, r.recent+o.Count
		r.First, r.Last = min(r.First, o.Second), max(r.Last, o.Second)
		return
	}
	r.Merge(Rhythm{Count: o.Count, First: o.Second, Last: o.Second, minutes: 1, recent: o.Count})
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
	if by := r.Last/60 - o.Last/60; by < rhythmMinutes {
		kept := o.minutes << uint(by)
		r.minutes |= kept
		r.recent += o.recent * int64(bits.OnesCount64(kept)) / int64(bits.OnesCount64(o.minutes))
	}
}

// Every returns the usual distance between two occurrences, 0 if there is none: the one that three of four do not
// exceed, in whole minutes from a minute on.
func (r *Rhythm) Every() time.Duration {
	if r.Last == r.First {
		return 0
	}
	gaps := r.gaps()
	if len(gaps) == 0 { // the last minute only, or one long before it
		return time.Duration(r.Last-r.First) * time.Second / time.Duration(max(1, r.Count-1))
	}
	usual := gaps[0]
	var sorted [rhythmMinutes]int // how many gaps of each length there are
	for _, g := range gaps {
		sorted[g]++
	}
	for g, n := 0, 0; g < rhythmMinutes; g++ {
		if n += sorted[g]; 4*n >= 3*len(gaps) {
			usual = g
			break
		}
	}
	if usual > 1 {
		return time.Duration(usual) * time.Minute
	}
	span := int64(bits.Len64(r.minutes)) * 60
	return max(time.Second, (time.Duration(span) * time.Second / time.Duration(max(1, r.recent))).Round(time.Second))
}

// gaps returns the distances in minutes between those in which something came, the newest first.
func (r *Rhythm) gaps() (gaps []int) {
	before := 0
	for rest := r.minutes &^ 1; rest != 0; rest &= rest - 1 {
		at := bits.TrailingZeros64(rest)
		gaps = append(gaps, at-before)
		before = at
	}
	return gaps
}

// At returns the state at a time.
func (r *Rhythm) At(now time.Time) State {
	every := r.Every()
	if every == 0 {
		return Once
	}
	if gaps := r.gaps(); len(gaps) > 0 { // what comes more and more rarely, such as a back-off, is not over for that
		every = max(every, time.Duration(gaps[0])*time.Minute)
	}
	if silence := now.Sub(time.Unix(r.Last, 0)); silence > max(leastSilence, patience*every) {
		return Over
	}
	return Ongoing
}
