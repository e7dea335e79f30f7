package seglog

import (
	"errors"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// ErrGone reports that the log has no record of a revision.
var ErrGone = errors.New("no such record")

// A Reader reads records by revision. It begins a transaction for each segment when it
// first needs one. Its user must not wait for anything, because an open transaction keeps
// bbolt from reusing pages.
type Reader struct {
	log        *Log
	segments   Segments
	pending    []wal.Record // records that the head may not have yet
	seen       uint64       // every record up to this revision can be seen
	opened     []segmentTx  // in the order of segments
	Generation int          // rises when it is opened again, which ends the validity of records found before
	view       store.View   // by Lend
	notes      openNotes
}

// segmentTx is a read transaction of a segment, zero as long as the reader has not needed
// it.
type segmentTx struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
	at     uint64      // revision that the cursor is at, 0: none
	finder blockFinder // of a compressed segment
}

// readers reuses the memory of readers.
var readers = sync.Pool{New: func() any { return new(Reader) }}

// View calls f with a reader, and calls it again if a segment was replaced or removed
// meanwhile. f must not wait for anything.
func (l *Log) View(f func(*Reader) error) error {
	open := l.reads.begin()
	defer open.Add(-1)
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	r.log = l
	for {
		err := boltfile.Guard(func() error {
			r.open()
			defer r.close()
			return f(r)
		})
		if errors.Is(err, berrors.ErrDatabaseNotOpen) && !l.closed.Load() {
			continue
		}
		return err
	}
}

func (r *Reader) open() {
	r.Generation++
	// The order matters: a record that is not pending any more is in the segments.
	r.seen = r.log.published()
	r.pending = r.log.Pending()
	r.segments = r.log.Segments()
	r.opened = slices.Grow(r.opened[:0], len(r.segments))[:len(r.segments)]
}

func (r *Reader) close() {
	for i := range r.opened {
		v := &r.opened[i]
		v.finder.Close()
		if v.tx != nil {
			_ = v.tx.Rollback()
		}
	}
	clear(r.opened)
	r.notes.forget()
	r.segments, r.pending, r.view = nil, nil, store.View{}
}

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
		v.cursor = recordsIn(s, v.tx).Bucket.Cursor()
		v.finder = blockFinder{File: s.file, Cache: r.log.cache, Cursor: v.cursor}
	}
	return v, nil
}

// Get verifies and returns the record of a revision. Its bytes are in the mapped file.
// They are valid until View returns, or until the reader is asked for a record that was
// written after it was opened, which changes its Generation.
func (r *Reader) Get(revision uint64) (Entry, error) {
	b, err := r.Lookup(revision)
	if err != nil {
		return Entry{}, err
	}
	return ParseStored(revision, b)
}

// Borrow is [Reader.Get] for an entry that is used only until the next call of a method: it takes
// no memory of its own, which a scan of compressed segments would have collected all the time.
func (r *Reader) Borrow(revision uint64) (Entry, error) {
	i := r.segments.find(revision)
	if i < 0 || !r.segments[i].Compressed {
		return r.Get(revision)
	}
	s, err := r.segment(i)
	if err != nil {
		return Entry{}, err
	}
	body, err := s.finder.Borrow(revision)
	switch {
	case err != nil:
		return Entry{}, Corrupt(revision, err)
	case body == nil:
		return Entry{}, ErrGone
	}
	e, err := splitBody(revision, body)
	return e, Corrupt(revision, err)
}

// Size returns the length of a record. It looks at the header alone: a record whose checksum does not
// match takes room too.
func (r *Reader) Size(revision uint64) (int64, error) {
	b, err := r.Lookup(revision)
	if err != nil {
		return 0, err
	}
	e, err := SplitEntry(revision, b)
	return e.Size(), Corrupt(revision, err)
}

// Lookup returns the bytes of a record, as [Reader.Get] does, without parsing them.
func (r *Reader) Lookup(revision uint64) ([]byte, error) {
	b, err := r.Seek(revision)
	if revision > r.seen && errors.Is(err, ErrGone) {
		r.close()
		r.open()
		return r.Seek(revision)
	}
	return b, err
}

// walkMost is how many records a cursor moves over one by one, instead of beginning at the root
// again.
const walkMost = 4

// Seek is [Reader.Lookup] among the records that were there when the reader was opened.
func (r *Reader) Seek(revision uint64) ([]byte, error) {
	if b := wal.Find(r.pending, revision); b != nil {
		return b, nil
	}
	i := r.segments.find(revision)
	if i < 0 {
		return nil, ErrGone
	}
	s, err := r.segment(i)
	if err != nil {
		return nil, err
	}
	if r.segments[i].Compressed {
		return s.find(revision)
	}
	if s.at != 0 && revision > s.at && revision-s.at <= walkMost {
		for k, v := s.cursor.Next(); len(k) == 8 && be.Uint64(k) <= revision; k, v = s.cursor.Next() {
			if be.Uint64(k) == revision {
				s.at = revision
				return v, nil
			}
		}
	}
	var want [8]byte
	be.PutUint64(want[:], revision)
	k, v := s.cursor.Seek(want[:])
	if string(k) != string(want[:]) {
		s.at = 0
		return nil, ErrGone
	}
	s.at = revision
	return v, nil
}

// find returns the record of a revision from the blocks of a segment.
func (v *segmentTx) find(revision uint64) ([]byte, error) {
	record, err := v.finder.Find(revision)
	if record == nil && err == nil {
		return nil, ErrGone
	}
	return record, Corrupt(revision, err)
}

// Prefetch has the kernel read the records of revisions, which rise, all at the same time.
// It is for records that are not in memory, and passes over those in blocks, of which many
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
		return ParseStored(r.pending[n-1].Revision, r.pending[n-1].Data)
	}
	for i := range slices.Backward(r.segments) {
		s, err := r.segment(i)
		if err != nil {
			return Entry{}, err
		}
		if revision := recordsIn(r.segments[i], s.tx).Last(0); revision > 0 {
			return r.Get(revision)
		}
	}
	return Entry{}, ErrGone
}

// A Position is where a record was found in the file of a sealed segment. It is empty for
// records that are elsewhere, or compressed.
type Position struct {
	in     *Segment
	record []byte
}

// Position returns where a record was found by [Reader.Lookup].
func (r *Reader) Position(revision uint64, record []byte) Position {
	if i := r.segments.find(revision); i >= 0 && i < len(r.segments)-1 && !r.segments[i].Compressed {
		return Position{r.segments[i], record}
	}
	return Position{}
}

// LookupAgain returns a record that Lookup has found before. A sealed segment that is still
// there has its record at the same position.
func (r *Reader) LookupAgain(revision uint64, at Position) ([]byte, error) {
	i := r.segments.find(revision)
	if at.in == nil || i < 0 || r.segments[i] != at.in {
		return r.Lookup(revision)
	}
	_, err := r.segment(i) // keeps the segment open
	return at.record, err
}

// Complete reports that the log must have the record of a revision: Rewrite has left
// nothing out of its segment.
func (r *Reader) Complete(revision uint64) bool {
	i := r.segments.find(revision)
	return i >= 0 && !r.segments[i].rewritten || revision > r.log.CompactRevision()
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
func SkipDamaged(uint64, []byte) bool { return true }

// Scan calls f with the records behind revision after up to last, in order, until f
// returns false. A record is valid until f returns. Scan calls damaged with damaged records, and
// goes on until that returns false; of a damaged block it gets the last revision, and no record.
// If damaged is nil, the first such record ends Scan with an error.
func (r *Reader) Scan(after, last uint64, f func(Entry) bool, damaged func(revision uint64, record []byte) bool) error {
	if last > r.seen {
		r.close()
		r.open()
	}
	s := scan{after: after, last: last, record: f, damaged: damaged}
	for i := max(r.segments.find(after+1), 0); i < len(r.segments) && r.segments[i].Base <= last; i++ {
		v, err := r.segment(i)
		if err != nil {
			return err
		}
		if more, err := recordsIn(r.segments[i], v.tx).Each(s.after+1, s.each, s.lost); err != nil || !more {
			return err
		}
	}
	for _, l := range r.pending {
		if l.Revision <= s.after {
			continue
		}
		if more, err := s.each(l.Revision, l.Data); err != nil || !more {
			return err
		}
	}
	return nil
}

// A scan is a [Reader.Scan] that has come to a revision. Its methods report false at the end.
type scan struct {
	after, last uint64
	record      func(Entry) bool
	damaged     func(revision uint64, record []byte) bool
}

func (s *scan) each(revision uint64, record []byte) (more bool, err error) {
	if revision > s.last {
		return false, nil
	}
	s.after = revision
	e, err := parseEntry(revision, record)
	switch {
	case err != nil && s.damaged == nil:
		return false, Corrupt(revision, err)
	case err != nil:
		return s.damaged(revision, record), nil
	}
	return s.record(e), nil
}

func (s *scan) lost(l *lostBlock) (more bool, err error) {
	switch {
	case l.First > s.last:
		return false, nil
	case s.damaged == nil:
		return false, Corrupt(l.First, l)
	}
	s.after = l.Last
	return s.damaged(l.Last, nil), nil
}
