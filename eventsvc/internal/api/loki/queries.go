package loki

import (
	"cmp"
	"time"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/logql"
)

// query serves /query: a metric at one point in time.
func (a *API) query(r *request) (answer, error) {
	expr, err := logql.Parse(r.values.Get("query"))
	if err != nil {
		return nil, err
	}
	at, err := r.time("time", r.now)
	if err != nil {
		return nil, err
	}
	m, ok := expr.(logql.Metric)
	if !ok {
		return nil, badRequest("log queries are not supported as an instant query type, please change your query to a range query type")
	}
	points := []time.Time{at}
	if number, ok := m.(*logql.Literal); ok {
		return r.data("scalar", func(b []byte) []byte { return appendSample(b, at, number.Value) }), nil
	}
	all, err := a.evaluate(r, m, points)
	if err != nil {
		return nil, err
	}
	all = r.fewSeries(all)
	return r.data("vector", func(b []byte) []byte { return appendVector(b, all, at) }), nil
}

// queryRange serves /query_range: lines, or a metric at each step.
func (a *API) queryRange(r *request) (answer, error) {
	expr, err := logql.Parse(r.values.Get("query"))
	if err != nil {
		return nil, err
	}
	in, err := r.times()
	if err != nil {
		return nil, err
	}
	limit, err := r.number("limit", lineLimit, maxLines)
	if err != nil {
		return nil, err
	}
	step, err := r.step(in)
	if err != nil {
		return nil, err
	}
	if text := r.values.Get("interval"); text != "" && text != "0" {
		return nil, badRequest("interval is not supported: lines are never thinned out")
	}
	if l, ok := expr.(*logql.Log); ok {
		return a.lines(r, l, in, limit)
	}
	points := in.points(step)
	all, err := a.evaluate(r, expr.(logql.Metric), points)
	if err != nil {
		return nil, err
	}
	all = r.fewSeries(all)
	return r.data("matrix", func(b []byte) []byte { return appendMatrix(b, all, points) }), nil
}

// points returns the points of a range. They are at multiples of the step, so that two
// ranges that follow each other have no points that overlap a little. A range without
// length has the one point that it is.
func (p period) points(step time.Duration) []time.Time {
	if p.start.Equal(p.end) {
		return []time.Time{p.start}
	}
	align := func(t time.Time) time.Time {
		n := t.UnixNano()
		rest := n % int64(step)
		if rest < 0 {
			rest += int64(step)
		}
		return time.Unix(0, n-rest)
	}
	var all []time.Time
	for t, end := align(p.start), align(p.end); !t.After(end); t = t.Add(step) {
		all = append(all, t)
	}
	return all
}

// fewSeries keeps the largest series of an answer that has too many. Loki refuses such an answer, and here one
// namespace could take it from everybody who sees them all.
func (r *request) fewSeries(all []*logql.Series) []*logql.Series {
	if len(all) > maxSeries {
		r.warn("there are %d series, and the %d largest are shown: select fewer, or put them together by sum() or topk()", len(all), maxSeries)
		all = largest(all, maxSeries)
	}
	return all
}

// lines answers with lines: as many as the client wants, from one end of the range.
func (a *API) lines(r *request, l *logql.Log, in period, limit int) (answer, error) {
	forward, err := r.forward()
	if err != nil {
		return nil, err
	}
	seat := flow.FromContext(r.ctx)
	seat.Room().Free() // nobody waits for what one has who waits
	if err := seat.Take(r.ctx, roomOfLines(limit)); err != nil {
		return nil, httpio.Unread(err)
	}
	var found []*entry
	var full error
	err = a.scan(r, l, in.lines(forward), true, func(e *entry) bool {
		found = append(found, e)
		full = r.grow(e.size() + entryBytes)
		return len(found) < limit && full == nil
	})
	if err := cmp.Or(err, full); err != nil {
		return nil, err
	}
	categorized := r.categorized()
	return r.data("streams", func(b []byte) []byte { return appendStreams(b, found, categorized) }), nil
}

// entryBytes is about what an entry takes beside its texts.
const entryBytes = 1 << 10

// roomOfLines is the room for so many lines of usual size. A client that asks for several
// long answers at once waits for room before they are made, and is not refused then.
func roomOfLines(n int) int { return max(flow.Question, 2*entryBytes*n) }

// size is the number of bytes of an entry's texts.
func (e *entry) size() int {
	n := len(e.Line)
	for _, l := range e.Labels {
		n += len(l.Name) + len(l.Value)
	}
	return n
}

// formatQuery serves /format_query.
func formatQuery(r *request) (answer, error) {
	expr, err := logql.Parse(r.values.Get("query"))
	if err != nil {
		return nil, err
	}
	return r.success(func(b []byte) []byte { return appendJSON(b, expr.String()) }), nil
}
