package bolt

import (
	"errors"
	"slices"
	"sync"

	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltcheck"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// errGone: the log holds no record of a revision that was asked for.
var errGone = errors.New("no such record")

// A logReader reads records by revision within one short stretch of work. It
// opens a transaction per segment when it first needs one. Whoever holds a
// logReader must not wait for anything: an open transaction keeps pages from
// being used again.
type logReader struct {
	db       *DB
	segments segments
	pending  []wal.Record  // what the head may not have yet
	seen     uint64        // every record up to this revision can be seen
	opened   []segmentView // in the order of segments
	opening  int           // how often it was opened: what was found before is gone
	intact   bool          // nothing was wrong with what it has read
	shown    store.Record  // to somebody who only looks at it
}

// logReaders keeps the memory of those that are done.
var logReaders = sync.Pool{New: func() any { return new(logReader) }}

// readLog runs f with a logReader and closes it behind.
func (db *DB) readLog(f func(*logReader) error) error {
	open := db.reads.begin()
	defer open.Add(-1)
	r := logReaders.Get().(*logReader)
	defer logReaders.Put(r)
	r.db = db
	for {
		err := boltcheck.Guard(func() error {
			r.open()
			defer r.close()
			err := f(r)
			r.intact = err == nil
			return err
		})
		// A segment was replaced or unlinked after its list was loaded.
		if errors.Is(err, berrors.ErrDatabaseNotOpen) && !db.closed() {
			continue
		}
		return err
	}
}

func (r *logReader) open() {
	r.opening++
	// In this order: what is not pending any more is in the segments.
	r.seen = r.db.Revision()
	r.pending = *r.db.pending.Load()
	r.segments = *r.db.segments.Load()
	r.opened = slices.Grow(r.opened[:0], len(r.segments))[:len(r.segments)]
}

func (r *logReader) close() {
	for i, v := range r.opened {
		switch {
		case v.tx == nil:
		case r.intact:
			r.segments[i].views.keep(v)
		default:
			_ = v.tx.Rollback()
		}
	}
	clear(r.opened)
	r.intact = false
	r.segments, r.pending, r.shown = nil, nil, store.Record{}
}

// segment returns a segment with its cursor.
func (r *logReader) segment(i int) (*segmentView, error) {
	v := &r.opened[i]
	if v.cursor == nil {
		var err error
		if *v, err = r.segments[i].read(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// get returns the record of a revision, whose bytes are those of the mapped
// file: good until the reader is closed, or asked for a record that was written
// after it was opened. A memtable may lead there.
func (r *logReader) get(revision uint64) (seglog.Entry, error) {
	return r.read(revision, seglog.ParseRecord)
}

func (r *logReader) read(revision uint64, parse seglog.Parser) (seglog.Entry, error) {
	b, err := r.lookup(revision)
	if err != nil {
		return seglog.Entry{}, err
	}
	return parse.Parse(revision, b)
}

// lookup finds the bytes of a record.
func (r *logReader) lookup(revision uint64) ([]byte, error) {
	b, err := r.seek(revision)
	if revision > r.seen && errors.Is(err, errGone) {
		r.close()
		r.open()
		return r.seek(revision)
	}
	return b, err
}

// walkMost is how many records a cursor goes over one by one: a page holds
// about as many.
const walkMost = 4

func (r *logReader) seek(revision uint64) ([]byte, error) {
	if b := wal.Find(r.pending, revision); b != nil {
		return b, nil
	}
	i := r.segments.find(revision)
	if i < 0 {
		return nil, errGone
	}
	s, err := r.segment(i)
	if err != nil {
		return nil, err
	}
	if s.place != 0 && revision > s.place && revision-s.place <= walkMost {
		for k, v := s.cursor.Next(); len(k) == 8 && be.Uint64(k) <= revision; k, v = s.cursor.Next() {
			if be.Uint64(k) == revision {
				s.place = revision
				return v, nil
			}
		}
	}
	var want [8]byte
	be.PutUint64(want[:], revision)
	k, v := s.cursor.Seek(want[:])
	if string(k) != string(want[:]) {
		s.place = 0
		return nil, errGone
	}
	s.place = revision
	return v, nil
}

// newest returns the newest record that there is. That need not be the one of the
// newest revision, which may be compacted away or only skipped to.
func (r *logReader) newest() (seglog.Entry, error) {
	if n := len(r.pending); n > 0 {
		return seglog.Parser(seglog.ParseRecord).Parse(r.pending[n-1].Revision, r.pending[n-1].Data)
	}
	for i := range slices.Backward(r.segments) {
		s, err := r.segment(i)
		if err != nil {
			return seglog.Entry{}, err
		}
		if revision := lastIn(s.tx, 0); revision > 0 {
			return r.get(revision)
		}
	}
	return seglog.Entry{}, errGone
}

// sealed returns the segment of a revision if that is sealed.
func (r *logReader) sealed(revision uint64) *segment {
	if i := r.segments.find(revision); i >= 0 && i < len(r.segments)-1 {
		return r.segments[i]
	}
	return nil
}

// matched returns the record of a match: as it was found, if its segment is
// still the one that it was found in.
func (r *logReader) matched(m *match) ([]byte, error) {
	if m.segment == nil || r.sealed(m.revision) != m.segment {
		return r.lookup(m.revision)
	}
	_, err := r.segment(r.segments.find(m.revision)) // keeps the segment open
	return m.record, err
}

// complete reports that the log must have the record of a revision: nothing was
// left out of its segment.
func (r *logReader) complete(revision uint64) bool {
	i := r.segments.find(revision)
	return i >= 0 && !r.segments[i].rewritten || revision > r.db.horizon.Load()
}

// base returns the base of the segment that a revision belongs to.
func (r *logReader) base(revision uint64) uint64 {
	return r.segments[max(r.segments.find(revision), 0)].base
}

// at follows an event's versions from a revision down to the one that was the
// newest at the revision at. It reports false if there was none.
func (r *logReader) at(newest, at uint64, parse seglog.Parser) (seglog.Entry, bool, error) {
	var newer seglog.Kind
	for revision := newest; revision != 0; {
		e, err := r.read(revision, parse)
		if newer == seglog.Created && errors.Is(err, errGone) {
			return seglog.Entry{}, false, nil // what was before it was a deletion that is forgotten
		}
		if err != nil {
			return seglog.Entry{}, false, err
		}
		if e.Revision <= at {
			return e, e.Kind != seglog.Deleted, nil
		}
		if e.Previous >= revision {
			return seglog.Entry{}, false, seglog.Corrupt(revision, boltfile.ErrChecksum)
		}
		revision, newer = e.Previous, e.Kind
	}
	return seglog.Entry{}, false, nil
}

// scan calls f with the records behind a revision, up to and including last,
// in order, until f returns false.
func (r *logReader) scan(after, last uint64, f func(seglog.Entry) bool) error {
	return r.scanAll(after, last, f, nil)
}

// passOver lets scanAll go on behind damage.
func passOver(uint64, []byte) bool { return true }

// scanAll is scan that goes on behind damaged records: they are shown to
// damaged, until that returns false.
func (r *logReader) scanAll(after, last uint64, f func(seglog.Entry) bool, damaged func(revision uint64, record []byte) bool) error {
	if last > r.seen {
		r.close()
		r.open()
	}
	// each returns false at the end.
	each := func(revision uint64, record []byte) (bool, error) {
		if revision > last {
			return false, nil
		}
		after = revision
		e, err := seglog.ParseRecord(revision, record)
		switch {
		case err != nil && damaged == nil:
			return false, seglog.Corrupt(revision, err)
		case err != nil:
			return damaged(revision, record), nil
		}
		return f(e), nil
	}
	for i := max(r.segments.find(after+1), 0); i < len(r.segments) && r.segments[i].base <= last; i++ {
		s, err := r.segment(i)
		if err != nil {
			return err
		}
		// A cursor of its own: f may read other records.
		c := s.tx.Bucket([]byte(bucketLog)).Cursor()
		for k, v := c.Seek(seglog.RevisionKey(after + 1)); k != nil; k, v = c.Next() {
			revision, err := seglog.RevisionOf(k)
			if err != nil {
				return err
			}
			if more, err := each(revision, v); err != nil || !more {
				return err
			}
		}
	}
	for _, l := range r.pending {
		if l.Revision <= after {
			continue
		}
		if more, err := each(l.Revision, l.Data); err != nil || !more {
			return err
		}
	}
	return nil
}
