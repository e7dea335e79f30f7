package loki

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// streams are those that a request comes upon, with the numbers that it gives them. It
// takes regular expressions to decide, and so this is done between reads of the store.
type streams struct {
	api     *API
	request *request
	may     func(event.Dimensions) bool         // leaves out those that need no decision, and takes little time
	number  func(event.Dimensions) (int, error) // negative: the stream is left out
	known   map[streamKey]int
	room    share    // for them
	by      []string // what tells them apart; nil: their labels
}

// streamKey stands for a stream, whose labels may be long.
type streamKey [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(d event.Dimensions) streamKey {
	return streamKey{maphash.Comparable(seeds[0], d), maphash.Comparable(seeds[1], d)}
}

// streams returns the streams of which may selects some.
func (a *API) streams(r *request, may func(*event.Dimensions) bool, number func(event.Dimensions) (int, error)) *streams {
	allowed := func(d event.Dimensions) bool { return r.allows(d) && may(&d) }
	return &streams{api: a, request: r, may: allowed, number: number, known: map[streamKey]int{}, room: share{most: maxStreams}}
}

// selected returns the streams that a query is about.
func (a *API) selected(r *request, l *logql.Log) *streams {
	return a.streams(r, maySelect(l), func(d event.Dimensions) (int, error) {
		if l.Selects(r.turns, labelOf(&d)) {
			return 0, nil
		}
		return -1, nil
	})
}

func labelOf(d *event.Dimensions) func(name string) string {
	return func(name string) string { return value(d, name) }
}

// maySelect returns a function that leaves out streams that some matchers refuse.
func maySelect(l *logql.Log) func(*event.Dimensions) bool {
	return func(d *event.Dimensions) bool { return l.MaySelect(labelOf(d)) }
}

// learnBytes is about how many bytes of labels are kept until they are decided on.
const learnBytes = 1 << 20

// occurrences calls visit with what was observed in a range of time in the streams that are
// not left out. It decides on new streams when it does not read, and reads again for them. If
// visit is nil, it only decides.
func (s *streams) occurrences(in store.Range, visit func(store.Occurred)) error {
	in.Sees = s.request.allows
	number := s.known // of the streams that are read in this round
	for more := true; more; {
		more = false
		var found []event.Dimensions
		size := 0
		group := func(d event.Dimensions, _ event.Regarding) int {
			key := keyOf(d)
			if _, ok := s.known[key]; ok {
				if n, ok := number[key]; ok && visit != nil {
					return n
				}
				return -1
			}
			switch {
			case !s.may(d):
			case size >= learnBytes:
				more = true
			case !s.room.take(d.Namespace):
				s.request.warn("there are more than %d streams: some of the namespaces that have most are left out", maxStreams)
			default:
				s.known[key] = -1
				found = append(found, d)
				size += d.Bytes()
			}
			return -1
		}
		if err := s.api.Timeline.Count(s.request.ctx, store.Count{Range: in, By: s.by, Group: group}, visit); err != nil {
			return err
		}
		number = map[streamKey]int{}
		for _, d := range found {
			n, err := s.decide(d)
			if err != nil {
				return err
			}
			number[keyOf(d)] = n
			more = more || n >= 0 && visit != nil
		}
	}
	return nil
}

// decide numbers a stream.
func (s *streams) decide(d event.Dimensions) (n int, err error) {
	n, err = s.number(d)
	if ended := s.request.turns.Err(); ended != nil {
		return -1, ended
	}
	s.known[keyOf(d)] = n
	return n, err
}

// wants reports whether a stream is not left out. Streams that come later are not
// remembered if there are many, as in a tail that goes on for days.
func (s *streams) wants(d event.Dimensions) (bool, error) {
	n, known := s.known[keyOf(d)]
	if !known && s.may(d) {
		if len(s.known) == maxStreams {
			clear(s.known)
		}
		var err error
		if n, err = s.decide(d); err != nil {
			return false, err
		}
		known = true
	}
	return known && n >= 0, nil
}

// of returns the number of a stream that is known, a negative one otherwise.
func (s *streams) of(d event.Dimensions) int {
	if n, ok := s.known[keyOf(d)]; ok {
		return n
	}
	return -1
}

// entry is an event as a query sees it.
type entry struct {
	logql.Entry
	at        store.Moment
	namespace string
}

// reader makes entries of events.
type reader struct {
	codec *codec.Codec
	turns *flow.Turns
	log   *logql.Log
	// whole: the pipeline may look at action and host, for which an event is decoded.
	// Otherwise that is done only for entries that are left, if they are to be complete.
	whole, complete bool
	err             error
}

func (a *API) reader(turns *flow.Turns, l *logql.Log, complete bool) *reader {
	labels, _ := l.Needs()
	whole := l.Parses() || l.Keeps() || l.Drops("action") || l.Drops("host") || slices.Contains(labels, "action") || slices.Contains(labels, "host")
	return &reader{codec: a.Codec, turns: turns, log: l, whole: whole, complete: complete}
}

// entry returns an event as an entry, nil if it does not pass the pipeline. After an error
// there are no more.
func (r *reader) entry(v *store.View, at store.Moment) *entry {
	note, err := codec.Note(v)
	if err != nil {
		r.err = err
		return nil
	}
	line := string(note)
	if !r.log.MatchesLine(r.turns, line) || r.ended() {
		return nil
	}
	d := event.DimensionsOf(v.Namespace, v.Attributes)
	e := &entry{at: at, namespace: d.Namespace, Entry: logql.Entry{Line: line, Labels: streamLabels(&d), Turns: r.turns}}
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
	if !r.log.Process(&e.Entry) || r.ended() {
		return nil
	}
	e.Event = nil // what it reads is only lent
	if r.complete && !r.whole {
		r.addDecoded(e, v)
	}
	return e
}

// ended reports whether there was an error, such as the end of the turns.
func (r *reader) ended() bool {
	r.err = cmp.Or(r.err, r.turns.Err())
	return r.err != nil
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
	filters bool // the pipeline has line filters, so that events are looked at by their notes
	over    bool // visit has had enough
	bytes   int  // of complete entries, which visit keeps
}

// scan calls visit with the entries of a query in a range of time, until it returns
// false. Complete entries have all their labels.
func (a *API) scan(r *request, l *logql.Log, in period, forward, complete bool, visit func(*entry) bool) error {
	s := &scanning{reader: *a.reader(r.turns, l, complete), request: r, in: in, visit: visit, filters: l.FiltersLines()}
	parts := event.All()
	for _, text := range l.LineParts() {
		parts.Parts = append(parts.Parts, &event.Filter{Kind: event.FilterWord, Word: event.Fold(nil, []byte(text)), Note: true})
	}
	known := a.selected(r, l)
	revision := a.Store.Revision()
	for step := range in.steps(forward) {
		q := store.TimeQuery{Range: store.Range{From: step.start, To: step.end, Revision: revision, Sees: r.allows}, OldestFirst: forward, Wanted: known.may}
		if s.filters {
			q.Match, q.Filter = s.note, parts
		}
		if !l.Plain() {
			q.Wanted = func(d event.Dimensions) bool { return known.of(d) >= 0 }
			if err := known.occurrences(q.Range, nil); err != nil {
				return err
			}
		}
		for more := true; more; {
			page, err := a.Timeline.Observed(r.ctx, q, s.event)
			switch {
			case err != nil:
				return err
			case s.ended():
				return s.err
			case s.bytes > maxBytes:
				return badRequest("the lines have more than %d bytes: ask with a lower limit", maxBytes)
			case r.looked > maxLooked:
				return badRequest("the query would look at more than %d events: narrow its range of time or its selector", maxLooked)
			case s.over:
				return nil
			}
			q.After, more = page.Last, page.More
		}
	}
	return nil
}

// look counts an event that is looked at. It reports false if there are too many.
func (s *scanning) look() bool {
	s.request.looked++
	return s.request.looked <= maxLooked
}

// note reports whether a note passes the line filters.
func (s *scanning) note(text []byte) (bool, error) {
	note, _ := event.CutNote(text)
	return s.look() && s.log.MatchesLine(s.turns, string(note)), s.turns.Err()
}

// event visits an event if it is within the range and passes the pipeline. It reports
// whether to go on.
func (s *scanning) event(v *store.View, at store.Moment) bool {
	if at.Time.Before(s.in.start) || !at.Time.Before(s.in.end) {
		return true // within the first or the last second
	}
	if !s.filters && !s.look() {
		return false
	}
	if e := s.entry(v, at); e != nil && s.err == nil {
		if s.complete {
			s.bytes += e.size()
		}
		s.over = s.bytes > maxBytes || !s.visit(e)
	}
	return !s.over && !s.ended()
}

// occurred calls visit with what was observed in a range of time in the streams that are
// not left out.
func (a *API) occurred(known *streams, in period, visit func(store.Occurred)) error {
	in = in.seconds()
	return known.occurrences(store.Range{From: in.start, To: in.end, Revision: a.Store.Revision()}, visit)
}

// steps returns the parts of a period that are looked at one by one, in whole seconds. The
// first ones are short, because a query may want no more than the newest or oldest lines.
func (p period) steps(forward bool) iter.Seq[period] {
	p = p.seconds()
	longest := max(slice, p.end.Sub(p.start)/maxSlices).Truncate(time.Second) + time.Second
	return func(yield func(period) bool) {
		for length := firstSlice; p.start.Before(p.end); length = min(2*length, longest) {
			step := p
			if p.end.Sub(p.start) > length {
				if forward {
					step.end = p.start.Add(length)
				} else {
					step.start = p.end.Add(-length)
				}
			}
			if !yield(step) {
				return
			}
			if forward {
				p.start = step.end
			} else {
				p.end = step.start
			}
		}
	}
}

// seconds returns a period in whole seconds that has all of one.
func (p period) seconds() period {
	return period{p.start.Truncate(time.Second), store.Ceil(p.end)}
}
