package bolt

import (
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// pageEntries is how many entries of runs a page looks at, in which it need not find
// anything. There may be many between two events that a query wants.
const pageEntries = 1 << 21

// selectShare: if at most one event of so many has a term, its postings are read instead of
// going over the seconds of the range.
const selectShare = 8

// How many bytes of values a page finds before it shows them: little at first, because many queries
// want only a few events. Of more in one second it keeps the places alone.
const (
	firstBatch = 32 << 10
	mostBatch  = 512 << 10
)

// A timePager reads one page of a timeline. It finds the versions of some seconds, sorts them, because
// they say themselves when within a second they were observed, and shows them.
type timePager struct {
	*turns // with the reader of the log
	query  *store.TimeQuery
	visit  func(*store.View, store.Moment) bool
	page   store.TimePage

	moments *seglog.Moments // goes over the index by time; nil: left has all versions with one of the terms, or those that a search by words has found
	left    []seglog.Moment // records that are to be looked at
	after   store.Moment    // behind the seconds that are done

	found  []copied // newest versions of their events, in no order; a copy without a value was not kept
	kept   []byte   // memory of the copies
	size   int      // bytes of the values of found
	enough int      // so many of them are found before they are shown

	looked  int // records that were looked at
	entries int // entries of runs that were read
	bytes   int // of the values that were shown
}

// copied is a version in memory of the page.
type copied struct {
	store.View
	at store.Moment
}

// run reads the page.
func (p *timePager) run(ctx context.Context) error {
	if err := p.next(); err != nil {
		return err
	}
	if err := p.begin(); err != nil {
		return err
	}
	for more := true; more; {
		further, err := p.find(ctx)
		if err != nil {
			return err
		}
		if more, err = p.show(further); err != nil {
			return err
		}
	}
	return nil
}

// begin decides how the page is read.
func (p *timePager) begin() error {
	from, to := p.seconds()
	if p.query.Selector != nil {
		few := false
		events, _ := p.reader.Events("", p.page.Revision)
		err := p.reader.Index.View(func(v index.View) error {
			rarest, versions, ok := v.Rarest(p.query.Selector)
			if few = ok && versions < min(pageLooked, int(events)/selectShare+1); !few {
				return nil
			}
			revisions, err := v.Postings(rarest)
			p.take(revisions)
			return err
		})
		if err != nil || few {
			return err
		}
	}
	group := p.group()
	if len(p.query.Pieces) > 0 {
		found, ok, err := p.log.Search(&seglog.Search{
			From: from, To: to, Last: p.page.Revision, Pieces: p.query.Pieces, Nodes: p.query.Nodes, Group: group, Pause: p.next,
		})
		if ok {
			p.take(found)
		}
		if err != nil || ok {
			return err
		}
	}
	p.moments = &seglog.Moments{From: from, To: to, OldestFirst: p.query.OldestFirst, Last: p.page.Revision, Nodes: p.query.Nodes, Group: group, Pieces: p.query.Pieces}
	return nil
}

// take has the page look at versions and at nothing else.
func (p *timePager) take(revisions []uint64) {
	slices.Sort(revisions)
	for _, revision := range slices.Compact(revisions) {
		if revision <= p.page.Revision {
			p.left = append(p.left, seglog.Moment{Revision: revision})
		}
	}
}

// find finds the versions of the next seconds, until they are enough. It reports false at the end.
func (p *timePager) find(ctx context.Context) (more bool, err error) {
	p.found, p.kept, p.size = p.found[:0], p.kept[:0], 0
	for {
		if len(p.left) == 0 {
			if more, err = p.gather(); err != nil || !more {
				return false, err
			}
		}
		for len(p.left) > 0 {
			at := p.left[0]
			p.left = p.left[1:]
			if p.looked++; p.looked%checkEvery == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err := p.look(at.Revision); err != nil {
				return false, err
			}
			if err := p.next(); err != nil {
				return false, err
			}
			if p.moments != nil && (len(p.left) == 0 || p.left[0].Second != at.Second) {
				if p.pass(at.Second); p.sufficient() {
					return true, nil
				}
			}
		}
		if p.moments != nil && p.full() {
			return true, nil
		}
	}
}

// gather takes the records of the next seconds from the index by time. It reports false if there are none.
func (p *timePager) gather() (more bool, err error) {
	if p.moments == nil {
		return false, nil
	}
	found, entries, more, err := p.moments.Next(p.log)
	if err != nil || !more {
		return false, err
	}
	p.entries += entries
	if p.left = append(p.left[:0], found...); len(p.left) == 0 {
		last := p.moments.To
		if p.query.OldestFirst {
			last = p.moments.From - 1
		}
		p.pass(last)
	}
	return true, p.next()
}

// seconds returns the range of the query behind the place that is done.
func (p *timePager) seconds() (from, to int64) {
	from, to = p.query.From.Unix(), p.query.To.Unix()
	after := p.query.After.Time.Unix()
	switch {
	case p.query.After == (store.Moment{}):
	case p.query.OldestFirst:
		from = max(from, after)
	case p.query.After == start(after): // nothing is at a second with revision 0
		to = min(to, after)
	default:
		to = min(to, after+1)
	}
	return from, to
}

// start returns the place in front of everything in a second.
func start(second int64) store.Moment { return store.Moment{Time: time.Unix(second, 0).UTC()} }

// pass notes that all records of a second were looked at.
func (p *timePager) pass(second int64) {
	if p.after = start(second); p.query.OldestFirst {
		p.after = start(second + 1)
	}
}

// sufficient reports that enough is found to be shown, or for the page.
func (p *timePager) sufficient() bool {
	return p.size >= p.enough || p.full() || p.query.Limit > 0 && len(p.found) >= p.query.Limit
}

// full reports that the page has looked at enough.
func (p *timePager) full() bool { return p.looked >= pageLooked || p.entries > pageEntries }

// look adds a version to those that are found, if the query wants it and it is the newest one of its event. If the query has a
// function for texts, it looks at the text first.
func (p *timePager) look(revision uint64) error {
	if p.query.Match != nil {
		text, ok := p.log.Note(revision)
		if !ok {
			e, _, err := p.borrow(revision)
			if err != nil || e.Key == nil {
				return err
			}
			if text, err = e.AppendText(nil); err != nil {
				return err
			}
		}
		if match, err := p.query.Match(text); err != nil || !match {
			return err
		}
	}
	e, at, err := p.borrow(revision)
	if err != nil || e.Key == nil {
		return err
	}
	size, before, v := len(e.Value), len(p.kept), copied{at: at}
	if before < mostBatch { // most are shown, and need not be looked up again
		v, p.kept = copyOf(p.kept, &e, at)
	}
	last, err := p.last(string(e.Key), revision)
	if !last {
		p.kept = p.kept[:before]
		return err
	}
	p.found = append(p.found, v)
	p.size += size
	return err
}

// last reports whether a version that the query wants is the one of its event to show.
func (p *timePager) last(key string, revision uint64) (bool, error) {
	until := p.page.Revision
	if !p.query.InRange {
		return lastBefore(p.log, p.reader.Index, key, revision, until)
	}
	newest, known, err := p.reader.Index.Newest(key)
	if err != nil || !known || newest.Revision() == revision {
		return known, err
	}
	next, deletion, err := p.log.Next(revision, newest.Revision())
	if err == nil && next != 0 && next <= until && !deletion {
		var wanted bool
		if wanted, err = p.wanted(next); wanted || err != nil {
			return false, err
		}
	}
	for err == nil && next != 0 && next <= until && !deletion { // as long as it existed
		next, deletion, err = p.log.Next(next, newest.Revision())
	}
	return err == nil && (next == 0 || next > until), err
}

// wanted reports whether the query wants a version, wherever the page begins.
func (p *timePager) wanted(revision uint64) (bool, error) {
	e, err := p.log.Get(revision)
	if err != nil || !p.inRange(&e, seglog.Occurrence(&e).Time) {
		return false, err
	}
	namespace := string(e.Key[:e.NamespaceLen])
	if d := event.DimensionsOf(namespace, e.Attributes); p.query.Wanted != nil {
		if !p.query.Nodes {
			d.Node = ""
		}
		if !p.query.Wanted(d) {
			return false, nil
		}
	}
	if p.query.Match == nil {
		return true, nil
	}
	text, err := e.AppendText(nil)
	if err != nil {
		return false, err
	}
	return p.query.Match(text)
}

// inRange reports whether a version was observed within the range, and the selector matches it.
func (p *timePager) inRange(e *seglog.Entry, at time.Time) bool {
	namespace, name := string(e.Key[:e.NamespaceLen]), string(e.Key[e.NamespaceLen+1:])
	return !at.Before(p.query.From) && at.Before(p.query.To) && p.query.Selector.Matches(namespace, name, e.Attributes)
}

// borrow returns a version that the query asks for, before its function. There is none, and it has no key, if the query does
// not, or if it is not held.
func (p *timePager) borrow(revision uint64) (e seglog.Entry, at store.Moment, err error) {
	e, err = p.log.Get(revision)
	if skipped(p.log, revision, err) {
		return seglog.Entry{}, at, nil
	}
	if err != nil {
		return seglog.Entry{}, at, err
	}
	if at = (store.Moment{Time: seglog.Occurrence(&e).Time, Revision: revision}); e.Kind == seglog.Deleted || !p.wants(&e, at) {
		e.Key = nil
	}
	return e, at, nil
}

// wants reports whether the query asks for a version at a place, before its function.
func (p *timePager) wants(e *seglog.Entry, at store.Moment) bool {
	q := p.query
	if q.After != (store.Moment{}) && at.Compare(q.After, q.OldestFirst) <= 0 || !p.inRange(e, at.Time) {
		return false
	}
	return p.moments != nil || q.Wanted == nil || q.Wanted(event.DimensionsOf(string(e.Key[:e.NamespaceLen]), e.Attributes))
}

// copyOf copies a version behind what is in memory.
func copyOf(memory []byte, e *seglog.Entry, at store.Moment) (copied, []byte) {
	from := len(memory)
	memory = append(append(memory, e.Attributes...), e.Value...)
	middle, end := from+len(e.Attributes), len(memory)
	v := e.View(e.StoreKey())
	v.Attributes, v.Value = memory[from:middle:middle], memory[middle:end:end]
	return copied{v, at}, memory
}

// show calls visit with what was found. further says that there may be more. It reports whether the page goes on.
func (p *timePager) show(further bool) (more bool, err error) {
	slices.SortFunc(p.found, func(a, b copied) int { return a.at.Compare(b.at, p.query.OldestFirst) })
	for i := range p.found {
		c := &p.found[i]
		if c.Value == nil {
			e, err := p.log.Get(c.at.Revision)
			if err != nil {
				return false, err
			}
			c.View = e.View(e.StoreKey())
		}
		p.bytes += len(c.Value)
		p.page.Last = c.at
		if !p.visit(&c.View, c.at) || p.bytes >= pageBytes && (further || i+1 < len(p.found)) {
			p.page.More = true
			return false, nil
		}
		if err := p.next(); err != nil {
			return false, err
		}
	}
	if further && p.full() {
		p.page.More, p.page.Last = true, p.after
		return false, nil
	}
	p.enough = min(2*p.enough, mostBatch)
	return further, nil
}

// group returns a function that leaves out the dimensions that the query cannot want: what its selector says of them is
// known before any record is read.
func (p *timePager) group() func(event.Dimensions) int {
	q := p.query
	known := &event.Selector{}
	if q.Selector != nil {
		for _, r := range q.Selector.Fields {
			switch r.Field {
			case event.FieldNamespace, event.Type, event.Reason, event.RegardingKind:
				r.Value = event.CutDimension(r.Value)
				known.Fields = append(known.Fields, r)
			}
		}
	}
	return func(d event.Dimensions) int {
		if q.Wanted != nil && !q.Wanted(d) {
			return -1
		}
		a := event.Attributes(nil)
		if len(known.Fields) > 0 {
			a = event.NewAttributes([event.NumFields]string{event.Type: d.Type, event.Reason: d.Reason, event.RegardingKind: d.Kind}, nil)
		}
		if !known.Matches(d.Namespace, "", a) {
			return -1
		}
		return 0
	}
}
