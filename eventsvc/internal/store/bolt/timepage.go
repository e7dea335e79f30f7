package bolt

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A timePager reads one page of a timeline. It goes over the tables of columns, and in these over the chunks, those
// first that can have what comes first in the page. As soon as no others can have anything before a version that was
// found, it is looked at.
type timePager struct {
	*turns // with the reader of the log
	query  *store.TimeQuery
	visit  func(*store.View, store.Moment) bool
	page   store.TimePage

	places []timePlace     // that are left, the first one at the end
	found  []columns.Found // versions that match, the first one at the end
	sorted int             // so many of them are in order

	alive  map[string]bool // whether an event exists in the state of the page, by its key and UID
	looked int             // records that were looked at
	bytes  int             // of the values that were shown
}

// A timePlace is a table or one of its chunks.
type timePlace struct {
	bound int64 // no row has a time that comes earlier in the page, in microseconds
	table *columns.Table
	scan  *columns.Scan // of a chunk
	chunk int
}

// run reads the page.
func (p *timePager) run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	for {
		if err := p.next(); err != nil {
			return err
		}
		n := len(p.found)
		switch {
		case n > 0 && p.sorted == n && (len(p.places) == 0 || p.before(p.found[n-1].Micro, p.places[len(p.places)-1].bound)):
			if more, err := p.look(ctx, p.found[n-1]); err != nil || !more {
				return err
			}
			p.found, p.sorted = p.found[:n-1], n-1
		case len(p.places) == 0:
			return nil
		case p.looked >= pageLooked:
			p.page.More, p.page.Last = true, p.rest()
			return nil
		default:
			if err := p.open(); err != nil {
				return err
			}
		}
	}
}

// rest returns the place before all that is left, when nothing that was found comes before that.
func (p *timePager) rest() store.Moment {
	bound := p.places[len(p.places)-1].bound
	if !p.query.OldestFirst {
		bound++ // at revision 0: behind everything at this time
	}
	return store.Moment{Time: time.UnixMicro(bound).UTC()}
}

// before reports whether one time comes earlier in the page than another.
func (p *timePager) before(a, b int64) bool {
	if p.query.OldestFirst {
		return a < b
	}
	return a > b
}

// begin finds the tables.
func (p *timePager) begin() error {
	if err := p.next(); err != nil {
		return err
	}
	q := p.asks()
	q.From, q.To = p.seconds()
	tables, err := p.log.Tables(q, p.next)
	for _, t := range tables {
		first, last := t.Times()
		p.places = append(p.places, timePlace{bound: p.bound(first, last), table: t})
	}
	p.sort()
	return err
}

// bound returns the bound of rows that were observed in some seconds.
func (p *timePager) bound(first, last int64) int64 {
	if p.query.OldestFirst {
		return first * 1e6
	}
	return last*1e6 + 1e6 - 1
}

func (p *timePager) sort() {
	slices.SortStableFunc(p.places, func(a, b timePlace) int {
		if p.query.OldestFirst {
			a, b = b, a
		}
		return cmp.Compare(a.bound, b.bound)
	})
}

// seconds returns the part of the range behind the place that is done.
func (p *timePager) seconds() (from, to int64) {
	from, to = p.window()
	switch after := p.query.After; {
	case after == (store.Moment{}):
	case p.query.OldestFirst:
		from = max(from, after.Time.Unix())
	default:
		to = min(to, after.Time.Unix()+1)
	}
	return from, to
}

// window returns the whole seconds that have all of the range.
func (p *timePager) window() (from, to int64) {
	return p.query.From.Unix(), store.Ceil(p.query.To).Unix()
}

// open opens the first place: of a table it adds the chunks, and of a chunk the rows that match.
func (p *timePager) open() error {
	at := p.places[len(p.places)-1]
	p.places = p.places[:len(p.places)-1]
	if at.scan == nil {
		return p.openTable(at.table)
	}
	n := len(p.found)
	found, err := at.scan.Find(at.chunk, p.found)
	if err != nil {
		return err
	}
	from, to := p.seconds()
	p.found = append(found[:n], slices.DeleteFunc(found[n:], func(f columns.Found) bool { return f.Micro < from*1e6 || f.Micro >= to*1e6 })...)
	slices.SortFunc(p.found, func(a, b columns.Found) int { return -moment(a).Compare(moment(b), p.query.OldestFirst) })
	p.sorted = len(p.found)
	return nil
}

// asks returns what is asked of the columns.
func (p *timePager) asks() *columns.Query {
	from, to := p.window()
	micros := func(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
	q := &columns.Query{From: from, To: to, Spans: p.query.Window || p.query.Versions, Last: p.page.Revision, Filter: p.query.Matching(), Whole: true}
	q.Late, q.Early = micros(p.query.From.Sub(time.Unix(from, 0))), time.Unix(to, 0).Sub(p.query.To).Microseconds()
	q.Held = func(revision uint64, f *event.Filter) (bool, error) {
		p.looked++
		return p.held(revision, f)
	}
	return q
}

func (p *timePager) openTable(t *columns.Table) error {
	scan, err := t.Scan(p.asks())
	if err != nil || scan == nil {
		return err
	}
	from, to := p.seconds()
	for chunk := range scan.Chunks() {
		may, err := scan.May(chunk)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		first, last, err := scan.ChunkTimes(chunk)
		if err != nil {
			return err
		}
		if first < to && last >= from {
			p.places = append(p.places, timePlace{bound: p.bound(first, last), table: t, scan: scan, chunk: chunk})
		}
	}
	p.sort()
	return nil
}

// moment returns the place of a row in a timeline.
func moment(f columns.Found) store.Moment {
	return store.Moment{Time: time.UnixMicro(f.Micro).UTC(), Revision: f.Revision}
}

// look visits a version, if the query wants it and it is the newest one of its event in the window. It reports whether
// the page goes on.
func (p *timePager) look(ctx context.Context, f columns.Found) (more bool, err error) {
	at := moment(f)
	if p.query.After != (store.Moment{}) && at.Compare(p.query.After, p.query.OldestFirst) <= 0 {
		return true, nil
	}
	if p.looked++; p.looked%checkEvery == 0 && ctx.Err() != nil {
		return false, ctx.Err()
	}
	e, err := p.newest(f.Revision)
	if err != nil {
		return false, err
	}
	more = true
	if p.page.Last = at; e.Key != nil {
		v := e.View(e.StoreKey())
		more, p.bytes = p.visit(&v, at), p.bytes+len(v.Value)
	}
	if !more || p.bytes >= pageBytes || p.looked >= pageLooked {
		p.page.More = !more || len(p.found) > 1 || len(p.places) > 0
		return false, nil
	}
	return true, nil
}

// newest returns a version that the query wants. It has no key if it is not held, or not the newest one of its event in
// the window.
func (p *timePager) newest(revision uint64) (e seglog.Entry, err error) {
	e, err = p.log.Get(revision)
	if skipped(p.log, revision, err) {
		return seglog.Entry{}, nil
	}
	if err != nil {
		return seglog.Entry{}, err
	}
	wanted, err := p.wants(&e)
	if err != nil || !wanted {
		return seglog.Entry{}, err
	}
	if p.query.Versions {
		return e, nil
	}
	key := string(e.Key)
	newest, exists, err := p.reader.Index.Newest(key)
	if err != nil || !exists {
		return seglog.Entry{}, err
	}
	if newest.Revision() == revision {
		return e, nil
	}
	shown := false
	if p.query.Window {
		shown, err = p.shown(&e, key, newest)
	} else {
		shown, err = lastBefore(p.log, p.reader.Index, key, revision, p.page.Revision)
	}
	if err != nil || !shown {
		return seglog.Entry{}, err
	}
	return p.log.Get(revision) // again: it was valid until others were looked up
}

// shown reports whether a version that has been superseded is the newest one of its event in the window that the query
// wants, and the event exists. What was observed behind the window ends the search.
func (p *timePager) shown(e *seglog.Entry, key string, newest index.Pointer) (bool, error) {
	uid, first := e.UID(), e.Revision // e is valid until others are read
	for of := first; of != newest.Revision(); p.looked++ {
		if err := p.next(); err != nil {
			return false, err
		}
		next, deletion, ok, err := p.log.Next(of, newest.Revision())
		if err != nil || deletion && next <= p.page.Revision {
			return false, err
		}
		if !ok {
			return lastBefore(p.log, p.reader.Index, key, first, p.page.Revision)
		}
		if next > p.page.Revision {
			return true, nil
		}
		of = next
		later, err := p.log.Get(next)
		if skipped(p.log, next, err) {
			continue
		}
		if err != nil {
			return false, err
		}
		o := seglog.Occurrence(&later)
		if _, in := o.LastIn(p.query.From, p.query.To); in {
			if matches, err := p.matches(&later); err != nil || matches {
				return false, err
			}
		} else if !o.Time.Before(p.query.To) {
			return p.exists(key, uid, next, newest)
		}
	}
	return true, nil
}

// exists reports whether an event with a UID exists in the state of the page, of which a version is known.
func (p *timePager) exists(key, uid string, version uint64, newest index.Pointer) (bool, error) {
	name := key + "\x00" + uid
	known, ok := p.alive[name]
	if ok {
		return known, nil
	}
	last := newest.Revision()
	if last > p.page.Revision {
		var err error
		if last, err = p.lastOf(version, newest); err != nil {
			return false, err
		}
	}
	alive := false
	if last != 0 {
		e, err := p.log.Get(last)
		if err != nil && !skipped(p.log, last, err) {
			return false, err
		}
		alive = err == nil && e.Kind != seglog.Deleted && e.UID() == uid
	}
	if p.alive == nil {
		p.alive = map[string]bool{}
	}
	p.alive[name] = alive
	return alive, nil
}

// lastOf returns the last version of an event in the state of the page, behind another one, or its deletion. 0: it did
// not exist.
func (p *timePager) lastOf(version uint64, newest index.Pointer) (uint64, error) {
	for ; ; p.looked++ {
		if err := p.next(); err != nil {
			return 0, err
		}
		next, _, ok, err := p.log.Next(version, newest.Revision())
		if err != nil {
			return 0, err
		}
		if !ok {
			last, exists, err := p.log.At(newest.Revision(), p.page.Revision)
			if !exists {
				return 0, err
			}
			return last.Revision, err
		}
		if next > p.page.Revision {
			return version, nil
		}
		version = next
	}
}

// matches reports whether the query asks for a version, wherever it is.
func (p *timePager) matches(e *seglog.Entry) (bool, error) {
	text, _ := e.AppendText(nil) // a value that is no event has none
	if !p.query.Matching().Matches(subjectOf(e, text)) {
		return false, nil
	}
	return p.wants(e)
}

// wants reports whether the query asks for a version of which the columns do not say all.
func (p *timePager) wants(e *seglog.Entry) (bool, error) {
	q := p.query
	if !q.Selector.Matches(string(e.Key[:e.NamespaceLen]), string(e.Key[e.NamespaceLen+1:]), e.Attributes) {
		return false, nil
	}
	if q.Match == nil {
		return true, nil
	}
	v := e.View(e.StoreKey())
	return q.Match(&v)
}

// held reports whether a version matches a filter that columns cannot decide.
func (t *turns) held(revision uint64, f *event.Filter) (bool, error) {
	e, err := t.log.Get(revision)
	if skipped(t.log, revision, err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return f.Matches(subjectOf(&e, nil)), t.next()
}

func subjectOf(e *seglog.Entry, text []byte) *event.Subject {
	return &event.Subject{Namespace: string(e.Key[:e.NamespaceLen]), Name: string(e.Key[e.NamespaceLen+1:]), Attributes: e.Attributes, Text: text}
}
