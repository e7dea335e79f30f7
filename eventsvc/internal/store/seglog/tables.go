package seglog

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/wal"
)

const (
	// tableRows is the most rows of a table of a compressed segment, and memoryRows that of one in memory.
	tableRows  = 1 << 16
	memoryRows = 1 << 13
	// memorySegments is the most sealed segments of which tables are kept in memory, about 5 MB each.
	memorySegments = 8
	// knownBytes is the most that is kept of what was read of compressed segments.
	knownBytes = 16 << 20
)

// addRow adds what a record reports to a table in the making. Deletions report nothing. A value that is no event has no
// note.
func addRow(b *columns.Builder, e *Entry) {
	if e.Kind == Deleted {
		return
	}
	note, _ := e.note()
	b.Add(&columns.Row{Revision: e.Revision, Occurrence: Occurrence(e), Namespace: e.Key[:e.NamespaceLen], Attributes: e.Attributes, Note: note})
}

// Tables returns the tables of the columns of all segments that may have observations in a range of seconds, by
// versions up to a revision. They are valid as long as the reader. pause is called before each segment.
func (r *Reader) Tables(from, to int64, last uint64, pause func() error) (all []*columns.Table, err error) {
	for i, s := range r.segments {
		if s.Base > last {
			break
		}
		if err := pause(); err != nil {
			return nil, err
		}
		var found []*columns.Table
		if s.Compressed {
			found, err = r.fileTables(i)
		} else {
			found, err = r.memoryTables(i)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if first, last := t.Times(); first < to && last >= from {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// What is known of the columns of a compressed segment.
const (
	columnsUnread = iota
	columnsWhole
	columnsDamaged // their tables are made again from records, in memory
)

// fileTables returns the tables of a compressed segment. It verifies them once.
func (r *Reader) fileTables(i int) ([]*columns.Table, error) {
	v, err := r.segment(i)
	if err != nil {
		return nil, err
	}
	s := r.segments[i]
	if s.columns.Load() == columnsDamaged {
		return r.memoryTables(i)
	}
	if known := s.tables.known.Load(); known != nil {
		r.log.keepKnown(s)
		b := v.tx.Bucket([]byte(bucketColumns))
		all := make([]*columns.Table, len(*known))
		for i, k := range *known {
			all[i] = k.Reader(b.Get)
		}
		return all, nil
	}
	all, damage := tablesIn(v.tx)
	if s.columns.Load() == columnsUnread {
		for at := 0; at < len(all) && damage == nil; at++ {
			damage = all[at].Verify()
		}
		s.columns.Store(columnsWhole)
	}
	if damage != nil {
		s.columns.Store(columnsDamaged)
		return r.memoryTables(i)
	}
	known := make([]*columns.Known, len(all))
	for i, t := range all {
		known[i] = t.Known
	}
	s.tables.known.Store(&known)
	return all, nil
}

// keepKnown forgets what was read of the columns of the compressed segments that were asked for longest ago, if that is
// too much.
func (l *Log) keepKnown(used *Segment) {
	l.tabled.Lock()
	defer l.tabled.Unlock()
	l.read = append(slices.DeleteFunc(l.read, func(s *Segment) bool { return s == used }), used)
	bytes := 0
	for i := len(l.read) - 1; i >= 0; i-- {
		known := l.read[i].tables.known.Load()
		if known == nil {
			continue
		}
		for _, k := range *known {
			bytes += k.Bytes()
		}
		if bytes > knownBytes && l.read[i] != used {
			l.read[i].tables.known.Store(nil)
		}
	}
	l.read = slices.DeleteFunc(l.read, func(s *Segment) bool { return s.tables.known.Load() == nil })
}

// tablesIn opens the tables of a file.
func tablesIn(tx *bbolt.Tx) (all []*columns.Table, err error) {
	b := tx.Bucket([]byte(bucketColumns))
	if b == nil {
		return nil, errColumnsGone
	}
	c := b.Cursor()
	covered := uint64(0)
	for at, ok := tableBehind(c, 0); ok; at, ok = tableBehind(c, at) {
		t, err := columns.Open(at, b.Get)
		if err != nil {
			return nil, err
		}
		all, covered = append(all, t), at
	}
	if noted(tx, metaColumns) != covered {
		return nil, errColumnsGone
	}
	return all, nil
}

func tableBehind(c *bbolt.Cursor, after uint64) (last uint64, ok bool) {
	return columns.Next(after, func(key []byte) []byte {
		k, _ := c.Seek(key)
		return k
	})
}

// A segmentTables is the tables of a segment that is not compressed, or of which the columns are damaged, in memory.
// They are made when they are needed.
type segmentTables struct {
	known atomic.Pointer[[]*columns.Known] // of a compressed segment, once verified and read

	mu     sync.Mutex
	tables []memoryTable
	tail   *columns.Builder // what comes behind them; nil: nothing
	tailed memoryTable      // of tail
	next   uint64           // the first revision that was not added
	err    error            // a record is damaged: nothing is known of it
}

// A memoryTable is a table in memory. It is never changed.
type memoryTable struct {
	known  *columns.Known
	pieces map[string][]byte
}

func (m memoryTable) get(key []byte) []byte { return m.pieces[string(key)] }

func newMemoryTable(b *columns.Builder) (m memoryTable, err error) {
	m.pieces = map[string][]byte{}
	err = b.Pieces(func(key, piece []byte) error {
		m.pieces[string(key)] = slices.Clip(piece)
		return nil
	})
	if err != nil {
		return m, err
	}
	t, err := columns.Open(b.Last(), m.get)
	if err == nil {
		m.known = t.Known
	}
	return m, err
}

// memoryTables returns the tables of a segment that is not compressed, with the pending records if it is the head.
func (r *Reader) memoryTables(i int) ([]*columns.Table, error) {
	s := r.segments[i]
	m := &s.tables
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.grow(i, m); err != nil {
		return nil, err
	}
	r.log.forgetTables(s)
	all := make([]*columns.Table, 0, len(m.tables)+1)
	for _, t := range append(m.tables[:len(m.tables):len(m.tables)], m.tailed) {
		if t.pieces == nil {
			continue
		}
		all = append(all, t.known.Reader(t.get))
	}
	return all, nil
}

// grow adds the records that were not added yet.
func (r *Reader) grow(i int, m *segmentTables) error {
	head, s := i == len(r.segments)-1, r.segments[i]
	if m.err != nil || m.next > r.seen || !head && m.next > r.segments[i+1].Base-1 {
		return m.err
	}
	v, err := r.segment(i)
	if err != nil {
		return err
	}
	before := m.next
	_, err = recordsIn(s, v.tx).Each(m.next, func(revision uint64, record []byte) (bool, error) {
		if head && revision > r.seen {
			return false, nil
		}
		m.add(revision, record)
		return m.err == nil, nil
	}, func(l *lostBlock) (bool, error) {
		m.err = Corrupt(l.First, l)
		return false, nil
	})
	if err != nil {
		return err
	}
	if head {
		m.addPending(r.pending, r.seen)
	}
	if m.err == nil && m.tail != nil && m.tail.Rows() > 0 && m.next > before {
		m.tailed, m.err = newMemoryTable(m.tail)
	}
	if head {
		m.next = max(m.next, r.seen+1)
	} else {
		m.next = r.segments[i+1].Base
	}
	return m.err
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
	if m.tail == nil {
		m.tail = columns.NewBuilder()
	}
	addRow(m.tail, &e)
	m.next = revision + 1
	if m.tail.Rows() < memoryRows {
		return
	}
	t, err := newMemoryTable(m.tail)
	m.tables, m.tail, m.tailed, m.err = append(m.tables, t), nil, memoryTable{}, err
}

// forgetTables forgets the tables of the sealed segments that were asked for longest ago, if they are too many.
func (l *Log) forgetTables(used *Segment) {
	l.tabled.Lock()
	defer l.tabled.Unlock()
	l.recent = append(slices.DeleteFunc(l.recent, func(s *Segment) bool { return s == used }), used)
	for len(l.recent) > memorySegments {
		if old := l.recent[0]; old.tables.mu.TryLock() {
			old.tables.tables, old.tables.tail, old.tables.tailed, old.tables.next = nil, nil, memoryTable{}, 0
			old.tables.mu.Unlock()
		}
		l.recent = l.recent[1:]
	}
}

// A columnWriter writes the tables of a compressed segment.
type columnWriter struct {
	table   *columns.Builder
	written uint64 // the last revision of the last table
}

// add adds a record, which may be damaged: then it has no row.
func (w *columnWriter) add(b *bbolt.Bucket, revision uint64, record []byte) error {
	e, err := parseEntry(revision, record)
	if err != nil {
		return w.lose(b.Tx(), revision)
	}
	if w.table == nil {
		w.table = columns.NewBuilder()
	}
	addRow(w.table, &e)
	if w.table.Rows() < tableRows {
		return nil
	}
	return w.finish(b.Tx())
}

// finish writes the table in the making.
func (w *columnWriter) finish(tx *bbolt.Tx) error {
	if w.table == nil || w.table.Rows() == 0 {
		return nil
	}
	to := tx.Bucket([]byte(bucketColumns))
	to.FillPercent = 1
	err := w.table.Pieces(func(key, piece []byte) error { return to.Put(key, piece) })
	w.written, w.table = w.table.Last(), nil
	return err
}

// lose notes that there are no rows of damaged records up to a revision. Those who come upon it are told.
func (w *columnWriter) lose(tx *bbolt.Tx, last uint64) error {
	if err := w.finish(tx); err != nil {
		return err
	}
	w.written = last
	return tx.Bucket([]byte(bucketColumns)).Put(columns.Lost(last), nil)
}

// end writes the last table, and notes that it is the last.
func (w *columnWriter) end(tx *bbolt.Tx) error {
	if err := w.finish(tx); err != nil {
		return err
	}
	return note(tx, metaColumns, w.written)
}

// CheckColumns calls problem with what is wrong with the columns of a compressed segment: they have to be those of its
// records.
func CheckColumns(s *Segment, problem func(format string, args ...any)) error {
	if !s.Compressed {
		return nil
	}
	return s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketColumns))
		if b == nil {
			return errColumnsGone
		}
		c := b.Cursor()
		if _, err := tablesIn(tx); err != nil {
			problem("%v", err)
		}
		at := s.Base
		for last, ok := tableBehind(c, 0); ok; last, ok = tableBehind(c, last) {
			if err := checkTable(s, tx, b, at, last); err != nil {
				problem("the columns up to revision %d: %v", last, err)
			}
			at = last + 1
		}
		return nil
	})
}

// checkTable makes the pieces of a table again, and compares them with those that are stored.
func checkTable(s *Segment, tx *bbolt.Tx, b *bbolt.Bucket, first, last uint64) error {
	t, err := columns.Open(last, b.Get)
	if err != nil {
		return nil //nolint:nilerr // which is reported already
	}
	if err := t.Verify(); err != nil {
		return err
	}
	again := columns.NewBuilder()
	_, err = recordsIn(s, tx).Each(first, func(revision uint64, record []byte) (bool, error) {
		if revision > last {
			return false, nil
		}
		e, err := parseEntry(revision, record)
		if err == nil {
			addRow(again, &e)
		}
		return err == nil, err
	}, func(l *lostBlock) (bool, error) { return false, l })
	if err != nil {
		return nil //nolint:nilerr // which is reported already
	}
	return again.Pieces(func(key, piece []byte) error {
		if !bytes.Equal(b.Get(key), piece) {
			return columns.Damaged(key)
		}
		return nil
	})
}
