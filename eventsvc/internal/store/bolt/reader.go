package bolt

import (
	"errors"
	"slices"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store"
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
	seen     uint64 // every record up to this revision can be seen
	txs      []*bbolt.Tx
	cursors  []*bbolt.Cursor
	places   []uint64 // revisions that the cursors are at, 0: none
	wanted   []uint64 // revisions that were prepared, in order
	prepared [][]byte // their records, nil if there is none
}

// readLog runs f with a logReader and closes it behind.
func (db *DB) readLog(f func(*logReader) error) error {
	open := db.reads.begin()
	defer open.Add(-1)
	for {
		err := guard(func() error {
			r := &logReader{db: db}
			r.open()
			defer r.close()
			return f(r)
		})
		// A segment was replaced or unlinked after its list was loaded.
		if errors.Is(err, berrors.ErrDatabaseNotOpen) && !db.closed() {
			continue
		}
		return err
	}
}

func (r *logReader) open() {
	r.seen = r.db.Revision()
	r.segments = *r.db.segments.Load()
	r.txs = make([]*bbolt.Tx, len(r.segments))
	r.cursors = make([]*bbolt.Cursor, len(r.segments))
	r.places = make([]uint64, len(r.segments))
	r.prepared = r.prepared[:0]
}

func (r *logReader) close() {
	for _, tx := range r.txs {
		if tx != nil {
			_ = tx.Rollback()
		}
	}
}

func (r *logReader) cursor(i int) (*bbolt.Cursor, error) {
	if r.cursors[i] == nil {
		tx, err := r.segments[i].db.Begin(false)
		if err != nil {
			return nil, err
		}
		r.txs[i], r.cursors[i] = tx, tx.Bucket([]byte(bucketLog)).Cursor()
	}
	return r.cursors[i], nil
}

// get returns the record of a revision, whose bytes are those of the mapped
// file: good until the reader is closed, or asked for a record that was written
// after it was opened. A memtable may lead there.
func (r *logReader) get(revision uint64) (entry, error) {
	b, err := r.lookup(revision)
	if err != nil {
		return entry{}, err
	}
	e, err := parseRecord(revision, b)
	return e, corrupt(revision, err)
}

// peek is get for a record that may be damaged: its checksum is not verified.
func (r *logReader) peek(revision uint64) (entry, error) {
	e, _, err := r.peekRecord(revision)
	return e, err
}

// peekRecord is peek that returns the bytes of the record too.
func (r *logReader) peekRecord(revision uint64) (entry, []byte, error) {
	b, err := r.lookup(revision)
	if err != nil {
		return entry{}, nil, err
	}
	e, err := splitRecord(revision, b)
	return e, b, corrupt(revision, err)
}

func corrupt(revision uint64, err error) error {
	if err == nil {
		return nil
	}
	return &store.CorruptError{Revision: revision, Reason: err.Error()}
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

// prepare looks up the records of some revisions, which are in order: those
// that lie together are found without a search for each.
func (r *logReader) prepare(revisions []uint64) {
	r.wanted, r.prepared = revisions, r.prepared[:0]
	for _, revision := range revisions {
		record, _ := r.seek(revision) // what is not there is looked for again when it is wanted
		r.prepared = append(r.prepared, record)
	}
}

// walkMost is how many records a cursor goes over one by one: a page holds
// about as many.
const walkMost = 4

func (r *logReader) seek(revision uint64) ([]byte, error) {
	if i, ok := slices.BinarySearch(r.wanted[:len(r.prepared)], revision); ok && r.prepared[i] != nil {
		return r.prepared[i], nil
	}
	i := r.segments.find(revision)
	if i < 0 {
		return nil, errGone
	}
	c, err := r.cursor(i)
	if err != nil {
		return nil, err
	}
	if place := r.places[i]; place != 0 && revision > place && revision-place <= walkMost {
		for k, v := c.Next(); len(k) == 8 && be.Uint64(k) <= revision; k, v = c.Next() {
			if be.Uint64(k) == revision {
				r.places[i] = revision
				return v, nil
			}
		}
	}
	var want [8]byte
	be.PutUint64(want[:], revision)
	k, v := c.Seek(want[:])
	if string(k) != string(want[:]) {
		r.places[i] = 0
		return nil, errGone
	}
	r.places[i] = revision
	return v, nil
}

// sealed returns the segment of a revision if that is sealed.
func (r *logReader) sealed(revision uint64) *segment {
	if i := r.segments.find(revision); i >= 0 && i < len(r.segments)-1 {
		return r.segments[i]
	}
	return nil
}

// know prepares the record of a match, if its segment is still the one that it
// was found in.
func (r *logReader) know(m *match) error {
	r.wanted, r.prepared = r.wanted[:0], r.prepared[:0]
	if m.segment == nil || r.sealed(m.revision) != m.segment {
		return nil
	}
	r.wanted, r.prepared = append(r.wanted, m.revision), append(r.prepared, m.record)
	_, err := r.cursor(r.segments.find(m.revision)) // keeps the segment open
	return err
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
// newest at the revision at, reading with get or peek. It reports false if
// there was none.
func (r *logReader) at(newest, at uint64, read func(uint64) (entry, error)) (entry, bool, error) {
	var newer kind
	for revision := newest; revision != 0; {
		e, err := read(revision)
		if newer == created && errors.Is(err, errGone) {
			return entry{}, false, nil // what was before it was a deletion that is forgotten
		}
		if err != nil {
			return entry{}, false, err
		}
		if e.revision <= at {
			return e, e.kind != deleted, nil
		}
		if e.previous >= revision {
			return entry{}, false, corrupt(revision, errDamaged)
		}
		revision, newer = e.previous, e.kind
	}
	return entry{}, false, nil
}

// scan calls f with the records behind a revision, up to and including last,
// in order, until f returns false.
func (r *logReader) scan(after, last uint64, f func(entry) bool) error {
	for i := max(r.segments.find(after+1), 0); i < len(r.segments) && r.segments[i].base <= last; i++ {
		if _, err := r.cursor(i); err != nil {
			return err
		}
		// A cursor of its own: f may read other records.
		c := r.txs[i].Bucket([]byte(bucketLog)).Cursor()
		for k, v := c.Seek(revisionKey(after + 1)); k != nil; k, v = c.Next() {
			revision := be.Uint64(k)
			if revision > last {
				return nil
			}
			e, err := parseRecord(revision, v)
			if err != nil {
				return corrupt(revision, err)
			}
			if !f(e) {
				return nil
			}
		}
	}
	return nil
}
