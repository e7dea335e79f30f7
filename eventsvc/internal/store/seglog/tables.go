package seglog

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/wal"
)

const (
	// memoryRows is the most rows of a table in memory.
	memoryRows = 1 << 13
	// memorySegments is the most sealed segments of which tables are kept in memory, about 5 MB each.
	memorySegments = 8
)

// rowOf returns what a record reports. A value that is no event has no note.
func rowOf(e *Entry) columns.Row {
	note, _ := e.note()
	return columns.Row{Revision: e.Revision, Occurrence: Occurrence(e), Namespace: e.Key[:e.NamespaceLen], Attributes: e.Attributes, Note: note}
}

// lightRowOf returns what is left of what a record reports when it is no longer held.
func lightRowOf(e *Entry) columns.Row {
	d := event.DimensionsOf(string(e.Key[:e.NamespaceLen]), e.Attributes)
	return columns.Row{Revision: e.Revision, Occurrence: Occurrence(e), Light: &d}
}

// Tables returns the tables of the columns of all segments that may have rows for a query, by the revisions of these.
// They are valid as long as the reader. pause is called before each segment.
func (r *Reader) Tables(q *columns.Query, pause func() error) (all []*columns.Table, err error) {
	for i, s := range r.segments {
		if s.Base > q.Last {
			break
		}
		if seen := s.seen.Load(); seen != nil && !seen.may(q) {
			continue
		}
		if err := pause(); err != nil {
			return nil, err
		}
		found, err := r.tables(i)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if t.May(q) {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// tables returns the tables of a segment.
func (r *Reader) tables(i int) ([]*columns.Table, error) {
	if r.segments[i].final.Load() && i < len(r.segments)-1 {
		return r.fileTables(i)
	}
	return r.memoryTables(i)
}

// Begin returns the second of the first observation since a time or, if a version that is held reports it, before. It
// reports false if there is none.
func (r *Reader) Begin(since time.Time, pause func() error) (first int64, ok bool, err error) {
	for i, s := range r.segments {
		seen := s.seen.Load()
		if seen == nil {
			if err := pause(); err != nil {
				return 0, false, err
			}
			tables, err := r.tables(i)
			if err != nil {
				return 0, false, err
			}
			seen = spansOf(tables)
		}
		for _, s := range *seen {
			if at, any := s.Begin(since.Unix()); any && (!ok || at < first) {
				first, ok = at, true
			}
		}
	}
	return first, ok, nil
}

// A spans is when the rows of the tables of a file were observed, so that it is not opened for other times.
type spans []columns.Span

func spansOf(tables []*columns.Table) *spans {
	all := make(spans, len(tables))
	for i, t := range tables {
		all[i] = t.Span
	}
	return &all
}

// may reports whether a query may find some of the rows.
func (all *spans) may(q *columns.Query) bool {
	return slices.ContainsFunc(*all, func(s columns.Span) bool { return s.May(q) })
}

// A segmentTables is the tables of a head in memory. They are made when they are needed.
type segmentTables struct {
	mu     sync.Mutex
	tables []*columns.Table
	tail   *columns.Builder // what comes behind them; nil: nothing
	tailed *columns.Table   // of tail
	next   uint64           // the first revision that was not added
	err    error            // a record is damaged: nothing is known of it
}

// memoryTables returns the tables of a segment in memory, with the pending records if it is the head.
func (r *Reader) memoryTables(i int) ([]*columns.Table, error) {
	s := r.segments[i]
	m := &s.tables
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.grow(i, m); err != nil {
		return nil, err
	}
	r.log.forgetTables(s)
	all := slices.Clone(m.tables)
	if m.tailed != nil {
		all = append(all, m.tailed)
	}
	return all, nil
}

// grow adds the records that were not added yet.
func (r *Reader) grow(i int, m *segmentTables) error {
	head := i == len(r.segments)-1
	last := r.seen
	if !head {
		last = r.segments[i+1].Base - 1
	}
	if m.err != nil || m.next > last {
		return m.err
	}
	v, err := r.segment(i)
	if err != nil {
		return err
	}
	if through := noted(v.tx, metaThrough); m.next == 0 || through != damagedNote && through >= m.next+memoryRows {
		m.load(v.tx) // which takes less than to add the records
	}
	before := m.next
	if err := m.addAll(v.file, last); err != nil {
		return err
	}
	if head {
		m.addPending(r.pending, r.seen)
	}
	if m.err == nil && m.tail != nil && m.tail.Rows() > 0 && m.next > before {
		m.tailed = m.tail.Growing()
	}
	m.next = max(m.next, last+1)
	return m.err
}

// addAll adds the records of a file that were not added yet, up to a revision.
func (m *segmentTables) addAll(records fileRecords, last uint64) error {
	_, err := records.Each(m.next, func(revision uint64, record []byte) (bool, error) {
		if revision > last {
			return false, nil
		}
		m.add(revision, record)
		return m.err == nil, nil
	}, func(l *lostRange) (bool, error) {
		m.err = Corrupt(l.First, l)
		return false, nil
	})
	return err
}

// load copies the tables that are in the file: the pages of a head are reused. If one of them does not open, all are
// made again from records.
func (m *segmentTables) load(tx *bbolt.Tx) {
	var all []*columns.Table
	damaged := false
	tables(tx, func(last uint64, pieces columns.Pieces) {
		for at, piece := range pieces {
			pieces[at] = bytes.Clone(piece)
		}
		t, err := columns.Open(last, pieces)
		if err == nil {
			t.Check(func(problem error) { err = problem })
		}
		all, damaged = append(all, t), damaged || err != nil
	})
	if !damaged {
		m.tables, m.tail, m.tailed, m.next = all, nil, nil, noted(tx, metaThrough)+1
	}
}

// addPending adds records that are in the write-ahead log alone, up to a revision.
func (m *segmentTables) addPending(pending []wal.Record, last uint64) {
	for _, p := range wal.After(pending, max(m.next, 1)-1) {
		if p.Revision <= last && m.err == nil {
			m.add(p.Revision, p.Data)
		}
	}
}

// add adds a record.
func (m *segmentTables) add(revision uint64, record []byte) {
	e, err := parseEntry(revision, record)
	if err != nil {
		m.err = Corrupt(revision, err)
		return
	}
	if m.next = revision + 1; e.Kind == Deleted { // which reports nothing
		return
	}
	if m.tail == nil {
		m.tail = columns.NewBuilder(0)
	}
	row := rowOf(&e)
	m.tail.Add(&row)
	if !m.tail.Full(memoryRows) {
		return
	}
	t, err := m.tail.Table()
	m.tables, m.tail, m.tailed, m.err = append(m.tables, t), nil, nil, err
}

// forgetTables forgets the tables of the sealed segments that were asked for longest ago, if they are too many.
func (l *Log) forgetTables(used *Segment) {
	l.tabled.Lock()
	defer l.tabled.Unlock()
	l.recent = append(slices.DeleteFunc(l.recent, func(s *Segment) bool { return s == used }), used)
	for len(l.recent) > memorySegments {
		if old := l.recent[0]; old.tables.mu.TryLock() {
			old.tables.tables, old.tables.tail, old.tables.tailed, old.tables.next = nil, nil, nil, 0
			old.tables.mu.Unlock()
		}
		l.recent = l.recent[1:]
	}
}
