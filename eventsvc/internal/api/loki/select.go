package loki

import (
	"cmp"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// The labels of streams, sorted, and those of entries.
var (
	streamNames   = []string{"cluster", "kind", "level", "namespace", "reason", "reporter", "service_name", "type"}
	metadataNames = []string{"action", "count", detectedLevel, "host", "name", "uid"}
)

// detectedLevel is the structured metadata in which Loki puts a level that it has found in
// a line. Grafana asks for it.
const detectedLevel = "detected_level"

// value returns a label of a stream, "" if it has none.
func value(d *event.Dimensions, name string) string {
	switch name {
	case "namespace":
		return d.Namespace
	case "type":
		return d.Type
	case "reason":
		return d.Reason
	case "kind":
		return d.Kind
	case "reporter", "service_name":
		return d.Reporter
	case "cluster":
		return d.Cluster
	case "level":
		if d.Type == "Warning" {
			return "warning"
		}
		return "info"
	}
	return ""
}

// streamLabels returns the labels of a stream, sorted, with room for those of entries.
func streamLabels(d *event.Dimensions) []logql.Label {
	labels := make([]logql.Label, 0, len(streamNames)+len(metadataNames))
	for _, name := range streamNames {
		if v := value(d, name); v != "" {
			labels = append(labels, logql.Label{Name: name, Value: v})
		}
	}
	return labels
}

// selected returns a function that reports whether a query is about a stream. It decides
// once for each.
func (r *request) selected(l *logql.Log) func(event.Dimensions) bool {
	known := map[event.Dimensions]bool{}
	return func(d event.Dimensions) bool {
		wanted, ok := known[d]
		if !ok {
			wanted = r.allows(d) && l.Selects(func(name string) string { return value(&d, name) })
			if len(known) < maxInner {
				known[d] = wanted
			}
		}
		return wanted
	}
}

// entry is an event as a query sees it, while the store lends it.
type entry struct {
	logql.Entry
	at store.Moment
}

// reader makes entries of events.
type reader struct {
	codec *codec.Codec
	log   *logql.Log
	// whole: the pipeline may look at action and host, for which an event is decoded.
	// Otherwise that is done only for entries that are left, if they are to be complete.
	whole, complete bool
	err             error
}

func (a *API) reader(l *logql.Log, complete bool) *reader {
	whole := l.Parses() || l.Keeps() || l.Drops("action") || l.Drops("host")
	l.Needs(func(name string) { whole = whole || name == "action" || name == "host" })
	return &reader{codec: a.Codec, log: l, whole: whole, complete: complete}
}

// entry returns an event as an entry, nil if it does not pass the pipeline.
func (r *reader) entry(v *store.View, at store.Moment) *entry {
	note, err := codec.Note(v)
	if err != nil {
		r.err = err
		return nil
	}
	line := string(note)
	if !r.log.MatchesLine(line) {
		return nil
	}
	d := event.DimensionsOf(v.Namespace, v.Attributes)
	e := &entry{at: at, Entry: logql.Entry{Line: line, Labels: streamLabels(&d)}}
	occurrence, ok := v.Attributes.Occurrence()
	if !ok {
		occurrence.Count = 1
	}
	e.add("count", strconv.FormatInt(occurrence.Count, 10))
	e.add(detectedLevel, value(&d, "level"))
	e.add("name", string(v.Attributes.Field(event.RegardingName)))
	e.add("uid", string(v.Attributes.Field(event.RegardingUID)))
	if r.whole {
		r.addDecoded(e, v)
	}
	e.Event = func() []byte {
		b, err := r.codec.AppendObject(nil, jsonFormat, event.EventsV1, v)
		if err != nil {
			r.err = err
		}
		return b
	}
	if !r.log.Process(&e.Entry) || r.err != nil {
		return nil
	}
	e.Event = nil // what it reads is only lent
	if r.complete && !r.whole {
		r.addDecoded(e, v)
	}
	return e
}

func (e *entry) add(name, value string) {
	if value != "" {
		e.Labels = append(e.Labels, logql.Label{Name: name, Value: value, Category: logql.Metadata})
	}
}

// addDecoded adds the labels for which the event is decoded.
func (r *reader) addDecoded(e *entry, v *store.View) {
	var ev *eventsv1.Event
	if ev, r.err = r.codec.Event(v); r.err == nil {
		e.add("action", ev.Action)
		e.add("host", cmp.Or(ev.DeprecatedSource.Host, ev.ReportingInstance))
	}
}

// scanning goes over the events of a query.
type scanning struct {
	reader
	request *request
	in      period
	visit   func(*entry) bool
	over    bool // visit has had enough
}

// scan calls visit with the entries of a query in a range of time, until it returns
// false. Complete entries have all their labels.
func (a *API) scan(r *request, l *logql.Log, in period, forward, complete bool, visit func(*entry) bool) error {
	s := &scanning{reader: *a.reader(l, complete), request: r, in: in, visit: visit}
	q := store.TimeQuery{
		Range:       store.Range{From: in.start.Truncate(time.Second), To: store.Ceil(in.end)},
		OldestFirst: forward, Wanted: r.selected(l),
	}
	for {
		page, err := a.Timeline.Observed(r.ctx, q, s.event)
		switch {
		case err != nil:
			return err
		case s.err != nil:
			return s.err
		case r.looked > maxLooked:
			return badRequest("the query would look at more than %d events: narrow its range of time or its selector", maxLooked)
		case s.over || !page.More:
			return nil
		}
		q.After, q.Revision = page.Last, page.Revision
	}
}

// event visits an event if it is within the range and passes the pipeline. It reports
// whether to go on.
func (s *scanning) event(v *store.View, at store.Moment) bool {
	if at.Time.Before(s.in.start) || !at.Time.Before(s.in.end) {
		return true // within the first or the last second
	}
	if s.request.looked++; s.request.looked > maxLooked {
		return false
	}
	if e := s.entry(v, at); e != nil && s.err == nil {
		s.over = !s.visit(e)
	}
	return !s.over && s.err == nil
}

// occurred calls visit with what was observed in a range of whole seconds in the streams
// that group does not refuse by a negative number.
func (a *API) occurred(r *request, in period, group func(event.Dimensions) int, visit func(store.Occurred)) error {
	revision := a.Store.Revision()
	length := max(slice, in.end.Sub(in.start)/maxSlices).Truncate(time.Second) + time.Second
	for from := in.start; from.Before(in.end); from = from.Add(length) {
		to := from.Add(length)
		if to.After(in.end) {
			to = in.end
		}
		if err := a.Timeline.Occurrences(r.ctx, store.Range{From: from, To: to, Revision: revision}, group, visit); err != nil {
			return err
		}
	}
	return nil
}

// seconds returns a period in whole seconds that has all of one.
func (p period) seconds() period {
	return period{p.start.Truncate(time.Second), store.Ceil(p.end)}
}
