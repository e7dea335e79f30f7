package seglog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// be is the byte order of everything on disk.
var be = binary.BigEndian

// A Segment is one file of the log. All but the newest, the head, are sealed:
// opened read-only and never written again, only unlinked or replaced whole.
type Segment struct {
	Base       uint64 // its records have this revision or a greater one; never changes
	Path       string // never changes
	StoreID    string // equal in all files of a store; never changes
	NeedsWAL   bool   // when it was opened: the write-ahead log may have records that it lacks
	db         *bbolt.DB
	readers    *boltfile.Readers // the first one is the log, or who has opened it
	bytes      atomic.Int64      // length of all records; of a head, with the pending ones
	rewritten  bool              // Rewrite has left records out
	Compressed bool              // its records are in columns; never changes
	file       uint64            // number of the file among those that were opened
	final      atomic.Bool       // nothing is written to the file any more

	tables  segmentTables
	columns segmentParts
	seen    atomic.Pointer[spans] // when the rows of a sealed segment were observed; nil: not known yet
}

// The buckets of a segment, and the entries of its meta bucket.
const (
	metaBase       = "base"       // its records have this revision or a greater one
	metaCompact    = "compact"    // the compact revision: states from here on can be read
	metaEnd        = "end"        // once sealed: the last revision before the next segment
	metaBytes      = "bytes"      // once sealed: length of its records
	metaWAL        = "wal"        // of a head: whether the write-ahead log may have records that it lacks
	metaCompressed = "compressed" // its records are in columns
	metaColumns    = "columns"    // the last revision of the last table of columns
	metaThrough    = "through"    // the columns have what all records up to this revision report
	metaLost       = "lost"       // of a file that was written again: the first revision of which something is damaged
)

// What metaCompressed notes.
const (
	formColumns = 1 // the records are in columns
	formLog     = 2 // they are in the log
)

// buckets returns the buckets of a new segment.
func buckets() []string {
	return []string{bucketLog, bucketNext, bucketColumns}
}

// What metaWAL notes.
const (
	walUsed = 1
	walNone = 2
)

// compressedPage is the page size of a compressed segment. A piece of a column takes whole pages, and small ones waste
// less behind it.
const compressedPage = 1 << 10

// lastFile numbers the segments that this process has opened.
var lastFile atomic.Uint64

// SegmentPattern matches the names of segments.
const SegmentPattern = "log-*.db"

// segmentPage is the page size of other segments. Large pages waste less behind records of a
// few kilobytes, at the price of the bytes that a commit of one small record writes.
const segmentPage = 16 << 10

// SegmentPath returns the path of the segment with a base.
func SegmentPath(dir string, base uint64) string {
	return filepath.Join(dir, fmt.Sprintf("log-%020d.db", base))
}

// OpenSegment opens a segment, the head for writing. The head reserves address
// space for more than it will ever hold: growing the mapping would have to
// wait for all readers.
func OpenSegment(path string, head bool, mmap int) (*Segment, error) {
	db, err := boltfile.Open(path, boltfile.Options{ReadOnly: !head, Mmap: mmap})
	if err != nil {
		return nil, err
	}
	s := &Segment{Path: path, db: db, file: lastFile.Add(1)}
	s.readers = boltfile.NewReaders(s.close)
	if err := s.view(func(tx *bbolt.Tx) error { return s.load(tx, head) }); err != nil {
		_ = db.Close()
		return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	return s, nil
}

// load reads what the file says of itself.
func (s *Segment) load(tx *bbolt.Tx, head bool) error {
	meta := tx.Bucket([]byte(boltfile.Meta))
	form := metaIn(tx, metaCompressed)
	s.Compressed = form == formColumns
	uses := noted(tx, metaWAL)
	s.NeedsWAL = uses == walUsed
	s.Base, s.StoreID = metaIn(tx, metaBase), string(meta.Get([]byte(boltfile.StoreID)))
	switch {
	case s.Base == 0:
		return errors.New("it does not say which revisions it holds")
	case form != formColumns && form != formLog:
		return errors.New("it does not say whether its records are in columns")
	case noted(tx, metaThrough) == damagedNote, head && noted(tx, metaColumns) == damagedNote:
		return fmt.Errorf("what it says of its columns: %w", boltfile.ErrChecksum)
	case head && uses != walUsed && uses != walNone:
		return errors.New("it does not say whether the write-ahead log is needed")
	case s.Compressed && head:
		return errors.New("it is a compressed log file, and the newer ones are missing")
	}
	if err := s.measure(tx, head); err != nil {
		return err
	}
	s.rewritten = metaIn(tx, metaCompact) == 0 && !head // Rewrite leaves it out
	s.final.Store(!head)
	return nil
}

// measure sets the length of all records: from the meta bucket if it is there, else by
// reading all.
func (s *Segment) measure(tx *bbolt.Tx, head bool) error {
	if n := metaIn(tx, metaBytes); n > 0 && !head {
		s.bytes.Store(int64(n))
		return nil
	}
	_, err := recordsIn(s, tx).Each(0, func(_ uint64, record []byte) (bool, error) {
		s.bytes.Add(int64(len(record)))
		return true, nil
	}, passLost)
	return err
}

// meta reads a number of the meta bucket, 0 if it is not there.
func (s *Segment) meta(name string) (n uint64, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		n = metaIn(tx, name)
		return nil
	})
	return n, err
}

func metaIn(tx *bbolt.Tx, name string) uint64 {
	if v := tx.Bucket([]byte(boltfile.Meta)).Get([]byte(name)); len(v) == 8 {
		return be.Uint64(v)
	}
	return 0
}

// setMeta puts a number into the meta bucket.
func setMeta(tx *bbolt.Tx, name string, n uint64) error {
	return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(name), recordKey(n))
}

// NoteWAL notes in a head whether the write-ahead log may have records that it lacks. If it may, a start without that
// log is refused.
func (s *Segment) NoteWAL(uses bool) error {
	what := uint64(walNone)
	if uses {
		what = walUsed
	}
	return s.update(func(tx *bbolt.Tx) error { return note(tx, metaWAL, what) })
}

// LastRevision returns the greatest revision in the segment, base-1 if it is empty.
func (s *Segment) LastRevision() (last uint64, err error) {
	last = s.Base - 1
	err = s.view(func(tx *bbolt.Tx) error {
		last = recordsIn(s, tx).Last(last)
		return nil
	})
	return last, err
}

// NewestTime returns when the newest record of a segment was written, or the second in which the last of its events was
// observed if that is earlier, as of imported events. It reports false if there is no record, and returns no time if
// the newest one is damaged.
func NewestTime(s *Segment) (at time.Time, ok bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		records := recordsIn(s, tx)
		last := records.Last(0)
		if ok = last > 0; ok {
			_, err = records.Each(last, func(revision uint64, record []byte) (bool, error) {
				if e, damage := parseEntry(revision, record); damage == nil {
					at = e.Time
				}
				return true, nil
			}, passLost)
		}
		if seen, any, damage := s.lastObserved(tx); damage == nil && any && seen.Before(at) {
			at = seen
		}
		return err
	})
	return at, ok, err
}

// LastObserved returns the second of the last observation of a sealed segment, by versions that are held and by those
// that are not. It reports false if there is none.
func (s *Segment) LastObserved() (at time.Time, any bool, err error) {
	err = s.view(func(tx *bbolt.Tx) (err error) {
		at, any, err = s.lastObserved(tx)
		return err
	})
	return at, any, err
}

func (s *Segment) lastObserved(tx *bbolt.Tx) (at time.Time, any bool, err error) {
	for _, p := range s.parts(tx) {
		if p.table == nil {
			return at, any, p.err
		}
		if _, last := p.table.Times(); !any || time.Unix(last, 0).After(at) {
			at, any = time.Unix(last, 0), true
		}
	}
	return at, any, nil
}

func (s *Segment) view(f func(*bbolt.Tx) error) error {
	return boltfile.View(s.db, f)
}

// update runs f in a write transaction and commits it.
func (s *Segment) update(f func(*bbolt.Tx) error) error {
	return boltfile.Update(s.db, f)
}

// Close releases a segment, and waits until its last reader has closed the file.
func (s *Segment) Close() error {
	s.readers.Release()
	return s.readers.Wait()
}

func (s *Segment) close() error { return s.db.Close() }

// Segments is a list of open segments by rising base. It is never changed, but replaced.
type Segments []*Segment

// find returns the position of the segment that holds a revision, -1 if it is
// older than all.
func (ss Segments) find(revision uint64) int {
	return sort.Search(len(ss), func(i int) bool { return ss[i].Base > revision }) - 1
}

// Head returns the newest segment.
func (ss Segments) Head() *Segment { return ss[len(ss)-1] }

// openSegments opens every segment of a directory and checks that they belong
// together and that none is missing between them.
func openSegments(dir string, mmap int) (ss Segments, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, SegmentPattern))
	if err != nil {
		return nil, fmt.Errorf("store directory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = ss.close()
		}
	}()
	slices.Sort(paths)
	for i, path := range paths {
		s, err := OpenSegment(path, i == len(paths)-1, mmap)
		if err != nil {
			return ss, err
		}
		if ss = append(ss, s); path != SegmentPath(dir, s.Base) {
			return ss, &store.FileError{Path: path, Reason: fmt.Sprintf("it says that it begins with revision %d, and its name says another one", s.Base), Fix: boltfile.FixRestore}
		}
	}
	return ss, ss.check()
}

func (ss Segments) check() error {
	for i := range len(ss) - 1 {
		this, next := ss[i], ss[i+1]
		end, err := this.meta(metaEnd)
		if err == nil && end == 0 { // The process was killed before it sealed this.
			end, err = this.LastRevision()
		}
		if err != nil {
			return &store.FileError{Path: this.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
		}
		if end+1 != next.Base {
			return &store.FileError{Path: next.Path, Reason: fmt.Sprintf("it starts with revision %d, but %s ends with %d: a file between them is missing",
				next.Base, this.Path, end), Fix: boltfile.FixRestore}
		}
		if this.StoreID != next.StoreID {
			return &store.FileError{Path: next.Path, Reason: "it belongs to another store than " + this.Path, Fix: boltfile.FixRestore}
		}
	}
	return nil
}

func (ss Segments) close() error {
	var first error
	for _, s := range ss {
		first = cmp.Or(first, s.Close())
	}
	return first
}

// SavedCompactRevision returns the compact revision that a head has saved.
func (s *Segment) SavedCompactRevision() (uint64, error) { return s.meta(metaCompact) }

// SaveCompactRevision makes a compact revision durable.
func (s *Segment) SaveCompactRevision(revision uint64) error {
	return s.update(func(tx *bbolt.Tx) error { return setMeta(tx, metaCompact, revision) })
}

// Stats returns what bbolt counts of the file.
func (s *Segment) Stats() bbolt.Stats { return s.db.Stats() }

// Check reads the pages and the entries of the file. The pages of a head change while it
// is read, and were checked when it was opened.
func (s *Segment) Check(head bool) error {
	return s.view(func(tx *bbolt.Tx) error {
		if head {
			return boltfile.Walk(tx, nil)
		}
		return errors.Join(boltfile.Pages(tx, s.Path, true), boltfile.Walk(tx, nil))
	})
}

// CopyTo copies a head to a file that can be used without the write-ahead log, and
// returns the last revision in it.
func (s *Segment) CopyTo(path string) (last uint64, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		last = recordsIn(s, tx).Last(s.Base - 1)
		return tx.CopyFile(path, 0o600)
	})
	if err == nil {
		err = withoutWAL(path)
	}
	return last, err
}

func withoutWAL(path string) error {
	db, err := boltfile.Open(path, boltfile.Options{})
	if err != nil {
		return err
	}
	return errors.Join((&Segment{db: db}).NoteWAL(false), db.Close())
}

// Shrink truncates a head that was sealed, by the space that bbolt has reserved at its end. Nothing is written to it
// any more.
func (s *Segment) Shrink() error {
	s.final.Store(true)
	return s.view(func(tx *bbolt.Tx) error {
		return os.Truncate(s.Path, tx.Size()+segmentPage)
	})
}

// Refused reports that a Checkpoint failed with err for lack of disk space, and that the
// head has none of the records. If only the last sync has failed, the head may have them.
func (s *Segment) Refused(err error, records []wal.Record) bool {
	if !disk.IsFull(err) {
		return false
	}
	last, unread := s.LastRevision()
	return unread == nil && last < records[0].Revision
}

// Bytes returns the bytes of all records, of a head with those that are pending.
func (s *Segment) Bytes() int64 { return s.bytes.Load() }

// AddBytes adds the length of records that become pending.
func (s *Segment) AddBytes(bytes int64) { s.bytes.Add(bytes) }
