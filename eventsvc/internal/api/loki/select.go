package loki

import (
	"cmp"
	"hash/maphash"
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

// entry is a version of an event as a query sees it.
type entry struct {
	logql.Entry
	event.Occurrence
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
func (r *reader) entry(v *store.View) *entry {
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
	e := &entry{namespace: d.Namespace, Entry: logql.Entry{Line: line, Labels: streamLabels(&d), Turns: r.turns}}
	var ok bool
	if e.Occurrence, ok = v.Attributes.Occurrence(); !ok {
		e.Occurrence = event.Occurrence{Time: v.Time, Count: 1, New: 1}
	}
	e.add("count", strconv.FormatInt(e.Count, 10))
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

// scanning goes over versions of the events of a query.
type scanning struct {
	reader
	request *request
	visit   func(*entry) bool
	over    bool   // visit has had enough
	bytes   int    // of complete entries, which visit keeps
	matched *entry // of the version that was matched last; nil: it does not pass the pipeline
	version uint64 // its revision
}

// scan calls visit with the entries of a query of logs among what a query of the timeline asks for, until it returns
// false. Complete entries have all their labels.
func (a *API) scan(r *request, l *logql.Log, q store.TimeQuery, complete bool, visit func(*entry) bool) error {
	s := &scanning{reader: *a.reader(r.turns, l, complete), request: r, visit: visit}
	parts := event.All()
	for _, text := range l.LineParts() {
		parts.Parts = append(parts.Parts, &event.Filter{Kind: event.FilterWord, Word: event.Fold(nil, []byte(text)), Note: true})
	}
	known := a.selected(r, l)
	q.Revision, q.Sees, q.Wanted = a.Store.Revision(), r.allows, known.may
	if q.Filter = parts; q.Window && len(l.Stages) > 0 { // the newest version that passes is shown, and not the newest one
		q.Match = s.match
	}
	if !l.Plain() {
		q.Wanted = func(d event.Dimensions) bool { return known.of(d) >= 0 }
		in := period{q.From, q.To}.seconds()
		if err := known.occurrences(store.Range{From: in.start, To: in.end, Revision: q.Revision}, nil); err != nil {
			return err
		}
	}
	for more := true; more; {
		page, err := a.Timeline.Observed(r.ctx, q, s.show)
		switch {
		case err != nil:
			return err
		case s.ended():
			return s.err
		case s.bytes > maxBytes:
			return badRequest("the lines have more than %d bytes: ask with a lower limit", maxBytes)
		case r.looked > maxLooked:
			return badRequest("the query would look at more than %d versions of events: narrow its range of time or its selector", maxLooked)
		case s.over:
			return nil
		}
		q.After, more = page.Last, page.More
	}
	return nil
}

// look counts a version that is looked at. It reports false if there are too many.
func (s *scanning) look() bool {
	s.request.looked++
	return s.request.looked <= maxLooked
}

// match reports whether a version passes the pipeline.
func (s *scanning) match(v *store.View) (bool, error) {
	s.matched, s.version = nil, v.Revision
	if s.look() {
		s.matched = s.entry(v)
	}
	return s.matched != nil, s.err
}

// show visits a version if it passes the pipeline. It reports whether to go on.
func (s *scanning) show(v *store.View, at store.Moment) bool {
	e := s.matched
	if e == nil || s.version != v.Revision {
		if !s.look() {
			return false
		}
		e = s.entry(v)
	}
	if e != nil && s.err == nil {
		if e.at = at; s.complete {
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

// lines asks for the events that were observed in a period, each as it was last observed there.
func (p period) lines(forward bool) store.TimeQuery {
	return store.TimeQuery{Range: store.Range{From: p.start, To: p.end}, Window: true, OldestFirst: forward}
}

// seconds returns a period in whole seconds that has all of one.
func (p period) seconds() period {
	return period{p.start.Truncate(time.Second), store.Ceil(p.end)}
}
