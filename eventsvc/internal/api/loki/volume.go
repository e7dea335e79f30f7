package loki

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/logql"
	"tidings.example/shared/service"
)

// bytesOfEntry is what stats says that an entry has, in place of counting it: about what
// a stored event takes.
const bytesOfEntry = 1024

// stats serves /index/stats: about how much a selector selects. Entries are occurrences.
func (a *API) stats(r *request) (answer, error) {
	all, err := a.streamsOfRequest(r, logql.ParseSelector)
	if err != nil {
		return nil, err
	}
	entries := int64(0)
	for _, n := range all {
		entries += n
	}
	return plain(struct {
		Streams  int      `json:"streams"`
		Chunks   int      `json:"chunks"`
		Bytes    int64    `json:"bytes"`
		Entries  int64    `json:"entries"`
		Warnings []string `json:"warnings,omitempty"`
	}{len(all), len(all), entries * bytesOfEntry, entries, r.warnings}), nil
}

// volumeQuery is the parameters of both requests for volumes. As in Loki, a request by
// series has the labels that are named in targetLabels, else in the selector; one by
// labels has those of targetLabels, else all.
type volumeQuery struct {
	log    *logql.Log
	in     period
	limit  int
	labels bool     // by the names of labels, not by series
	target []string // the labels that count; all if there are none
}

func (r *request) volume() (q volumeQuery, err error) {
	if q.log, err = r.selector(logql.ParseSelector); err != nil {
		return q, err
	}
	if q.in, err = r.times(); err != nil {
		return q, err
	}
	if r.values.Get("limit") == "0" {
		r.values.Set("limit", "") // Loki takes it for none
	}
	if q.limit, err = r.number("limit", volumeLimit, maxLines); err != nil {
		return q, err
	}
	switch by := r.values.Get("aggregateBy"); by {
	case "", "series":
	case "labels":
		q.labels = true
	default:
		return q, badRequest("invalid aggregation option: %q, want series or labels", by)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(q.log.Matchers, func(m logql.Matcher) bool { return m.Name == name })
	}
	if text := r.values.Get("targetLabels"); text != "" {
		if q.target = strings.Split(text, ","); len(q.target) > maxNames {
			return q, badRequest("more than %d names in targetLabels", maxNames)
		}
		var there []logql.Matcher
		for _, name := range q.target { // only streams that have all of them count, if the selector says no other
			if !named(name) {
				there = append(there, logql.Matcher{Name: name, Op: "!="})
			}
		}
		q.log.Matchers = append(q.log.Matchers, there...)
		return q, nil
	}
	if !q.labels {
		for _, m := range q.log.Matchers {
			q.target = append(q.target, m.Name)
		}
	}
	return q, nil
}

// volumes counts the occurrences of each volume in windows.
func (a *API) volumes(r *request, q volumeQuery, windows []period) (all []*logql.Series, err error) {
	cells := 0
	sum := func(l *logql.Log, by ...string) ([]*logql.Series, error) {
		c := newCounter(r, &logql.RangeAggregation{Op: "count_over_time", Log: l}, &logql.Grouping{Labels: by}, nil, windows, &cells)
		err := c.countStreams(a, r)
		return c.result(), err
	}
	if !q.labels {
		target := q.target
		if len(target) == 0 {
			target = streamNames
		}
		all, err = sum(q.log, target...)
		return largest(all, q.limit), err
	}
	for _, name := range streamNames {
		if len(q.target) > 0 && !slices.Contains(q.target, name) {
			continue
		}
		s, err := sum(&logql.Log{Matchers: append(slices.Clone(q.log.Matchers), logql.Matcher{Name: name, Op: "!="})})
		if err != nil {
			return nil, err
		}
		for _, one := range s {
			one.Labels = []logql.Label{{Name: name}}
			all = append(all, one)
		}
	}
	return largest(all, q.limit), nil
}

// largest are the series with the greatest sums, those first, and those with the same sum by their labels.
func largest(all []*logql.Series, limit int) []*logql.Series {
	sums := map[*logql.Series]float64{}
	for _, s := range all {
		for _, v := range s.Values {
			sums[s] += v
		}
	}
	slices.SortFunc(all, func(x, y *logql.Series) int {
		return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(logql.Key(x.Labels), logql.Key(y.Labels)))
	})
	return all[:min(limit, len(all))]
}

// volume serves /index/volume. In Loki volumes are bytes, here they are occurrences: what
// is shown is which series have the most.
func (a *API) volume(r *request) (answer, error) {
	q, err := r.volume()
	if err != nil {
		return nil, err
	}
	all, err := a.volumes(r, q, []period{q.in.seconds()})
	if err != nil {
		return nil, err
	}
	return r.data("vector", func(b []byte) []byte { return appendVector(b, all, q.in.end) }), nil
}

// volumeRange serves /index/volume_range: the volumes of the range in pieces that end at multiples of the step, or with
// the range. Each has the time at which it ends, as in Loki (NewVolumeMiddleware in its source).
func (a *API) volumeRange(r *request) (answer, error) {
	q, err := r.volume()
	if err != nil {
		return nil, err
	}
	step, err := r.step(q.in)
	if err != nil {
		return nil, err
	}
	var ends []time.Time
	for _, p := range q.in.points(step) {
		if p.After(q.in.start) && p.Before(q.in.end) {
			ends = append(ends, p)
		}
	}
	ends = append(ends, q.in.end)
	whole := q.in.seconds()
	windows := make([]period, len(ends))
	for i, begin := 0, whole.start; i < len(ends); i++ {
		windows[i] = period{begin, ends[i]}
		begin = ends[i]
	}
	windows[len(windows)-1].end = whole.end
	all, err := a.volumes(r, q, windows)
	if err != nil {
		return nil, err
	}
	return r.data("matrix", func(b []byte) []byte { return appendMatrix(b, all, ends) }), nil
}

// dialect is the version of Loki whose answers these are like. Clients choose by it what
// they ask for.
const dialect = "3.7.8"

// drilldownLimits serves /drilldown-limits, by which Logs Drilldown finds out what there is.
func drilldownLimits(*request) (answer, error) {
	return plain(map[string]any{
		"limits": map[string]any{
			"discover_log_levels": true, "volume_enabled": true, "max_query_series": maxSeries,
			"max_entries_limit_per_query": maxLines, "query_timeout": maxTime.String(), "max_line_size": 0,
		},
		"pattern_ingester_enabled": true, "version": dialect,
	}), nil
}

// buildInfo serves /status/buildinfo.
func buildInfo(*request) (answer, error) {
	return plain(map[string]string{
		"version": dialect, "revision": service.Version(), "branch": "", "buildUser": "", "buildDate": "", "goVersion": "",
	}), nil
}
