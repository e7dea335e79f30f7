package read

import (
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/entry"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// pageEntries is how many entries of runs a page looks at, in which it need not find
// anything. There may be many between two events that a query wants.
const pageEntries = 1 << 21

// selectShare: if at most one event of so many has a term, its postings are read instead of
// going over the seconds of the range.
const selectShare = 8

// A timePager reads one page of a timeline.
type timePager struct {
	reader *Reader
	query  *store.TimeQuery
	visit  func(*store.View, store.Moment) bool
	page   store.TimePage
	after  store.Moment // the last place that is done; zero: none
	log    *seglog.Reader
	index  index.View

	anyDimensions bool // records come that do not have the wanted dimensions

	looked  int            // at records
	entries int            // of runs
	bytes   int            // of the values that were shown
	found   []store.Moment // of the seconds at hand
}

// run reads the page. If a file was replaced meanwhile, it is called again with new views,
// and goes on behind the last place that is done.
func (p *timePager) run(ctx context.Context, log *seglog.Reader, v index.View) error {
	p.log, p.index = log, v
	if p.query.Selector != nil {
		events, _ := p.reader.Events("", p.page.Revision)
		if rarest, versions, ok := v.Rarest(p.query.Selector); ok && versions < min(pageLooked, int(events)/selectShare+1) {
			return p.byPostings(ctx, rarest)
		}
	}
	return p.byTime(ctx)
}

// byPostings reads the page from all versions that have one of the terms.
func (p *timePager) byPostings(ctx context.Context, any []index.Term) error {
	revisions, err := p.index.Postings(any)
	if err != nil {
		return err
	}
	p.found, p.anyDimensions = p.found[:0], true
	for _, revision := range revisions {
		if revision > p.page.Revision {
			break
		}
		if err := p.look(ctx, revision); err != nil {
			return err
		}
	}
	return p.show()
}

// byTime goes over the index by time, second by second.
func (p *timePager) byTime(ctx context.Context) error {
	from, to := p.seconds()
	m := seglog.Moments{From: from, To: to, OldestFirst: p.query.OldestFirst, Last: p.page.Revision, Wanted: p.wanted()}
	for {
		found, entries, more, err := m.Next(p.log)
		if err != nil || !more {
			return err
		}
		for len(found) > 0 {
			n := 1
			for n < len(found) && found[n].Second == found[0].Second {
				n++
			}
			if err := p.second(ctx, found[:n]); err != nil || p.page.More {
				return err
			}
			found = found[n:]
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.entries += entries; p.entries > pageEntries {
			if p.page.More, p.page.Last = true, start(m.To); p.query.OldestFirst {
				p.page.Last = start(m.From)
			}
			return nil
		}
	}
}

// seconds returns the range of the query behind the place that is done.
func (p *timePager) seconds() (from, to int64) {
	from, to = p.query.From.Unix(), p.query.To.Unix()
	after := p.after.Time.Unix()
	switch {
	case p.after == (store.Moment{}):
	case p.query.OldestFirst:
		from = max(from, after)
	case p.after == start(after): // nothing is at a second with revision 0
		to = min(to, after)
	default:
		to = min(to, after+1)
	}
	return from, to
}

// start returns the place in front of everything in a second.
func start(second int64) store.Moment { return store.Moment{Time: time.Unix(second, 0).UTC()} }

// second shows the events of one second. Where their records say exactly when they were
// observed, their order is known only when all were looked at.
func (p *timePager) second(ctx context.Context, records []seglog.Moment) error {
	p.found = p.found[:0]
	for _, r := range records {
		if err := p.look(ctx, r.Revision); err != nil {
			return err
		}
	}
	if err := p.show(); err != nil || p.page.More {
		return err
	}
	second := records[0].Second
	if p.after = start(second); p.query.OldestFirst {
		p.after = start(second + 1)
	}
	if p.looked >= pageLooked {
		p.page.More, p.page.Last = true, p.after
	}
	return nil
}

// look adds a record to those that are found, if the query wants it and it is the newest
// version of its event.
func (p *timePager) look(ctx context.Context, revision uint64) error {
	if p.looked++; p.looked%checkEvery == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	e, err := p.log.Borrow(revision)
	if skipped(p.log, revision, err) {
		return nil
	}
	if err != nil || e.Kind == entry.Deleted {
		return err
	}
	at := store.Moment{Time: p.log.Occurrence(&e).Time, Revision: revision}
	key := string(e.Key)
	if !p.wants(&e, key, at) {
		return nil
	}
	if match, err := p.matches(&e); !match {
		return err
	}
	last, err := lastBefore(p.log, p.index, key, revision, p.page.Revision)
	if last {
		p.found = append(p.found, at)
	}
	return err
}

// wants reports whether the query asks for a version at a place, before its function.
func (p *timePager) wants(e *entry.Entry, key string, at store.Moment) bool {
	q := p.query
	if at.Time.Before(q.From) || !at.Time.Before(q.To) || p.after != (store.Moment{}) && at.Compare(p.after, q.OldestFirst) <= 0 {
		return false
	}
	namespace, name := key[:e.NamespaceLen], key[e.NamespaceLen+1:]
	if p.anyDimensions && q.Wanted != nil && !q.Wanted(event.DimensionsOf(namespace, e.Attributes)) {
		return false
	}
	return q.Selector.Matches(namespace, name, e.Attributes)
}

// matches reports whether the function of the query accepts a version.
func (p *timePager) matches(e *entry.Entry) (match bool, err error) {
	if p.query.Match == nil {
		return true, nil
	}
	p.log.Lend(e, e.StoreKey(), func(v *store.View) bool {
		match, err = p.query.Match(v)
		return true
	})
	return match && err == nil, err
}

// show lends what is found to visit.
func (p *timePager) show() error {
	slices.SortFunc(p.found, func(a, b store.Moment) int { return a.Compare(b, p.query.OldestFirst) })
	for _, at := range p.found {
		if p.bytes >= pageBytes {
			p.page.More = true
			return nil
		}
		e, err := p.log.Get(at.Revision)
		if err != nil {
			return err
		}
		p.bytes += len(e.Value)
		more := p.log.Lend(&e, e.StoreKey(), func(v *store.View) bool { return p.visit(v, at) })
		p.after, p.page.Last = at, at
		if !more {
			p.page.More = true
			return nil
		}
	}
	return nil
}

// wanted returns which dimensions the query can want: what its selector says of them is
// known before any record is read.
func (p *timePager) wanted() func(event.Dimensions) bool {
	q := p.query
	known := &event.Selector{}
	if q.Selector != nil {
		for _, r := range q.Selector.Fields {
			switch r.Field {
			case event.FieldNamespace, event.Type, event.Reason, event.RegardingKind:
				known.Fields = append(known.Fields, r)
			}
		}
	}
	if len(known.Fields) == 0 {
		return q.Wanted
	}
	return func(d event.Dimensions) bool {
		a := event.NewAttributes([event.NumFields]string{event.Type: d.Type, event.Reason: d.Reason, event.RegardingKind: d.Kind}, nil)
		return known.Matches(d.Namespace, "", a) && (q.Wanted == nil || q.Wanted(d))
	}
}
