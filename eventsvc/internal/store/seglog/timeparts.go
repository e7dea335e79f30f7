package seglog

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// A part is the runs of one segment, or of the pending records that its index lacks, in order
// of their minutes. It is at one of them after seek, and valid as long as its Reader.
type part interface {
	file() uint64 // number of the segment's file, which numbers its series; 0: the pending records
	// seek moves to the first run of a minute or a later one or, newest first, to the last run
	// of the minute or an earlier one.
	seek(minute int64, oldestFirst bool)
	next(oldestFirst bool)
	// minute returns the minute of the run that the part is at. It reports false at the end.
	minute() (minute int64, ok bool, err error)
	run() (minuteRun, error)
	dimensions(series uint32) (event.Dimensions, error)
}

var errSegmentNote = fmt.Errorf("what a segment says of its index by time: %w", boltfile.ErrChecksum)

// A runSummary describes the index by time of a segment. It never changes once the segment is sealed.
type runSummary struct {
	carried     uint64 // what segments up to this base report was carried to this one
	any         bool   // there are runs
	first, last int64  // their minutes
	damaged     bool   // the first or the last run is damaged: its minute is not known
}

// summary returns the runSummary of a segment. A sealed segment remembers it, so that a query of some
// minutes does not open the files of all others.
func (r *Reader) summary(i int) (*runSummary, error) {
	s, sealed := r.segments[i], i < len(r.segments)-1
	if known := s.summary.Load(); known != nil && sealed {
		return known, nil
	}
	v, err := r.segment(i)
	if err != nil {
		return nil, err
	}
	n := &runSummary{carried: noted(v.tx, metaCarried)}
	b := v.tx.Bucket([]byte(bucketRuns))
	if n.carried == damagedNote || b == nil {
		return nil, errSegmentNote
	}
	c := b.Cursor()
	first, err1 := runAt(c.First())
	last, err2 := runAt(c.Last())
	n.any, n.first, n.last = first.ok, first.run.Minute, last.run.Minute
	if n.damaged = err1 != nil || err2 != nil; err1 != nil {
		n.first = math.MinInt64
	}
	if err2 != nil {
		n.last = math.MaxInt64
	}
	if sealed {
		s.summary.Store(n)
	}
	return n, nil
}

// A cursorRun is the run that a cursor is at.
type cursorRun struct {
	run minuteRun
	ok  bool // there is a run
}

// runAt verifies the run that a cursor is at.
func runAt(k, v []byte) (p cursorRun, err error) {
	if p.ok = k != nil; p.ok {
		p.run, err = parseRun(k, v)
	}
	return p, err
}

// parts returns what readers count of a range of seconds: segments, but not those of which
// what was observed was carried to a later one, and the pending records up to a revision.
func (r *Reader) parts(last uint64, from, to int64) ([]part, error) {
	var carried uint64
	summaries := make([]*runSummary, len(r.segments))
	for i := range r.segments {
		var err error
		if summaries[i], err = r.summary(i); err != nil {
			return nil, err
		}
		carried = max(carried, summaries[i].carried)
	}
	var all []part
	first, _ := minuteOf(from)
	end, _ := minuteOf(to - 1)
	for i, s := range summaries {
		if r.segments[i].Base > carried && s.any && s.first <= end && s.last >= first {
			all = append(all, &stored{reader: r, segment: i, summary: s})
		}
	}
	head := len(r.segments) - 1
	v, err := r.segment(head)
	if err != nil {
		return nil, err
	}
	s := r.segments[head]
	p, err := r.pendingPart(recordsIn(s, v.tx).Last(s.Base-1), last, from, to)
	return append(all, p), err
}

// stored is the part of a segment. It opens the file only when a run is needed. Until then it is at
// the first run or, newest first, at the last one: the summary has the minutes of both.
type stored struct {
	reader  *Reader
	segment int
	summary *runSummary

	tx     *bbolt.Tx // nil until the file is open
	cursor *bbolt.Cursor
	at     cursorRun
	err    error

	oldestFirst bool // as seek was called
	unread      bool // seek has left the part at its first or its last run, which was not read yet
}

func (p *stored) file() uint64 { return p.reader.segments[p.segment].file }

// open begins to read the segment.
func (p *stored) open() error {
	if p.tx != nil {
		return nil
	}
	v, err := p.reader.segment(p.segment)
	if err == nil {
		p.tx = v.tx
		p.cursor = v.tx.Bucket([]byte(bucketRuns)).Cursor()
		if p.segment < len(p.reader.segments)-1 {
			p.reader.log.learn(p.reader.segments[p.segment], v.tx)
		}
	}
	return err
}

func (p *stored) seek(minute int64, oldestFirst bool) {
	beyond := oldestFirst && minute <= p.summary.first || !oldestFirst && minute >= p.summary.last
	p.unread, p.oldestFirst, p.err = beyond && !p.summary.damaged, oldestFirst, nil
	switch {
	case p.unread:
	case oldestFirst:
		if _, p.at, p.err = p.around(minute); p.err == nil {
			p.cursor.Seek(runKey(minute, 0))
		}
	default:
		p.at, _, p.err = p.around(minute + 1)
	}
}

// around returns the last run before a minute and the first run of that minute or a later one.
// It leaves the cursor at the former. Both are verified: a corrupt key can sort to the wrong
// side of the minute.
func (p *stored) around(minute int64) (before, after cursorRun, err error) {
	if err := p.open(); err != nil {
		return before, after, err
	}
	if after, err = runAt(p.cursor.Seek(runKey(minute, 0))); err != nil {
		return before, after, err
	}
	if after.ok {
		before, err = runAt(p.cursor.Prev())
	} else {
		before, err = runAt(p.cursor.Last())
	}
	if err == nil && (before.ok && before.run.Minute >= minute || after.ok && after.run.Minute < minute) {
		err = fmt.Errorf("the runs of a segment are not in order: %w", boltfile.ErrChecksum) // a branch has led to another leaf
	}
	return before, after, err
}

// arrive reads the run where seek has left the part.
func (p *stored) arrive() {
	if !p.unread {
		return
	}
	p.unread = false
	switch p.err = p.open(); {
	case p.err != nil:
	case p.oldestFirst:
		p.at, p.err = runAt(p.cursor.First())
	default:
		p.at, p.err = runAt(p.cursor.Last())
	}
}

func (p *stored) next(oldestFirst bool) {
	p.arrive()
	switch {
	case p.err != nil:
	case oldestFirst:
		p.at, p.err = runAt(p.cursor.Next())
	default:
		p.at, p.err = runAt(p.cursor.Prev())
	}
}

func (p *stored) minute() (minute int64, ok bool, err error) {
	switch {
	case !p.unread:
		return p.at.run.Minute, p.at.ok, p.err
	case p.oldestFirst:
		return p.summary.first, true, nil
	}
	return p.summary.last, true, nil
}

func (p *stored) run() (minuteRun, error) {
	p.arrive()
	return p.at.run, p.err
}

func (p *stored) dimensions(series uint32) (event.Dimensions, error) {
	if d, ok := p.reader.segments[p.segment].series(series); ok {
		return d, nil
	}
	texts, err := seriesIn(p.tx, series)
	if err != nil {
		return event.Dimensions{}, err
	}
	return parseSeries(texts)
}

// A grouping remembers the groups of the series of one part, and those of each of their nodes.
type grouping struct {
	bySeries []int
	byNode   map[uint64]int // series, and node behind it
}

// ungrouped is the place of a series that was not asked for yet.
const ungrouped = -2

// of returns the group of a series, a negative number if it is left out.
func (g *grouping) of(p part, series uint32, group func(event.Dimensions) int) (int, error) {
	if known := g.bySeries; int(series) < len(known) && known[series] != ungrouped {
		return known[series], nil
	}
	return g.ask(p, series, group)
}

// maxGrouped is how many groups of series, and of nodes, are remembered.
const maxGrouped = 1 << 20

// ask asks for the group of a series, and remembers it if that does not take too much memory.
func (g *grouping) ask(p part, series uint32, group func(event.Dimensions) int) (int, error) {
	for uint32(len(g.bySeries)) <= series && len(g.bySeries) < maxGrouped {
		g.bySeries = append(g.bySeries, ungrouped)
	}
	d, err := p.dimensions(series)
	if err != nil {
		return 0, err
	}
	n := max(group(d), -1)
	if int(series) < len(g.bySeries) {
		g.bySeries[series] = n
	}
	return n, nil
}

// ofNode returns the group of a node of a series, a negative number if it is left out.
func (g *grouping) ofNode(p part, series, node uint32, group func(event.Dimensions) int) (int, error) {
	if node == 0 {
		return g.of(p, series, group)
	}
	key := uint64(series)<<32 | uint64(node)
	if n, ok := g.byNode[key]; ok {
		return n, nil
	}
	d, err := p.dimensions(series)
	if err != nil {
		return 0, err
	}
	of, err := p.dimensions(node - 1)
	if err != nil {
		return 0, err
	}
	d.Node = of.Node
	n := max(group(d), -1)
	if len(g.byNode) < maxGrouped {
		if g.byNode == nil {
			g.byNode = map[uint64]int{}
		}
		g.byNode[key] = n
	}
	return n, nil
}

// A call of [Reader.Occurrences] ends behind the minute in which it has read so many bytes of
// runs. A run counts for some bytes more, which stand for finding it.
const (
	turnBytes = 1 << 20
	runBytes  = 64
)

// Occurrences calls visit with what was observed from one second to before another and
// written up to a revision, and returns the end of what is left: see [store.Timeline] and [store.Range]. Also
// after an error, nothing that was visited is left.
func (r *Reader) Occurrences(ctx context.Context, from, to int64, last uint64, nodes bool, group func(event.Dimensions) int, visit func(store.Occurred)) (rest int64, err error) {
	m := Moments{From: from, To: to, Last: last, Nodes: nodes}
	if err := m.open(r); err != nil {
		return to, err
	}
	for size := 0; size < turnBytes; {
		// The runs of all parts first, so that no file has to be opened after a visit.
		if more, err := m.gather(); err != nil {
			return to, err
		} else if !more {
			return from, nil
		}
		for _, run := range m.runs {
			var o store.Occurred
			start := m.minute * 60
			err := m.each(run, group, func(e runEntry, group int) {
				o.Group, o.Second, o.Span, o.Revision, o.Count = group, start+int64(e.Second), int64(e.Span), e.Revision, e.Count
				if o.Count > 0 && o.Revision <= last && o.Second >= from && o.Second < to {
					visit(o)
				}
			})
			if err != nil {
				return to, err
			}
		}
		size += m.size + len(m.runs)*runBytes
		to, m.runs = m.minute*60, m.runs[:0]
		if ctx.Err() != nil {
			return to, ctx.Err()
		}
	}
	return max(from, to), nil
}

// First returns the first second of the first minute in which something was observed, since
// a time or, if a record that is held reports it, before.
func (r *Reader) First(since time.Time) (second int64, ok bool, err error) {
	var minute int64
	parts, err := r.parts(r.seen, math.MinInt64, math.MaxInt64)
	if err != nil {
		return 0, false, err
	}
	for _, p := range parts {
		for p.seek(math.MinInt64, true); ; p.next(true) {
			at, there, err := p.minute()
			if err != nil {
				return 0, false, err
			}
			if !there || ok && at >= minute {
				break
			}
			run, err := p.run()
			if err != nil {
				return 0, false, err
			}
			held := at >= minuteSince(since)
			if err := run.Each(allSeries, func(e runEntry) { held = held || e.Revision != 0 }); err != nil {
				return 0, false, err
			}
			if held {
				minute, ok = at, true
				break
			}
		}
	}
	return minute * 60, ok, nil
}
