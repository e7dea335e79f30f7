package bolt

import (
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
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

// What a page copies out of the mapped files at once: little at first, because many queries
// want only a few events.
const (
	firstBatch = 32 << 10
	mostBatch  = 512 << 10
)

// roundTime is about how long a page reads the files at once. Only tests change it.
var roundTime = 500 * time.Microsecond

// A timePager reads one page of a timeline, in rounds. A round copies some versions, releases
// the files, and passes the copies to the functions of the query: they may take long, and
// files that are in use cannot be closed. Between two rounds other requests go first
// ([flow.Turns]), and the page ends if nobody waits for it any more.
type timePager struct {
	reader *reader
	query  *store.TimeQuery
	visit  func(*store.View, store.Moment) bool
	page   store.TimePage
	log    *seglog.Reader
	index  index.View

	search     *seglog.Search  // by words, until it is done; nil: none
	moments    *seglog.Moments // goes over the index by time
	byPostings bool            // instead of moments: left has all versions with one of the terms
	left       []seglog.Moment // records that are to be looked at
	after      store.Moment    // behind the seconds that are done
	ended      bool            // no records are left

	asked   []asked  // versions that Match is to be asked about
	matched []uint64 // versions that Match has accepted
	found   []copied // newest versions of their events, in no order; a copy without a value was not kept
	kept    []byte   // memory of the copies in found
	size    int      // bytes of the values in found
	whole   bool     // all records of the seconds up to after were looked at, and no others
	showing bool     // found has all of its seconds and is in order
	shown   int      // how many of found were copied
	ready   []copied // versions that visit is to be called with
	memory  []byte   // memory of the copies in ready
	batch   int      // how many bytes of copies a round makes
	enough  int      // how many bytes of values are found before they are shown: little at first, too

	began   time.Time // when the round began
	looked  int       // records that were looked at
	entries int       // entries of runs that were read
	bytes   int       // bytes of the values that were shown
}

// copied is a version in memory of the page.
type copied struct {
	store.View
	at store.Moment
}

// asked is a version with its text in memory of the page.
type asked struct {
	revision uint64
	text     []byte
}

// run reads the page.
func (p *timePager) run(ctx context.Context) error {
	p.batch, p.enough = firstBatch, firstBatch
	turns := flow.NewTurns(ctx)
	for more := true; more; {
		if !turns.Next() {
			return turns.Err()
		}
		p.began = time.Now()
		err := p.reader.View(func(v index.View, log *seglog.Reader) error { return p.round(ctx, log, v) })
		if err != nil {
			return err
		}
		if more, err = p.hand(); err != nil {
			return err
		}
	}
	return nil
}

// round reads until there is something for the functions of the query, or the page ends. If
// a file was replaced meanwhile, it is called again with new views, and goes on where it was.
func (p *timePager) round(ctx context.Context, log *seglog.Reader, v index.View) error {
	p.log, p.index = log, v
	if begun, err := p.begin(); err != nil || !begun {
		return err
	}
	if err := p.findMatched(); err != nil || len(p.matched) > 0 {
		return err
	}
	if err := p.lookOn(ctx); err != nil || len(p.asked) > 0 || !p.showing {
		return err
	}
	return p.lend()
}

// lookOn looks at records until enough are found or copied, or until the round is late. It looks at one at least.
func (p *timePager) lookOn(ctx context.Context) error {
	for late := false; p.looksOn() && !late; late = p.late() {
		if len(p.left) == 0 {
			if err := p.next(ctx); err != nil {
				return err
			}
			continue
		}
		second := p.left[0].Second
		if err := p.look(ctx, p.left[0].Revision); err != nil {
			return err
		}
		if p.left = p.left[1:]; len(p.left) == 0 || p.left[0].Second != second {
			p.pass(second)
		}
	}
	return nil
}

// looksOn reports that more records are to be looked at before the functions of the query are called.
func (p *timePager) looksOn() bool {
	p.showing = p.showing || p.whole && p.sufficient()
	return !p.showing && len(p.memory) < p.batch && (p.query.Limit == 0 || len(p.asked) < p.query.Limit)
}

// findMatched adds the versions that Match has accepted to found, until the round is late.
func (p *timePager) findMatched() error {
	for late := false; len(p.matched) > 0 && !late; late = p.late() {
		if err := p.find(p.matched[0]); err != nil {
			return err
		}
		p.matched = p.matched[1:]
	}
	return nil
}

// late reports that the round has taken long enough.
func (p *timePager) late() bool { return time.Since(p.began) >= roundTime }

// begin decides how the page is read. It reports false if a search by words goes on in the next round.
func (p *timePager) begin() (begun bool, err error) {
	if p.moments != nil || p.byPostings {
		return true, nil
	}
	from, to := p.seconds()
	if p.search == nil {
		if p.query.Selector != nil {
			events, _ := p.reader.Events("", p.page.Revision)
			if rarest, versions, ok := p.index.Rarest(p.query.Selector); ok && versions < min(pageLooked, int(events)/selectShare+1) {
				return true, p.takePostings(rarest)
			}
		}
		p.search = &seglog.Search{From: from, To: to, Last: p.page.Revision, Pieces: p.query.Pieces, Nodes: p.query.Nodes, Group: p.group(), Late: p.late}
	}
	if len(p.query.Pieces) > 0 {
		found, ok, more, err := p.log.Search(p.search)
		switch {
		case err != nil || more:
			return false, err
		case ok:
			p.take(found)
			return true, nil
		}
	}
	p.search = nil
	p.moments = &seglog.Moments{From: from, To: to, OldestFirst: p.query.OldestFirst, Last: p.page.Revision, Nodes: p.query.Nodes, Group: p.group(), Pieces: p.query.Pieces}
	return true, nil
}

// takePostings has the page look at all versions that have one of the terms.
func (p *timePager) takePostings(terms []index.Term) error {
	revisions, err := p.index.Postings(terms)
	if err != nil {
		return err
	}
	p.take(revisions)
	return nil
}

// take has the page look at versions and at nothing else.
func (p *timePager) take(revisions []uint64) {
	p.byPostings = true
	slices.Sort(revisions)
	for _, revision := range slices.Compact(revisions) {
		if revision <= p.page.Revision {
			p.left = append(p.left, seglog.Moment{Revision: revision})
		}
	}
}

// next takes the records of the next seconds from the index by time.
func (p *timePager) next(ctx context.Context) error {
	if p.byPostings {
		p.ended, p.showing = true, true
		return nil
	}
	found, entries, more, err := p.moments.Next(p.log)
	if err != nil {
		return err
	}
	if !more {
		p.ended, p.showing = true, true
		return nil
	}
	p.entries += entries
	if p.left = append(p.left[:0], found...); len(p.left) == 0 {
		last := p.moments.To
		if p.query.OldestFirst {
			last = p.moments.From - 1
		}
		p.pass(last)
	}
	return ctx.Err()
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

// pass notes that all records of a second were looked at. Only then their order is known,
// because they say themselves when within the second they were observed.
func (p *timePager) pass(second int64) {
	if p.byPostings {
		return
	}
	if p.after = start(second); p.query.OldestFirst {
		p.after = start(second + 1)
	}
	p.whole = true
}

// sufficient reports that enough is found for a batch of copies, or for the page.
func (p *timePager) sufficient() bool {
	return p.size >= p.enough || p.full() || p.query.Limit > 0 && len(p.found) >= p.query.Limit
}

// full reports that the page has looked at enough.
func (p *timePager) full() bool { return p.looked >= pageLooked || p.entries > pageEntries }

// look looks at a record: first, if the query has a function for texts, at its text.
func (p *timePager) look(ctx context.Context, revision uint64) error {
	p.whole = false
	if p.looked++; p.looked%checkEvery == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	if p.query.Match == nil {
		return p.find(revision)
	}
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
	from := len(p.memory)
	p.memory = append(p.memory, text...)
	p.asked = append(p.asked, asked{revision, p.memory[from:len(p.memory):len(p.memory)]})
	return nil
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

// find adds a version to those that are found, if the query wants it and it is the newest one of its event.
func (p *timePager) find(revision uint64) error {
	e, at, err := p.borrow(revision)
	if err != nil || e.Key == nil {
		return err
	}
	size, before, v := len(e.Value), len(p.kept), copied{at: at}
	if before < mostBatch { // most are shown, and need not be looked up again
		v, p.kept = copyOf(p.kept, &e, at)
	}
	last, err := lastBefore(p.log, p.index, string(e.Key), revision, p.page.Revision)
	if !last {
		p.kept = p.kept[:before]
		return err
	}
	p.found = append(p.found, v)
	p.size += size
	return err
}

// wants reports whether the query asks for a version at a place, before its function.
func (p *timePager) wants(e *seglog.Entry, at store.Moment) bool {
	q := p.query
	if at.Time.Before(q.From) || !at.Time.Before(q.To) || q.After != (store.Moment{}) && at.Compare(q.After, q.OldestFirst) <= 0 {
		return false
	}
	namespace, name := string(e.Key[:e.NamespaceLen]), string(e.Key[e.NamespaceLen+1:])
	if p.byPostings && q.Wanted != nil && !q.Wanted(event.DimensionsOf(namespace, e.Attributes)) {
		return false
	}
	return q.Selector.Matches(namespace, name, e.Attributes)
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

// lend copies the next of what is found, for visit.
func (p *timePager) lend() error {
	if p.shown == 0 {
		slices.SortFunc(p.found, func(a, b copied) int { return a.at.Compare(b.at, p.query.OldestFirst) })
	}
	for late := false; p.shown < len(p.found) && len(p.memory) < p.batch && !late; late = p.late() {
		v := p.found[p.shown]
		p.shown++
		if v.Value != nil {
			p.ready = append(p.ready, v)
			continue
		}
		at := v.at
		e, err := p.log.Get(at.Revision)
		if skipped(p.log, at.Revision, err) {
			continue // between two rounds, with the state that the page shows
		}
		if err != nil {
			return err
		}
		v, p.memory = copyOf(p.memory, &e, at)
		p.ready = append(p.ready, v)
	}
	return nil
}

// hand gives the copies of a round to the functions of the query. It reports whether the
// page goes on.
func (p *timePager) hand() (more bool, err error) {
	for i := range p.asked {
		match, err := p.query.Match(p.asked[i].text)
		if err != nil {
			return false, err
		}
		if match {
			p.matched = append(p.matched, p.asked[i].revision)
		}
	}
	for i := range p.ready {
		c := &p.ready[i]
		p.bytes += len(c.Value)
		p.page.Last = c.at
		if !p.visit(&c.View, c.at) {
			p.page.More = true
			return false, nil
		}
	}
	p.asked, p.ready, p.memory = p.asked[:0], p.ready[:0], p.memory[:0]
	p.batch = min(2*p.batch, mostBatch)
	all := p.showing && p.shown == len(p.found) && len(p.matched) == 0
	switch {
	case all && p.ended:
		return false, nil
	case p.bytes >= pageBytes:
		p.page.More = true
		return false, nil
	case all && p.full():
		p.page.More, p.page.Last = true, p.after
		return false, nil
	case all:
		p.showing, p.found, p.kept, p.shown, p.size = false, p.found[:0], p.kept[:0], 0, 0
		p.enough = min(2*p.enough, mostBatch)
	}
	return true, nil
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
