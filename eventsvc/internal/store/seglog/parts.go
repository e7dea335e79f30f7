package seglog

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/columns"
)

// knownBytes is the most that is kept of what was read of compressed segments.
const knownBytes = 16 << 20

// A tablePart is a table of a segment, or revisions of which the table is lost.
type tablePart struct {
	first, last uint64
	table       *columns.Table // nil: it is lost
	err         error
}

// segmentParts are the parts of a sealed segment, once they are known.
type segmentParts struct {
	all    atomic.Pointer[[]tablePart]
	tables atomic.Pointer[[]*columns.Table] // of all, if they have what all records report; nil: that is not known
	used   atomic.Uint64                    // when, by the count of the log
}

// parts returns the parts of a sealed segment, by their revisions. They are valid as long as its file is open: that
// of a sealed segment is never mapped again.
func (s *Segment) parts(tx *bbolt.Tx) []tablePart {
	if known := s.columns.all.Load(); known != nil {
		return *known
	}
	parts := partsIn(tx, s.Base)
	s.columns.all.Store(&parts)
	return parts
}

// partsIn opens the tables of a file. Each says behind which revision it begins, so that one that is missing is
// noticed.
func partsIn(tx *bbolt.Tx, base uint64) (parts []tablePart) {
	at := base - 1
	add := func(t *columns.Table, after, last uint64) {
		if after < at || last <= at { // it makes no sense: its rows are damaged
			return
		}
		if after > at {
			parts = append(parts, tablePart{first: at + 1, last: after, err: errColumnsGone})
		}
		if t != nil {
			parts = append(parts, tablePart{first: after + 1, last: last, table: t})
		}
		at = last
	}
	tables(tx, func(last uint64, pieces columns.Pieces) {
		if t, err := columns.Open(last, pieces); err == nil {
			after, _ := t.Range()
			add(t, after, last)
		}
	})
	covered := noted(tx, metaColumns)
	if covered == damagedNote {
		covered = max(at+1, metaIn(tx, metaEnd))
	}
	if covered > at {
		parts = append(parts, tablePart{first: at + 1, last: covered, err: errColumnsGone})
	}
	return parts
}

// tables calls f with the pieces of each table of a file.
func tables(tx *bbolt.Tx, f func(last uint64, pieces columns.Pieces)) {
	b := tx.Bucket([]byte(bucketColumns))
	if b == nil {
		return
	}
	var pieces columns.Pieces
	before := uint64(0)
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		last, at, ok := columns.ParseKey(k)
		if !ok {
			continue
		}
		if last != before && pieces != nil {
			f(before, pieces)
			pieces = nil
		}
		if pieces == nil {
			pieces = columns.Pieces{}
		}
		pieces[at], before = v, last
	}
	if pieces != nil {
		f(before, pieces)
	}
}

// fileTables returns the tables of a sealed segment.
func (r *Reader) fileTables(i int) (all []*columns.Table, err error) {
	s := r.segments[i]
	if known := s.columns.tables.Load(); known != nil && s.columns.all.Load() != nil { // else they were forgotten meanwhile
		r.log.keepParts(s)
		return *known, nil
	}
	v, err := r.segment(i)
	if err != nil {
		return nil, err
	}
	if lost := noted(v.tx, metaLost); lost != 0 {
		return nil, Corrupt(lost, errGap)
	}
	if !s.Compressed && noted(v.tx, metaThrough) < v.file.Last(0) { // the process ended before it sealed the segment
		return r.memoryTables(i)
	}
	r.log.keepParts(s)
	parts := s.parts(v.tx)
	for i := range parts {
		p := &parts[i]
		if p.table == nil {
			return nil, Corrupt(p.first, &lostRange{p.first, p.last, p.err})
		}
		all = append(all, p.table)
	}
	s.seen.Store(spansOf(all))
	s.columns.tables.Store(&all)
	return all, nil
}

// keepParts notes that the tables of a segment are read, and forgets what was read of those that were not read for
// longest, if that is too much.
func (l *Log) keepParts(s *Segment) {
	if now := l.reads.Load() + 1; s.columns.used.Swap(now) != 0 && now%64 != 0 {
		return
	}
	all := slices.DeleteFunc(slices.Clone(l.Segments()), func(s *Segment) bool { return s.columns.all.Load() == nil })
	slices.SortFunc(all, func(a, b *Segment) int { return -cmp.Compare(a.columns.used.Load(), b.columns.used.Load()) })
	bytes := 0
	for _, s := range all {
		parts := s.columns.all.Load()
		for i := range *parts {
			if t := (*parts)[i].table; t != nil {
				bytes += t.Bytes()
			}
		}
		if bytes > knownBytes {
			s.columns.all.Store(nil)
			s.columns.tables.Store(nil)
			s.columns.used.Store(0)
		}
	}
}

// A columnWriter writes the tables of a file. Those of a compressed segment have its records as well; the log has what
// does not fit in there.
type columnWriter struct {
	most  int // rows of a table
	table *columns.Builder
	after uint64 // the table has all rows behind this revision
	lost  uint64 // the first revision of which the record is lost; 0: none
	room  []byte
}

// Put adds a record, which may be damaged.
func (w *columnWriter) Put(log *bbolt.Bucket, revision uint64, record []byte) error {
	e, err := parseEntry(revision, record)
	if err != nil && w.lost == 0 {
		w.lost = revision
	}
	if err != nil || e.Kind == Deleted || !w.add(&e, record) {
		err = log.Put(recordKey(revision), bytes.Clone(record))
	}
	if err != nil {
		return err
	}
	return w.full(log.Tx())
}

// full writes the table in the making if it has enough rows.
func (w *columnWriter) full(tx *bbolt.Tx) error {
	if w.table == nil || !w.table.Full(w.most) {
		return nil
	}
	return w.finish(tx)
}

// addRow adds a row without its record.
func (w *columnWriter) addRow(tx *bbolt.Tx, row *columns.Row) error {
	if w.table == nil {
		w.table = columns.NewBuilder(w.after)
	}
	w.table.Add(row)
	return w.full(tx)
}

// observe adds what a record reports that is in the log.
func (w *columnWriter) observe(tx *bbolt.Tx, revision uint64, record []byte) error {
	e, err := parseEntry(revision, record)
	if err != nil && w.lost == 0 {
		w.lost = revision
	}
	if err != nil || e.Kind == Deleted { // which reports nothing
		return nil
	}
	row := rowOf(&e)
	return w.addRow(tx, &row)
}

// add adds a record to the table. It reports whether the table has all of it.
func (w *columnWriter) add(e *Entry, record []byte) (held bool) {
	if w.table == nil {
		w.table = columns.NewBuilder(w.after)
	}
	row := rowOf(e)
	v := columns.Version{
		Record:     columns.Record{Kind: byte(e.Kind), Previous: e.Previous, Written: e.Time.UnixNano(), Mark: row.Attributes.Mark(), Value: e.Value},
		Occurrence: row.Occurrence, Labels: row.Attributes.LabelSet(),
	}
	var ok bool
	row.Stored = record[:len(record)-recordTrailer]
	if w.room, ok = appendVersion(w.room[:0], &v); ok && bytes.Equal(w.room, row.Stored) {
		row.Record = &v.Record
	}
	return w.table.Add(&row)
}

// PutLost notes revisions of which the records are lost.
func (w *columnWriter) PutLost(log *bbolt.Bucket, first, last uint64) error {
	if w.lost == 0 {
		w.lost = first
	}
	return log.Put(recordKey(last), gapOf(first, last))
}

// finish writes the table in the making.
func (w *columnWriter) finish(tx *bbolt.Tx) error {
	if w.table == nil {
		return nil
	}
	to := tx.Bucket([]byte(bucketColumns))
	to.FillPercent = 1
	err := w.table.Pieces(func(key, piece []byte) error { return to.Put(key, piece) })
	w.after, w.table = w.table.Last(), nil
	return err
}

// Finish writes the last table, and notes that it is the last, up to which revision all records are in tables, and what
// is lost.
func (w *columnWriter) Finish(tx *bbolt.Tx, through uint64) error {
	if err := w.finish(tx); err != nil {
		return err
	}
	return cmp.Or(note(tx, metaColumns, w.after), note(tx, metaThrough, through), note(tx, metaLost, w.lost))
}

// CheckColumns calls problem with what is damaged of the columns of a segment.
func CheckColumns(s *Segment, problem func(format string, args ...any)) error {
	return s.view(func(tx *bbolt.Tx) error {
		for _, p := range partsIn(tx, s.Base) {
			if p.table == nil {
				problem("%v", &lostRange{p.first, p.last, p.err})
				continue
			}
			p.table.Check(func(err error) { problem("the columns of the revisions %d to %d: %v", p.first, p.last, err) })
		}
		return nil
	})
}
