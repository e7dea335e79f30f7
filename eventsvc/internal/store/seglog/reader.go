package seglog

import (
	"errors"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/wal"
)

// ErrGone reports that the log has no record of a revision.
var ErrGone = errors.New("no such record")

// A Reader reads records by revision. It holds the segments of one moment, and begins a
// transaction for each when it first needs one.
type Reader struct {
	log      *Log
	held     *Held
	segments Segments     // of held
	pending  []wal.Record // records that the head may not have yet
	seen     uint64       // every record up to this revision can be seen
	opened   []segmentTx  // in the order of segments
	room     []byte       // of the record that Get has copied
	view     store.View   // by Lend

	superseded map[uint64]successor // by pending records; nil: not known yet
}

// segmentTx is a read transaction of a segment, zero as long as the reader has not needed
// it.
type segmentTx struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
	at     uint64 // revision that the cursor is at, 0: none
	file   fileRecords
	rows   *columns.Records // of the table that was read last
	maker  recordMaker
}

// readers reuses the memory of readers.
var readers = sync.Pool{New: func() any { return new(Reader) }}

// View calls f once, with a reader that holds the present segments until f returns. f may
// take long, but must not wait for a client.
func (l *Log) View(f func(*Reader) error) error {
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	// The order matters: a record that is not pending any more is in the segments.
	r.log, r.seen, r.pending = l, l.published(), l.Pending()
	held, ok := l.Acquire()
	if !ok {
		return store.ErrClosed
	}
	r.held, r.segments = held, held.Segments
	r.opened = slices.Grow(r.opened[:0], len(r.segments))[:len(r.segments)]
	return boltfile.Guard(func() error {
		defer r.close()
		return f(r)
	})
}

func (r *Reader) close() {
	for i := range r.opened {
		r.opened[i].end()
	}
	r.held.Release()
	r.held, r.segments, r.pending, r.superseded, r.view = nil, nil, nil, nil, store.View{}
}

// end ends the transaction, if there is one.
func (v *segmentTx) end() {
	if v.tx != nil {
		_ = v.tx.Rollback()
	}
	*v = segmentTx{}
}

// headTx returns the transaction of the head, nil if none has begun.
func (r *Reader) headTx() *bbolt.Tx { return r.opened[len(r.opened)-1].tx }

// Lend calls visit with e as a view, which is empty afterwards, and returns its result.
// It takes no memory of its own.
func (r *Reader) Lend(e *Entry, key store.Key, visit func(*store.View) bool) bool {
	r.view = e.View(key)
	more := visit(&r.view)
	r.view = store.View{}
	return more
}

// segment returns a segment with its cursor.
func (r *Reader) segment(i int) (*segmentTx, error) {
	v, s := &r.opened[i], r.segments[i]
	if v.tx == nil {
		tx, err := s.db.Begin(false)
		if err != nil {
			return nil, err
		}
		v.tx = tx // which close ends, also if bbolt panics on the page of the root
	}
	if v.cursor == nil {
		if v.file = recordsIn(s, v.tx); s.Compressed {
			r.log.keepParts(s)
		}
		v.cursor = v.file.log.Cursor()
	}
	return v, nil
}

// Get verifies and returns the record of a revision. It is valid until the next Get, and until
// View returns. A damaged record whose header makes sense is returned with the error.
func (r *Reader) Get(revision uint64) (Entry, error) {
	record, err := r.find(revision, &r.room)
	if revision > r.seen && errors.Is(err, ErrGone) {
		record, err = r.later(revision)
	}
	if err != nil {
		return Entry{}, err
	}
	return record.parse(revision)
}

// later copies a record that was written after the reader has begun.
func (r *Reader) later(revision uint64) (record recordBytes, err error) {
	// A goroutine may have one transaction of a file, because another could wait for who waits for this one.
	r.opened[len(r.opened)-1].end()
	err = r.log.View(func(now *Reader) error {
		found, err := now.find(revision, &now.room)
		if err != nil {
			return err
		}
		r.room = append(r.room[:0], found.bytes...)
		record = recordBytes{bytes: r.room, verified: found.verified}
		return nil
	})
	return record, err
}

// A Position is where the record of a revision is. It is valid until View returns.
type Position struct {
	revision uint64
	record   recordBytes // empty: it has to be looked up again
	of       *bbolt.Tx   // of the head; nil: the record stays where it is
}

// Position looks up a record for [Reader.Read]. An error is returned by Read.
func (r *Reader) Position(revision uint64) Position {
	p := Position{revision: revision}
	var room []byte
	p.record, _ = r.find(revision, &room)
	if i := r.segments.find(revision); i >= 0 && i == len(r.segments)-1 {
		p.of = r.headTx()
	}
	return p
}

// Read verifies and returns the record at a position, as [Reader.Get] does.
func (r *Reader) Read(p *Position) (Entry, error) {
	if p.record.bytes == nil || p.of != nil && p.of != r.headTx() { // its page may have been reused
		return r.Get(p.revision)
	}
	return p.record.parse(p.revision)
}

// A recordBytes is the bytes of a record: with its checksum, which has to be verified, or
// without it, because it was made of columns, which have checksums of their own.
type recordBytes struct {
	bytes    []byte
	verified bool
	damage   error // of columns; there are no bytes then
}

func (s recordBytes) parse(revision uint64) (e Entry, err error) {
	switch {
	case s.damage != nil:
		err = s.damage
	case s.verified:
		e, err = splitBody(revision, s.bytes)
	default:
		e, err = parseEntry(revision, s.bytes)
	}
	return e, Corrupt(revision, err)
}

// whole returns the record with its checksum. It may take the memory behind the bytes.
func (s recordBytes) whole(revision uint64) []byte {
	if s.verified {
		return be.AppendUint32(s.bytes, boltfile.Checksum(revision, s.bytes))
	}
	return s.bytes
}

// walkMost is how many records a cursor moves over one by one, instead of beginning at the root
// again.
const walkMost = 4

// find finds a record among those that were there when the reader was opened. One that is made of columns is in room.
func (r *Reader) find(revision uint64, room *[]byte) (recordBytes, error) {
	if b := wal.Find(r.pending, revision); b != nil {
		return recordBytes{bytes: b}, nil
	}
	i := r.segments.find(revision)
	if i < 0 {
		return recordBytes{}, ErrGone
	}
	s, err := r.segment(i)
	if err != nil {
		return recordBytes{}, err
	}
	record, ok := s.make(revision, (*room)[:0])
	if ok {
		r.log.reads.Add(1)
		*room = record.bytes
		return record, Corrupt(revision, record.damage)
	}
	if record.bytes = s.seek(revision); record.bytes == nil {
		return recordBytes{}, ErrGone
	}
	return record, nil
}

// make appends the record of a revision that is in columns. It reports false if there is none.
func (v *segmentTx) make(revision uint64, dst []byte) (recordBytes, bool) {
	i, ok := slices.BinarySearchFunc(v.file.parts, revision, func(p tablePart, revision uint64) int {
		switch {
		case p.last < revision:
			return -1
		case p.first > revision:
			return 1
		}
		return 0
	})
	if !ok {
		return recordBytes{}, false
	}
	p := &v.file.parts[i]
	if p.table == nil {
		return recordBytes{damage: &lostRange{p.first, p.last, p.err}}, true
	}
	if v.rows == nil || v.rows.Table != p.table {
		v.rows = p.table.Records()
	}
	row, err := v.rows.Search(revision)
	if err == nil && row < p.table.Rows() {
		at, damage := v.rows.Revision(row)
		if err = damage; err == nil && at == revision {
			return v.maker.record(v.rows, row, dst)
		}
	}
	return recordBytes{damage: err}, err != nil
}

// seek returns the record of a revision, nil if there is none, from the log. A gap is that of all its revisions.
func (v *segmentTx) seek(revision uint64) []byte {
	if v.at != 0 && revision > v.at && revision-v.at <= walkMost {
		for k, record := v.cursor.Next(); len(k) == 8 && be.Uint64(k) <= revision; k, record = v.cursor.Next() {
			if be.Uint64(k) == revision {
				v.at = revision
				return record
			}
		}
	}
	var want [8]byte
	be.PutUint64(want[:], revision)
	k, record := v.cursor.Seek(want[:])
	if string(k) != string(want[:]) {
		v.at = 0
		if len(k) == 8 {
			if lost, ok := lostIn(be.Uint64(k), record); ok && lost.First <= revision {
				return record
			}
		}
		return nil
	}
	v.at = revision
	return record
}

// Prefetch has the kernel read the records of revisions, which rise, all at the same time.
// It is for records that are not in memory, and passes over those in columns, of which many
// share a page.
func (r *Reader) Prefetch(revisions []uint64) {
	for len(revisions) > 0 {
		i := r.segments.find(revisions[0])
		var keys [][]byte
		for len(revisions) > 0 && r.segments.find(revisions[0]) == i {
			keys, revisions = append(keys, recordKey(revisions[0])), revisions[1:]
		}
		if i < 0 || r.segments[i].Compressed {
			continue
		}
		if s, err := r.segment(i); err == nil {
			boltfile.Prefetch(s.tx, r.segments[i].Path, []byte(bucketLog), keys)
		}
	}
}

// Newest returns the newest record, or ErrGone. It need not have the newest revision: that
// record may be compacted away, or the revision skipped.
func (r *Reader) Newest() (Entry, error) {
	if n := len(r.pending); n > 0 {
		return r.Get(r.pending[n-1].Revision)
	}
	for i := range slices.Backward(r.segments) {
		s, err := r.segment(i)
		if err != nil {
			return Entry{}, err
		}
		for revision := s.file.Last(0); revision >= r.segments[i].Base; revision-- { // tables may end with versions that are not held
			if e, err := r.Get(revision); !errors.Is(err, ErrGone) {
				return e, err
			}
		}
	}
	return Entry{}, ErrGone
}

// Complete reports that the log must have the record of a revision: Rewrite has left
// nothing out of its segment.
func (r *Reader) Complete(revision uint64) bool {
	i := r.segments.find(revision)
	return i >= 0 && !r.segments[i].rewritten || revision > r.log.CompactRevision()
}

// Made returns about which share of the records has to be made of columns.
func (r *Reader) Made() float64 {
	compressed := 0
	for _, s := range r.segments {
		if s.Compressed {
			compressed++
		}
	}
	return float64(compressed) / float64(len(r.segments))
}

// SegmentBase returns the base of the segment that a revision belongs to.
func (r *Reader) SegmentBase(revision uint64) uint64 {
	return r.segments[max(r.segments.find(revision), 0)].Base
}

// At follows the versions of an event from the newest down to the one that was the newest
// at revision at. It reports false if the event did not exist then.
func (r *Reader) At(newest, at uint64) (Entry, bool, error) {
	var newer Kind
	for revision := newest; revision != 0; {
		e, err := r.Get(revision)
		if newer == Created && errors.Is(err, ErrGone) {
			return Entry{}, false, nil // the deletion before it is compacted away
		}
		if err != nil {
			return Entry{}, false, err
		}
		if e.Revision <= at {
			return e, e.Kind != Deleted, nil
		}
		if e.Previous >= revision {
			return Entry{}, false, Corrupt(revision, boltfile.ErrChecksum)
		}
		revision, newer = e.Previous, e.Kind
	}
	return Entry{}, false, nil
}

// SkipDamaged is for a [Reader.Scan] that passes over damaged records.
func SkipDamaged(Entry) bool { return true }

// Scan calls f with the records behind revision after up to last, in order, until f returns false. f must not get
// records that are newer than the reader. A record is valid until f returns. Scan calls damaged with damaged records,
// and goes on until that returns false; of records that are lost, and of one whose header makes no sense, it gets the
// last revision and nothing else. If damaged is nil, the first such record ends Scan with an error.
func (r *Reader) Scan(after, last uint64, f, damaged func(Entry) bool) error {
	s := scan{after: after, last: last, record: f, damaged: damaged}
	for i := max(r.segments.find(after+1), 0); i < len(r.segments) && r.segments[i].Base <= last; i++ {
		v, err := r.segment(i)
		if err != nil {
			return err
		}
		if more, err := v.file.each(s.after+1, s.each, s.lost); err != nil || !more {
			return err
		}
	}
	for _, l := range r.pending {
		if l.Revision <= s.after {
			continue
		}
		if more, err := s.each(l.Revision, recordBytes{bytes: l.Data}); err != nil || !more {
			return err
		}
	}
	return nil
}

// A scan is a [Reader.Scan] that has come to a revision. Its methods report false at the end.
type scan struct {
	after, last     uint64
	record, damaged func(Entry) bool
}

func (s *scan) each(revision uint64, record recordBytes) (more bool, err error) {
	if revision > s.last {
		return false, nil
	}
	s.after = revision
	e, err := record.parse(revision)
	switch {
	case err != nil && s.damaged == nil:
		return false, err
	case err != nil:
		e.Revision = revision
		return s.damaged(e), nil
	}
	return s.record(e), nil
}

func (s *scan) lost(l *lostRange) (more bool, err error) {
	switch {
	case l.First > s.last:
		return false, nil
	case s.damaged == nil:
		return false, Corrupt(l.First, l)
	}
	s.after = l.Last
	return s.damaged(Entry{Revision: l.Last}), nil
}
