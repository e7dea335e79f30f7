package store

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// Timeline is what an engine knows of what happened, by the time at which it was observed (see [event.Occurrence]).
// Every method is safe for concurrent use. A call reads one state of the store, of which an engine holds the files
// meanwhile: the functions that it calls must not wait for a client. A call that takes long lets other requests go
// first now and then.
type Timeline interface {
	// Count calls visit with all that was observed in a range of time, in no order, also with what a version
	// reports that has been superseded, deleted or compacted since: of each, its dimensions and when it was observed
	// are kept for as long as events are. If a filter or a group asks for more than that, the versions that are held
	// count. A revision has no need to be held. The work depends on what is stored and not on the length of the range.
	Count(ctx context.Context, c Count, visit func(Occurred)) error
	// Survey counts several times and visits the events of a page, in one pass.
	Survey(ctx context.Context, s Survey) (TimePage, error)
	// Observed calls visit with the events of a page, ordered by their last observation in the range,
	// until visit returns false. It reads a bounded number of events, so a page may have
	// few or none although there are more.
	Observed(ctx context.Context, q TimeQuery, visit func(*View, Moment) bool) (TimePage, error)
	// Versions calls visit with every version that is held of each event that has a
	// version which matches a selector, superseded ones too, by event and revision; and
	// with the last version of a deleted event again, with gone set, under the revision
	// and time of its deletion.
	Versions(ctx context.Context, s *event.Selector, visit func(v *View, gone bool) bool) error
	// Deleted calls visit with the last version of each event of a key that was deleted, as
	// far as they are held, the newest first, until it returns false. It
	// goes back over a bounded number of versions, and ends where one is damaged.
	Deleted(ctx context.Context, key Key, visit func(*View) bool) error
	// Deletions calls visit with the last version of each event that somebody deleted, and with who did, under the
	// revision and time of its deletion and in the order of these, until it returns false. What the service itself has
	// deleted, because it was past its time, is left out. So is what is no longer held.
	Deletions(ctx context.Context, q DeletionQuery, visit func(v *View, by []byte) bool) error
	// Gaps returns the gaps without a rule that the marked events of a state report, those that were
	// written last first. It looks at so many marked versions at most, and tells whether
	// there are more.
	Gaps(ctx context.Context, revision uint64, most int) (gaps []Gap, more bool, err error)
	// Begin returns the times of the first observation that is held, in whole minutes, and
	// of the first write that is; the present where there is none.
	Begin(ctx context.Context) (observed, written time.Time, err error)
}

// Range is a range of time, and the state in which it is looked at.
type Range struct {
	From, To time.Time // in whole seconds; To is not part of it
	Revision uint64    // what was written up to it; 0: the newest
	// Sees reports whether the caller may see events of the namespace and cluster of these dimensions, of which it
	// looks at no others; nil: all. What it may not see is not read, so that a caller does not pay for what others have
	// written.
	Sees func(event.Dimensions) bool
}

// DeletionQuery says which deletions are asked for.
type DeletionQuery struct {
	From, To     time.Time // when they were written; To is not part of the range
	After, Until uint64    // revisions: behind the first one, up to the second one
}

// Resume returns the draft of an event that does not exist, but may have existed before it was
// deleted: what was counted of it then is not counted again. The events of its key that were
// deleted are told apart by their origin.
func Resume(ctx context.Context, t Timeline, key Key, d Draft, origin string, originOf func(*View) (string, error)) (Draft, error) {
	var before event.Attributes
	err := t.Deleted(ctx, key, func(v *View) bool {
		found, err := originOf(v)
		if err == nil && found == origin {
			before = slices.Clone(v.Attributes)
			return false
		}
		return true
	})
	if before != nil {
		d.Attributes = d.Attributes.Since(before)
	}
	return d, err
}

// Gap is a gap that an event of a namespace reports. The server believes it: see
// [event.Attributes.WithReport].
type Gap struct {
	event.Gap
	Namespace string
	Revision  uint64 // of the version that reports it
}

// Ceil rounds a time up to a whole second, as the end of a [Range].
func Ceil(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// Occurred says how often something was observed within a second or, if it has a span, evenly
// within so many: of the first version of an event no more may be known.
type Occurred struct {
	Group  int // of its dimensions
	Second int64
	Span   int64 // seconds, with the first one; 0: that is all
	Count  int64
}

// Before returns how many of the occurrences were before a second. The first one was at the begin
// of the span.
func (o Occurred) Before(second int64) int64 {
	since, span := second-o.Second, max(1, o.Span)
	switch {
	case since <= 0:
		return 0
	case since >= span:
		return o.Count
	}
	high, low := bits.Mul64(uint64(o.Count), uint64(since))
	low, carry := bits.Add64(low, uint64(span-1), 0)
	n, _ := bits.Div64(high+carry, low, uint64(span)) // rounded up
	return int64(n)
}

// Moment is a place in the order of a timeline: by time, and by revision at one time.
type Moment struct {
	Time     time.Time // of the last observation, in whole microseconds
	Revision uint64
}

// Compare is the order of a timeline, the newest first unless oldestFirst is true.
func (m Moment) Compare(other Moment, oldestFirst bool) int {
	if !oldestFirst {
		m, other = other, m
	}
	return cmp.Or(m.Time.Compare(other.Time), cmp.Compare(m.Revision, other.Revision))
}

// TimeQuery says which events a page of a timeline is about: those that exist in the state of the range's revision, and
// that were last observed within the range, which need not be in whole seconds. A revision that is no longer held is an
// *ExpiredError.
type TimeQuery struct {
	Range
	// Window asks for all events that were observed within the range, each as it was last observed there: its newest
	// version there that matches. One that was observed behind the range ends the search for newer ones.
	Window bool
	// Versions asks for all versions that are held and were observed within the range, each as it was last observed
	// there, also those of events that do not exist.
	Versions    bool
	OldestFirst bool                        // newest first otherwise
	After       Moment                      // only behind this place; zero: from the first
	Wanted      func(event.Dimensions) bool // nil: all
	Selector    *event.Selector             // nil: all
	Filter      *event.Filter               // nil: all
	// Match decides on a version that is wanted otherwise; nil: all match. An error ends the page.
	Match func(*View) (bool, error)
	Limit int // visit takes about so many events, so that no others are looked for; 0: not known
}

// Matching returns all that the query asks of a version as a filter, but for Match.
func (q *TimeQuery) Matching() *event.Filter {
	all := event.All(q.Filter, q.Selector.Filter(), q.seen())
	if q.Wanted != nil {
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterDimensions, Wants: q.Wanted})
	}
	return all
}

// TimePage says how far a page has come.
type TimePage struct {
	Revision uint64 // the state that the page shows
	Last     Moment // the After of the next page
	More     bool   // there may be events behind Last
	Looked   int    // about how many versions were looked at
}

// Count says what is counted.
type Count struct {
	Range
	Filter  *event.Filter // nil: all
	By      []string      // the dimensions that Group is told of ([event.DimensionNames]); nil: all
	Objects bool          // Group is told of objects
	Step    int64         // seconds: what was observed within one step of these, from 1970 on, may be visited as one; 0: it is not
	// Group returns the number of the group of observations, a negative one if they are left out. It is called once or
	// more with each combination of what it is told of.
	Group func(event.Dimensions, event.Regarding) int
	// Values, if it is not nil, is called instead with each value of the dimensions that something observed has, once or
	// more, and nothing is counted.
	Values func(dimension, value string)
}

// Matching returns all that is asked of a version as a filter, nil if that is nothing.
func (c *Count) Matching() *event.Filter {
	if seen := c.seen(); seen != nil {
		return event.All(c.Filter, seen)
	}
	return c.Filter
}

// A Survey is one question of which several things are counted and the first events are visited.
type Survey struct {
	Range                // its revision is that of the counts, and has no need to be held
	Filter *event.Filter // nil: all
	Counts []Counting
	Visit  func(*View, Moment) bool // gets the first page of a [TimeQuery] for a window; nil: none is read
	State  uint64                   // the revision of the page, which must be held; 0: the newest
	// OldestFirst is the order of the page, in which tables are gone over too.
	OldestFirst bool
	// Counted, if it is not nil, is called now and then with a time up to which all is counted, and visited unless the
	// page is full. It is called in the order of the page.
	Counted func(time.Time)
}

// Counting is one of the counts of a [Survey]: its range and filter are those of the survey.
type Counting struct {
	Count
	Visit func(Occurred)
}

// Light reports whether all counts are ([Count.Light]).
func (s *Survey) Light() bool {
	return !slices.ContainsFunc(s.Counts, func(c Counting) bool {
		c.Filter = s.Filter
		return !c.Light()
	})
}

// seen returns a filter of what the caller may see, nil if that is everything.
func (r *Range) seen() *event.Filter {
	if r.Sees == nil {
		return nil
	}
	return &event.Filter{Kind: event.FilterPlace, Allows: func(namespace, cluster string) bool {
		return r.Sees(event.Dimensions{Namespace: namespace, Cluster: cluster})
	}}
}

// Light reports whether what a version reports counts although it is no longer held: nothing is asked of it but its
// dimensions.
func (c *Count) Light() bool {
	return !c.Objects && !c.Patterns() && (c.Filter == nil || c.Filter.OnDimensions())
}

// Patterns reports whether Group is told of patterns.
func (c *Count) Patterns() bool { return slices.Contains(c.By, event.PatternDimension) }

// Counts reports whether Group is told of a dimension.
func (c *Count) Counts(dimension string) bool { return c.By == nil || slices.Contains(c.By, dimension) }
