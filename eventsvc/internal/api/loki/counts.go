package loki

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// evaluate returns the series of a metric at points in time.
func (a *API) evaluate(r *request, m logql.Metric, points []time.Time) ([]*logql.Series, error) {
	named := map[string]bool{}
	logql.Groupings(m, func(name string) { named[name] = true })
	cells := 0
	return logql.Evaluate(m, len(points), func(of *logql.RangeAggregation, by *logql.Grouping) ([]*logql.Series, error) {
		windows := make([]period, len(points))
		for i, p := range points {
			end := p.Add(-of.Offset)
			windows[i] = period{end.Add(-of.Range), end}
		}
		c := newCounter(r, of, by, named, windows, &cells)
		count := c.countVersions
		if byStream(of.Log, named) {
			count = c.countStreams
		}
		if err := count(a, r); err != nil {
			return nil, err
		}
		return c.result(), nil
	})
}

// counter counts for one range aggregation. Its cells are the spans of time between the
// beginnings and ends of all windows.
type counter struct {
	request *request
	of      *logql.RangeAggregation
	by      *logql.Grouping // nil: series are not put together
	named   map[string]bool // labels that the expression groups by
	from    []int64         // nanoseconds since 1970 at which the window of each point begins
	to      []int64         // and ends
	edges   []int64         // both, in order
	series  []*counted
	byKey   map[string]int
	room    share // for series
	cells   *int  // of all counters of the request
	last    int   // the cell that was counted in before
}

// cellBytes is what a cell takes: its count, and the value of a point with whether it has one.
const cellBytes = 17

// counted is a series with the count of each cell.
type counted struct {
	labels []logql.Label
	counts []int64
}

func newCounter(r *request, of *logql.RangeAggregation, by *logql.Grouping, named map[string]bool, windows []period, cells *int) *counter {
	c := &counter{request: r, of: of, by: by, named: named, byKey: map[string]int{}, cells: cells}
	for _, in := range windows { // in whole seconds, in which occurrences are
		c.from = append(c.from, store.Ceil(in.start).UnixNano())
		c.to = append(c.to, store.Ceil(in.end).UnixNano())
	}
	c.edges = slices.Concat(c.from, c.to)
	slices.Sort(c.edges)
	c.edges = slices.Compact(c.edges)
	c.room.most = min(maxInner, max(1, (maxCells-*cells)/len(c.edges)))
	return c
}

// period is what the windows cover.
func (c *counter) period() period {
	return period{time.Unix(0, c.edges[0]), time.Unix(0, c.edges[len(c.edges)-1])}
}

// find returns the number of a series, a new one if its labels are new, and -1 if there is no room for one of its
// namespace.
func (c *counter) find(namespace string, labels []logql.Label) (int, error) {
	key := logql.Key(labels)
	n, ok := c.byKey[key]
	if ok {
		return n, nil
	}
	if !c.room.take(namespace) {
		c.request.warn("there are more than %d series, and some of the namespaces that have most were not counted: select fewer streams, use a larger step, or aggregate with sum by", c.room.most)
		return -1, nil
	}
	*c.cells += len(c.edges)
	if err := c.request.grow(cellBytes * len(c.edges)); err != nil {
		return 0, err
	}
	c.byKey[key] = len(c.series)
	c.series = append(c.series, &counted{labels, make([]int64, len(c.edges))})
	return len(c.series) - 1, nil
}

// cell returns the number of the cell of a time, in nanoseconds since 1970, a negative one if
// that is before all. Neighbours often have the same cell.
func (c *counter) cell(at int64) int {
	i := c.last
	if at < c.edges[i] || i+1 < len(c.edges) && at >= c.edges[i+1] {
		i = sort.Search(len(c.edges), func(i int) bool { return c.edges[i] > at }) - 1
	}
	c.last = max(0, i)
	return i
}

// occurred counts what was observed, in all cells of its span.
func (c *counter) occurred(o store.Occurred) {
	counted := int64(0)
	for i := c.cell(o.Second * int64(time.Second)); i >= 0 && i+1 < len(c.edges) && counted < o.Count; i++ {
		n := o.Before(c.edges[i+1] / int64(time.Second))
		c.series[o.Group].counts[i] += n - counted
		counted = n
	}
}

// labels returns the labels of an entry that its series has.
func (c *counter) labels(e *logql.Entry) []logql.Label {
	keeps := c.of.Log.Keeps()
	var labels []logql.Label
	for _, l := range e.Labels {
		if l.Category == logql.Stream || keeps || c.named[l.Name] {
			labels = append(labels, l)
		}
	}
	logql.SortLabels(labels)
	if c.by != nil {
		return c.by.Apply(labels)
	}
	return labels
}

// result returns the series with the value of each window. A window in which nothing
// happened has none.
func (c *counter) result() []*logql.Series {
	var all []*logql.Series
	for _, s := range c.series {
		before := make([]int64, len(s.counts)+1) // counts before each edge
		for i, n := range s.counts {
			before[i+1] = before[i] + n
		}
		made, some := logql.NewSeries(s.labels, len(c.from)), false
		for i := range c.from {
			from, _ := slices.BinarySearch(c.edges, c.from[i])
			to, _ := slices.BinarySearch(c.edges, c.to[i])
			n := float64(before[to] - before[from])
			if n == 0 {
				continue
			}
			if c.of.Op == "rate" {
				n /= c.of.Range.Seconds()
			}
			made.Values[i], made.Has[i], some = n, true, true
		}
		if some {
			all = append(all, made)
		}
	}
	return all
}

// byStream reports whether the labels of a stream decide about its entries, and about
// their series.
func byStream(l *logql.Log, named map[string]bool) bool {
	ofEntry := func(name string) bool { return name != detectedLevel && slices.Contains(metadataNames, name) }
	labels, only := l.Needs()
	return only && !slices.ContainsFunc(slices.AppendSeq(labels, maps.Keys(named)), ofEntry)
}

// countStreams counts what was observed, and runs the pipeline once for each stream.
func (c *counter) countStreams(a *API, r *request) error {
	number := func(d event.Dimensions) (int, error) { return c.stream(r, d) }
	return a.occurred(a.streams(r, maySelect(c.of.Log), number), c.period(), c.occurred)
}

// stream returns the number of the series that a stream is counted in, -1 if it is not.
func (c *counter) stream(r *request, d event.Dimensions) (int, error) {
	if !c.of.Log.Selects(r.turns, labelOf(&d)) {
		return -1, nil
	}
	e := &logql.Entry{Turns: r.turns, Labels: append(streamLabels(&d), logql.Label{Name: detectedLevel, Value: value(&d, "level"), Category: logql.Metadata})}
	if !c.of.Log.Process(e) {
		return -1, nil
	}
	if err := pipelineError(e); err != nil {
		return -1, err
	}
	return c.find(d.Namespace, c.labels(e))
}

// countVersions counts what was observed, and runs the pipeline for each selected version that is held.
func (c *counter) countVersions(a *API, r *request) error {
	var failed error
	in := c.period()
	q := store.TimeQuery{Range: store.Range{From: in.start, To: in.end}, Versions: true}
	err := a.scan(r, c.of.Log, q, false, func(e *entry) bool {
		var n int
		if failed = pipelineError(&e.Entry); failed == nil {
			n, failed = c.find(e.namespace, c.labels(&e.Entry))
		}
		if failed == nil && n >= 0 {
			e.Spread(func(second, span, times int64) {
				c.occurred(store.Occurred{Group: n, Second: second, Span: span, Count: times})
			})
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// pipelineError refuses to count an entry for which a stage has failed, as Loki does.
func pipelineError(e *logql.Entry) error {
	if failed := e.Get(logql.ErrorLabel); failed != "" {
		return badRequest("pipeline error: '%s'. Use a label filter to intentionally skip this error. (e.g | __error__!=%q). "+
			"To skip all potential errors you can match empty errors.(e.g __error__=\"\")", failed, failed)
	}
	return nil
}
