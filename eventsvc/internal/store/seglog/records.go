package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
)

// The buckets of records. A file has the second one if it is compressed. The first one has what is in no column then.
const (
	bucketLog     = "log"
	bucketColumns = "columns"
)

// recordKey returns the key under which a record is stored.
func recordKey(revision uint64) []byte { return binary.BigEndian.AppendUint64(nil, revision) }

// revisionOf parses such a key. On a damaged page it may be any bytes.
func revisionOf(k []byte) (uint64, error) {
	if len(k) != 8 {
		return 0, fmt.Errorf("%q is no key of the log: %w", k, boltfile.ErrChecksum)
	}
	return binary.BigEndian.Uint64(k), nil
}

// fileRecords are those of a file.
type fileRecords struct {
	log   *bbolt.Bucket
	parts []tablePart // of a compressed segment
}

// recordsIn returns the records of the file of a segment.
func recordsIn(s *Segment, tx *bbolt.Tx) fileRecords {
	r := fileRecords{log: tx.Bucket([]byte(bucketLog))}
	if s.Compressed {
		r.parts = s.parts(tx)
	}
	return r
}

// Last returns the greatest revision, or none if there is no record.
func (r fileRecords) Last(none uint64) uint64 {
	last := lastKey(r.log, none)
	if n := len(r.parts); n > 0 {
		last = max(last, r.parts[n-1].last)
	}
	return last
}

// lastKey returns the greatest revision of a bucket, or none if it is empty.
func lastKey(records *bbolt.Bucket, none uint64) uint64 {
	if k, _ := records.Cursor().Last(); len(k) == 8 {
		return binary.BigEndian.Uint64(k)
	}
	return none
}

// A lostRange is revisions of which nobody knows any more which ones have records.
type lostRange struct {
	First, Last uint64
	Err         error
}

func (l *lostRange) Error() string {
	return fmt.Sprintf("the records of revisions %d to %d: %v", l.First, l.Last, l.Err)
}

// Unwrap returns why the records cannot be read.
func (l *lostRange) Unwrap() error { return l.Err }

// passLost passes over records that cannot be read.
func passLost(*lostRange) (more bool, err error) { return true, nil }

// A gap stands in a file that was written again for records that could not be read. Its key is the last revision, and
// its value the first one and a CRC32C.
const gapBytes = 8 + checksumBytes

var errGap = fmt.Errorf("it was damaged when its file was written again: %w", boltfile.ErrChecksum)

func gapOf(first, last uint64) []byte {
	b := recordKey(first)
	return be.AppendUint32(b, boltfile.Checksum(last, b))
}

// lostIn returns the revisions of a gap. It reports false if a value is a record.
func lostIn(last uint64, value []byte) (*lostRange, bool) {
	if len(value) != gapBytes {
		return nil, false
	}
	first := be.Uint64(value)
	if first > last || be.Uint32(value[8:]) != boltfile.Checksum(last, value[:8]) {
		first = last
	}
	return &lostRange{first, last, errGap}, true
}

// Each calls f with the records from a revision on, and lost with the revisions of which records are lost, in order,
// until one of them returns false or an error. It returns what they have returned last. A record is valid until f
// returns, and has no bytes if it is damaged.
func (r fileRecords) Each(from uint64, f func(revision uint64, record []byte) (more bool, err error), lost func(*lostRange) (more bool, err error)) (more bool, err error) {
	return r.each(from, func(revision uint64, record recordBytes) (bool, error) {
		return f(revision, record.whole(revision))
	}, lost)
}

// each is Each that makes no checksums for records that have none, and says what is damaged.
func (r fileRecords) each(from uint64, f func(uint64, recordBytes) (more bool, err error), lost func(*lostRange) (more bool, err error)) (more bool, err error) {
	w := recordWalk{from: from, cursor: r.log.Cursor(), record: f, lost: lost}
	w.key, w.value = w.cursor.Seek(recordKey(from))
	for i := range r.parts {
		p := &r.parts[i]
		switch {
		case p.last < from:
			continue
		case p.table != nil:
			more, err = w.rows(p)
		default:
			more, err = w.gone(&lostRange{p.first, p.last, p.err})
		}
		if err != nil || !more {
			return false, err
		}
	}
	return w.others(math.MaxUint64)
}

// A recordWalk goes over the records of a file from a revision on. Its methods report false at the end.
type recordWalk struct {
	from       uint64
	cursor     *bbolt.Cursor // of the log
	key, value []byte        // at it
	record     func(uint64, recordBytes) (more bool, err error)
	lost       func(*lostRange) (more bool, err error)
	maker      recordMaker
	room       []byte
}

// others goes over the records of the log before a revision.
func (w *recordWalk) others(before uint64) (more bool, err error) {
	for ; w.key != nil; w.key, w.value = w.cursor.Next() {
		revision, err := revisionOf(w.key)
		if err != nil {
			return false, err
		}
		if revision >= before {
			break
		}
		if l, ok := lostIn(revision, w.value); ok {
			l.First = max(l.First, w.from)
			more, err = w.lost(l)
		} else {
			more, err = w.record(revision, recordBytes{bytes: w.value})
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// gone goes over revisions of which the records are lost.
func (w *recordWalk) gone(l *lostRange) (more bool, err error) {
	l.First = max(l.First, w.from)
	if more, err := w.others(l.First); err != nil || !more {
		return false, err
	}
	return w.lost(l)
}

// rows goes over the rows of a table.
func (w *recordWalk) rows(p *tablePart) (more bool, err error) {
	records := p.table.Records()
	row, damage := records.Search(w.from)
	if damage != nil {
		row = 0
	}
	for before := p.first - 1; row < p.table.Rows(); row++ {
		revision, damage := records.Revision(row)
		if damage != nil {
			next := min((row/columns.ChunkRows+1)*columns.ChunkRows, p.table.Rows())
			l := lostRange{before + 1, p.last, damage}
			if next < p.table.Rows() {
				if after, err := records.Revision(next); err == nil {
					l.Last = after - 1
				} else {
					l.Last = before // with the next ones
				}
			}
			if row = next - 1; l.Last < max(l.First, w.from) {
				continue
			}
			if more, err := w.gone(&l); err != nil || !more {
				return false, err
			}
			before = l.Last
			continue
		}
		if before = revision; revision < w.from {
			continue
		}
		if more, err := w.others(revision); err != nil || !more {
			return false, err
		}
		record, ok := w.maker.record(records, row, w.room[:0])
		if !ok { // it is in the log, or not held
			continue
		}
		if more, err := w.record(revision, record); err != nil || !more {
			return false, err
		}
		w.room = record.bytes[:0]
	}
	return true, nil
}

// errColumnsGone reports that a compressed segment has no columns.
var errColumnsGone = fmt.Errorf("the columns are not there: %w", boltfile.ErrChecksum)

// errVersion reports a version of which no record can be made.
var errVersion = errors.New("what the columns say of it makes no sense")

// A recordMaker makes records of the rows of tables.
type recordMaker struct{ value []byte }

// record appends the record of a row, without its checksum. It reports false if the columns do not have it.
func (m *recordMaker) record(records *columns.Records, row int, dst []byte) (recordBytes, bool) {
	v, ok, err := records.Version(row, m.value[:0])
	if err == nil && !ok {
		return recordBytes{}, false
	}
	if v.Stored != nil {
		return recordBytes{bytes: append(dst, v.Stored...), verified: true}, true
	}
	if err == nil {
		m.value = v.Value
		if dst, ok = appendVersion(dst, &v); ok {
			return recordBytes{bytes: dst, verified: true}, true
		}
		err = errVersion
	}
	return recordBytes{damage: err}, true
}
