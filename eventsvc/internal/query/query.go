package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Querier is what queries are answered from.
type Querier struct {
	Timeline store.Timeline
	Revision func() uint64                     // of the newest write
	Origin   func(*store.View) (string, error) // its [event.Origin]
	Now      func() time.Time
	Limits
}

// Limits bound a query. A zero field is taken from [DefaultLimits].
type Limits struct {
	Looked int // versions that are looked at for a page of events
	Groups int // groups that are counted apart
}

// DefaultLimits are the limits of a querier that is told nothing else.
var DefaultLimits = Limits{Looked: 500_000, Groups: 100_000}

// Query says what is asked about.
type Query struct {
	// From and To are whole seconds; To is not part of the range. A zero From is the
	// beginning of history.
	From, To time.Time
	Revision uint64 // the state that is looked at; 0: the newest
	// Allows reports whether the caller may look at the events of a cluster in a namespace. The cluster is empty for
	// those without one.
	Allows func(namespace, cluster string) bool
	Terms  Terms
}

// Head says what an answer covers.
type Head struct {
	From, To time.Time
	Revision uint64
	Begin    time.Time   // of history
	Gaps     []event.Gap // in which nobody watched a cluster
	Dropped  []event.Gap // what each rule dropped, in one time that has all of its hours
	Partial  []string    // why the answer is not whole; empty: it is
	Hints    []string    // which terms of the search fit nothing, if nothing was found, and what may have been meant
	// OverEvents is set if counts are those of the versions of events that are held, because the dimensions alone
	// cannot answer.
	OverEvents bool
}

// ParameterError says which parameter of a query is wrong, and what would be right.
type ParameterError struct{ Parameter, Problem string }

func (e *ParameterError) Error() string { return e.Parameter + ": " + e.Problem }

func invalid(parameter, format string, args ...any) error {
	return &ParameterError{parameter, fmt.Sprintf(format, args...)}
}

// Snapshot is the part of one state of the store that a query is about.
type Snapshot struct {
	Head

	querier Querier
	query   Query
	held    uint64 // the revision to read at; 0: the newest, because the revision of the snapshot is gone
}

// Snapshot fixes the state that a query is about. A range that ends before history begins
// is a [ParameterError].
func (s Querier) Snapshot(ctx context.Context, q Query) (*Snapshot, error) {
	d := DefaultLimits
	s.Limits = Limits{cmp.Or(s.Looked, d.Looked), cmp.Or(s.Groups, d.Groups)}
	if current := s.Revision(); q.Revision > current {
		return nil, &store.FutureError{Revision: q.Revision, Current: current}
	} else if q.Revision == 0 {
		q.Revision = current
	}
	begin, _, err := s.Timeline.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if !q.To.After(begin) {
		return nil, invalid("to", "the range ends before history begins, at %s", begin.UTC().Format(time.RFC3339))
	}
	if q.From.IsZero() {
		q.From = begin.UTC().Truncate(time.Second)
	}
	shot := &Snapshot{
		Head:    Head{From: q.From, To: q.To, Revision: q.Revision, Begin: begin},
		querier: s, query: q, held: q.Revision,
	}
	if q.From.Before(begin.Truncate(time.Second)) {
		shot.Partly("history begins at %s", begin.UTC().Format(time.RFC3339))
	}
	return shot, nil
}

// Partly notes why an answer is not whole.
func (s *Snapshot) Partly(format string, args ...any) {
	if reason := fmt.Sprintf(format, args...); !slices.Contains(s.Partial, reason) {
		s.Partial = append(s.Partial, reason)
	}
}

// reading calls read, which reads at s.held. If that revision is no longer held, reading sets
// s.held to 0, the newest one, and calls read once more.
func (s *Snapshot) reading(read func() error) error {
	err := read()
	if _, ok := errors.AsType[*store.ExpiredError](err); s.held == 0 || !ok {
		return err
	}
	s.held = 0
	s.Partly("the state of revision %d is no longer held: events that were changed or deleted since are left out", s.Head.Revision)
	return read()
}

// wants returns a function that reports whether the query is about a version. It does not look at the note.
func (s *Snapshot) wants() func(*store.View) bool {
	asked := s.query.Terms.matching()
	return func(v *store.View) bool {
		is := &event.Subject{Namespace: v.Namespace, Name: v.Name, Attributes: v.Attributes}
		return s.sees(*is.Dimensions()) && asked.Matches(is)
	}
}

// sees reports whether a query may be about events with these dimensions, whatever its terms are.
func (s *Snapshot) sees(d event.Dimensions) bool { return s.query.Allows(d.Namespace, d.Cluster) }

// begin returns the first second that can have observations.
func (s *Snapshot) begin() time.Time {
	if begin := s.Begin.Truncate(time.Second); s.From.Before(begin) {
		return begin
	}
	return s.From
}

// values visits the values that the dimensions have in what was observed in the range, and may be seen.
func (s *Snapshot) values(ctx context.Context, by []string, sees func(event.Dimensions) bool, visit func(dimension, value string)) error {
	in := store.Range{From: s.begin(), To: s.To, Revision: s.Head.Revision, Sees: sees}
	return s.querier.Timeline.Count(ctx, store.Count{Range: in, By: by, Values: visit}, nil)
}

// Describe returns the reasons why the answer is not whole, as one text.
func (h *Head) Describe() string { return strings.Join(h.Partial, "; ") }
