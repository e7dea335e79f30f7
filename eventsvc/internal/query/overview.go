package query

import (
	"cmp"
	"context"
	"math"
	"time"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// OverviewQuery says what is asked of one question together. Its zero value asks for the total.
type OverviewQuery struct {
	By     []Dimension   // of the facets
	Values int           // of each facet
	Over   []Dimension   // of the histogram
	Step   time.Duration // of the histogram; 0: chosen
	// Most is how many buckets a chosen step makes; a range that begins within a bucket has one more. 0: as many as usual.
	Most int64

	OldestFirst  bool
	Limit, Bytes int // of the events: no more than so many, and no other once they have so many bytes. 0: none are read

	// Counted, if it is not nil, is called now and then with a time up to which all is counted: from the end of the range
	// or, with OldestFirst, from its beginning. soFar makes an overview of what has been counted.
	Counted func(upTo time.Time, soFar func() (*Overview, error))
}

// Overview is what was asked together.
type Overview struct {
	Total     int64
	Facets    []Facet
	Histogram Histogram
	Events    []Happened // the first page
	Next      Next
	Complete  bool // the page is: Events and Next change no more
}

// overview counts for an overview.
type overview struct {
	*Snapshot
	ask    *OverviewQuery
	step   time.Duration
	memory *memory
	facets []*valueCounter
	over   *table
	cells  *grid
	out    Overview
	bytes  int // of the events
}

// Overview counts, and reads the first page of events, in one pass over what is stored.
func (s *Snapshot) Overview(ctx context.Context, ask OverviewQuery) (*Overview, error) {
	step, err := s.stepOf(&ask)
	if err != nil {
		return nil, err
	}
	o := &overview{Snapshot: s, ask: &ask, step: step}
	if err := s.reading(func() error { return o.read(ctx) }); err != nil {
		return nil, err
	}
	if o.cells.full {
		if o.over, o.cells, err = s.countMost(ctx, o.over, o.cells, ask.Over, step); err != nil {
			return nil, err
		}
	}
	o.out.Complete = true
	return o.soFar(ctx)
}

func (s *Snapshot) stepOf(ask *OverviewQuery) (time.Duration, error) {
	switch {
	case ask.Step != 0:
		return ask.Step, CheckStep(ask.Step, s.From, s.To)
	case ask.Most > 0:
		return StepOf(s.begin(), s.To.Add(-time.Second), ask.Most), nil
	}
	return StepOf(s.begin(), s.To, usualBuckets), nil
}

// read reads everything once.
func (o *overview) read(ctx context.Context) error {
	o.memory = &memory{room: flow.FromContext(ctx).Room()}
	o.out, o.facets, o.bytes = Overview{}, nil, 0
	s := store.Survey{
		Range: store.Range{From: o.begin(), To: o.To, Revision: o.Head.Revision, Sees: o.sees}, Filter: o.query.Terms.Filter(),
		State: o.held, OldestFirst: o.ask.OldestFirst,
	}
	for _, d := range o.ask.By {
		f := &valueCounter{table: newTable(o.memory, []Dimension{d}, o.querier.Groups)}
		o.facets = append(o.facets, f)
		s.Counts = append(s.Counts, f.counting(math.MaxInt64, f.add))
	}
	o.over, o.cells = newTable(o.memory, o.ask.Over, o.querier.Groups), o.newGrid(o.memory, o.step)
	s.Counts = append(s.Counts, o.over.counting(o.step, o.cells.count))
	if o.ask.Limit > 0 {
		s.Visit = o.visit
	}
	if o.ask.Counted != nil {
		s.Counted = func(upTo time.Time) { o.ask.Counted(upTo, func() (*Overview, error) { return o.soFar(ctx) }) }
	}
	o.OverEvents = !s.Light()
	page, err := o.querier.Timeline.Survey(ctx, s)
	o.out.Next = Next{page.Last, page.More}
	for _, f := range o.facets {
		o.noteFull(f.table)
	}
	o.noteFull(o.over)
	return cmp.Or(err, o.memory.err)
}

// visit keeps an event of the page.
func (o *overview) visit(v *store.View, at store.Moment) bool {
	if at.Revision > o.Head.Revision { // the state that is read may be newer
		return true
	}
	h := Happened{Record: v.Clone(), At: at, Count: 1}
	if seen, ok := v.Attributes.Occurrence(); ok {
		h.Count = seen.Count
	}
	o.out.Events, o.bytes = append(o.out.Events, h), o.bytes+len(v.Value)
	o.out.Complete = len(o.out.Events) == o.ask.Limit || o.bytes >= o.ask.Bytes
	o.out.Next = Next{at, true}
	return !o.out.Complete
}

// soFar returns an overview of what has been counted. What it takes in memory is given back.
func (o *overview) soFar(ctx context.Context) (*Overview, error) {
	before := o.memory.bytes
	defer func() { o.memory.bytes = before }()
	var err error
	out := o.out
	if out.Histogram, err = o.cells.histogram(ctx, o.over); err != nil {
		return nil, err
	}
	out.Total = out.Histogram.Total
	for _, f := range o.facets {
		one, err := f.facet(ctx, out.Total, o.ask.Values)
		if err != nil {
			return nil, err
		}
		out.Facets = append(out.Facets, one)
	}
	return &out, nil
}
