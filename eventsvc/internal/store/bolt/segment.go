package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltcheck"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/seglog"
)

// be is the byte order of everything on disk.
var be = binary.BigEndian

// A segment is one file of the log. All but the newest, the head, are sealed:
// opened read-only and never written again, only unlinked or replaced whole.
type segment struct {
	base uint64 // its records have this revision or a greater one
	path string
	db   *bbolt.DB
	// views are those of readers that are done.
	views views
	// records is the length of all records. The committer counts it for the head.
	records atomic.Int64
	// rewritten: a compaction has left records out.
	rewritten bool
	// counted: what is dead in it was found by reading it, since the start. The
	// account is exact from then on. Maintenance alone uses this and the next two.
	counted bool
	// retained is the length of dead deletions that the last rewrite has kept.
	retained int64
	// damaged: it has a record that may be an older version of any event.
	damaged bool
}

// The buckets of a segment, and the entries of its meta bucket.
const (
	bucketLog     = "log"     // revision → record
	bucketMinutes = "minutes" // minute and kind of event → how many were written

	metaBase    = "base"    // its records have this revision or a greater one
	metaHorizon = "horizon" // states from this revision on can be read
	metaEnd     = "end"     // once sealed: the last revision before the next segment
	metaBytes   = "bytes"   // once sealed: length of its records
)

const (
	segmentPattern = "log-*.db"
	// Large pages waste less behind records of a few kilobytes, at the price
	// of the bytes that a commit of one small record writes.
	segmentPage = 16 << 10
)

func segmentPath(dir string, base uint64) string {
	return filepath.Join(dir, fmt.Sprintf("log-%020d.db", base))
}

// createSegmentFile makes a segment that only grows by commits without a sync
// of their own.
func createSegmentFile(path string, base uint64, storeID []byte) (*bbolt.DB, error) {
	db, err := boltfile.Create(path, segmentPage, []string{bucketLog, bucketMinutes}, map[string][]byte{metaBase: seglog.RevisionKey(base), boltfile.StoreID: storeID})
	if err == nil {
		db.NoSync = true
	}
	return db, err
}

func createSegment(dir string, base uint64, storeID []byte, horizon uint64, format int) error {
	return boltfile.Install(segmentPath(dir, base), segmentPage, []string{bucketLog, bucketMinutes}, map[string][]byte{
		metaBase:         seglog.RevisionKey(base),
		boltfile.StoreID: storeID,
		metaHorizon:      seglog.RevisionKey(horizon),
		boltfile.Format:  boltfile.FormatText(format),
	})
}

// openSegment opens a segment, the head for writing. The head reserves address
// space for more than it will ever hold: growing the mapping would have to
// wait for all readers.
func openSegment(path string, head bool, mmap int) (*segment, error) {
	db, err := boltfile.Open(path, boltfile.Options{ReadOnly: !head, Mmap: mmap, Newest: formatWAL})
	if err != nil {
		return nil, err
	}
	s := &segment{path: path, db: db}
	s.base, err = s.meta(metaBase)
	if err != nil || s.base == 0 {
		_ = db.Close()
		return nil, &store.FileError{Path: path, Reason: "it does not say which revisions it holds", Fix: boltfile.FixRestore}
	}
	horizon, err := s.meta(metaHorizon)
	if err = errors.Join(err, s.measure(head)); err != nil {
		_ = db.Close()
		return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	s.rewritten = horizon == 0 && !head // createSegmentFile notes none
	return s, nil
}

// measure finds the length of all records, by counting where nobody has noted it.
func (s *segment) measure(head bool) error {
	if n, err := s.meta(metaBytes); err != nil || n > 0 && !head {
		s.records.Store(int64(n))
		return err
	}
	return s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketLog)).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			s.records.Add(int64(len(v)))
		}
		return nil
	})
}

// meta reads a number of the meta bucket, 0 if it is not there.
func (s *segment) meta(name string) (n uint64, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte(boltfile.Meta)).Get([]byte(name)); len(v) == 8 {
			n = be.Uint64(v)
		}
		return nil
	})
	return n, err
}

// format returns the version of the segment's format, which openSegment has checked.
func (s *segment) format() (version int, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		version, err = boltfile.ParseFormat(tx.Bucket([]byte(boltfile.Meta)).Get([]byte(boltfile.Format)))
		return err
	})
	return version, err
}

func (s *segment) setFormat(version int) error {
	return s.update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(boltfile.Format), boltfile.FormatText(version))
	})
}

func (s *segment) storeID() (id string, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		id = string(tx.Bucket([]byte(boltfile.Meta)).Get([]byte(boltfile.StoreID)))
		return nil
	})
	return id, err
}

// lastRevision returns the greatest revision in the segment, base-1 if it is empty.
func (s *segment) lastRevision() (last uint64, err error) {
	last = s.base - 1
	err = s.view(func(tx *bbolt.Tx) error {
		last = lastIn(tx, last)
		return nil
	})
	return last, err
}

// lastIn returns the greatest revision in the file of a segment, or what is
// given where there is none.
func lastIn(tx *bbolt.Tx, none uint64) uint64 {
	if k, _ := tx.Bucket([]byte(bucketLog)).Cursor().Last(); len(k) == 8 {
		return be.Uint64(k)
	}
	return none
}

func (s *segment) view(f func(*bbolt.Tx) error) error {
	return boltcheck.View(s.db, f)
}

// update runs f in a write transaction and commits it. No view is kept beyond.
func (s *segment) update(f func(*bbolt.Tx) error) error {
	s.views.shut()
	defer s.views.reopen()
	return boltcheck.Guard(func() error { return s.db.Update(f) })
}

// close waits for those who read.
func (s *segment) close() error {
	s.views.shut()
	return s.db.Close()
}

// segments is a list of open segments by rising base. It is never changed, a
// new one replaces it.
type segments []*segment

// find returns the place of the segment that holds a revision, -1 if it is
// older than all.
func (ss segments) find(revision uint64) int {
	return sort.Search(len(ss), func(i int) bool { return ss[i].base > revision }) - 1
}

func (ss segments) head() *segment { return ss[len(ss)-1] }

// openSegments opens every segment of a directory and checks that they belong
// together and that none is missing between them.
func openSegments(dir string, mmap int) (ss segments, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, segmentPattern))
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
		s, err := openSegment(path, i == len(paths)-1, mmap)
		if err != nil {
			return ss, err
		}
		ss = append(ss, s)
	}
	return ss, ss.check()
}

func (ss segments) check() error {
	for i := range len(ss) - 1 {
		this, next := ss[i], ss[i+1]
		end, err := this.meta(metaEnd)
		if err != nil {
			return &store.FileError{Path: this.path, Reason: err.Error(), Fix: boltfile.FixRestore}
		}
		// A head that was to be sealed when the process was killed has no end
		// yet; its last record tells as much.
		if end == 0 {
			if end, err = this.lastRevision(); err != nil {
				return &store.FileError{Path: this.path, Reason: err.Error(), Fix: boltfile.FixRestore}
			}
		}
		if end+1 != next.base {
			return &store.FileError{Path: next.path, Reason: fmt.Sprintf("it starts with revision %d, but %s ends with %d: a file between them is missing",
				next.base, this.path, end), Fix: boltfile.FixRestore}
		}
		a, errA := this.storeID()
		b, errB := next.storeID()
		if errA != nil || errB != nil || a != b {
			return &store.FileError{Path: next.path, Reason: "it belongs to another store than " + this.path, Fix: boltfile.FixRestore}
		}
	}
	return nil
}

func (ss segments) close() error {
	var first error
	for _, s := range ss {
		if err := s.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
