package seglog

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unique"

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
	dimensions(series uint32) (unique.Handle[event.Dimensions], error)
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
// what was observed was carried to a later one, and the pending records up to a revision in series that are seen.
func (r *Reader) parts(last uint64, from, to int64, sees func(event.Dimensions) bool) ([]part, error) {
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
		if r.segments[i].Base > last && s.carried == 0 { // all of it was written later than is asked for
			continue
		}
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
	p, err := r.pendingPart(recordsIn(s, v.tx).Last(s.Base-1), last, from, to, sees)
	return append(all, p), err
}

// stored is the part of a segment. It opens the file only when a run is needed. Until then it is at
// the first run or, newest first, at the last one: the summary has the minutes of both.
type stored struct {
	reader  *Reader
	segment int
	summary *runSummary

	tx     *bbolt.Tx     // nil until the file is open
	sums   *bbolt.Bucket // nil: it has none
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
		p.cursor, p.sums = v.tx.Bucket([]byte(bucketRuns)).Cursor(), v.tx.Bucket([]byte(bucketSums))
		p.reader.log.learn(p.reader.segments[p.segment], v.tx)
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

func (p *stored) dimensions(series uint32) (d unique.Handle[event.Dimensions], err error) {
	if d, ok := p.reader.segments[p.segment].series(series); ok {
		return d, nil
	}
	texts, err := seriesIn(p.tx, series)
	if err != nil {
		return d, err
	}
	return uniqueSeries(texts)
}

// roundBytes is about how many bytes of runs [Moments.Occurrences] reads at once, in less than a millisecond. A run
// counts for some bytes more, which stand for finding it.
const (
	roundBytes = 256 << 10
	runBytes   = 64
)

// Occurrences calls visit with what was observed in the next minutes of the range, newest first, by its groups. It
// reports whether there may be more.
func (m *Moments) Occurrences(r *Reader, visit func(store.Occurred)) (more bool, err error) {
	if err := m.open(r); err != nil {
		return false, err
	}
	for size := 0; size < roundBytes; {
		start, more, err := m.gatherHour()
		if err == nil && start == noHour {
			more, err = m.gather()
			start = m.minute * 60
		}
		if err != nil || !more {
			return false, err
		}
		for _, o := range m.sums {
			visit(o)
		}
		for _, run := range m.runs {
			begin := run.Minute * 60
			err := m.each(run, func(e *runEntry) {
				second := begin + int64(e.Second)
				if e.Count > 0 && e.Revision <= m.Last && second >= m.From && second < m.To {
					visit(store.Occurred{Group: e.Group, Second: second, Span: int64(e.Span), Revision: e.Revision, Count: e.Count})
				}
			})
			if err != nil {
				return false, err
			}
		}
		size += m.size + len(m.runs)*runBytes
		m.To, m.runs, m.sums = max(m.From, start), m.runs[:0], m.sums[:0]
	}
	return m.From < m.To, nil
}

// First returns the first second of the first minute in which something was observed, since
// a time or, if a record that is held reports it, before.
func (r *Reader) First(since time.Time) (second int64, ok bool, err error) {
	var minute int64
	parts, err := r.parts(r.seen, math.MinInt64, math.MaxInt64, nil)
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
			entries, err := run.Append(nil, allSeries)
			if err != nil {
				return 0, false, err
			}
			if held || slices.ContainsFunc(entries, func(e runEntry) bool { return e.Revision != 0 }) {
				minute, ok = at, true
				break
			}
		}
	}
	return minute * 60, ok, nil
}
