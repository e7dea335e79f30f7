package seglog

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// A Log is the records of a store in order of their revisions: segments, of which the
// newest is the head, and pending records, which the head may not have yet.
type Log struct {
	dir       string
	mmap      int           // address space that a head reserves
	published func() uint64 // the newest revision that readers may see
	segments  atomic.Pointer[Held]
	pending   atomic.Pointer[[]wal.Record]
	unlinked  atomic.Int64 // bytes of segments that were replaced or removed, and that readers still hold
	closed    atomic.Bool

	tabled sync.Mutex
	recent []*Segment    // those with tables in memory, by when they were asked for
	reads  atomic.Uint64 // of tables in files

	compactRevision atomic.Uint64
}

// Open opens the segments of a directory, of which there may be none. published
// returns the newest revision that readers may see.
func Open(dir string, mmap int, published func() uint64) (*Log, error) {
	ss, err := openSegments(dir, mmap)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, mmap: mmap, published: published}
	l.setSegments(ss)
	l.SetPending(nil)
	return l, nil
}

// StoreIDOf returns the id of the store that the segments of a directory belong to.
func StoreIDOf(dir string) (id string, ok bool) {
	ss, err := openSegments(dir, 0)
	if err != nil || len(ss) == 0 {
		return "", false
	}
	_ = ss.close()
	return ss[0].StoreID, true
}

// NewHead makes and opens a segment that begins with a revision, of a store with or without a write-ahead log.
// [Log.Add] adds it.
func (l *Log) NewHead(base uint64, storeID string, compactRevision uint64, withWAL bool) (*Segment, error) {
	path := SegmentPath(l.dir, base)
	uses := uint64(walNone)
	if withWAL {
		uses = walUsed
	}
	err := boltfile.Install(path, segmentPage, buckets(), map[string][]byte{
		metaBase:         recordKey(base),
		boltfile.StoreID: []byte(storeID),
		metaCompact:      recordKey(compactRevision),
		metaCompressed:   recordKey(formLog),
		metaWAL:          noteOf(metaWAL, uses),
	})
	if err != nil {
		return nil, err
	}
	return OpenSegment(path, true, l.mmap)
}

// Held is the segments of a log at one moment, with a reference count: one for the log, as long as these are its
// present segments, and one for each reader. No file of them is closed before the last reference is released.
type Held struct {
	Segments
	*boltfile.Readers
}

// Acquire holds the present segments for a reader, until it calls Release. It reports false if the log is closed. A
// reader must not wait for its client meanwhile: a file that is unlinked keeps its room on the disk until it is closed.
func (l *Log) Acquire() (*Held, bool) {
	for !l.closed.Load() {
		if held := l.segments.Load(); held.Acquire() {
			return held, true
		}
	}
	return nil, false
}

// Segments returns the segments by rising base, for what is known of them in memory. Only who replaces and removes them
// may read the file of one without [Log.Acquire]. The slice must not be changed.
func (l *Log) Segments() Segments { return l.segments.Load().Segments }

// Head returns the newest segment.
func (l *Log) Head() *Segment { return l.Segments().Head() }

// Add adds a new head.
func (l *Log) Add(head *Segment) { l.setSegments(append(slices.Clip(l.Segments()), head)) }

func (l *Log) setSegments(ss Segments) {
	for _, s := range ss {
		s.readers.Acquire()
	}
	before := l.segments.Swap(&Held{ss, boltfile.NewReaders(func() error {
		for _, s := range ss {
			s.readers.Release()
		}
		return nil
	})})
	if before != nil {
		before.Release()
	}
}

// Replace puts a segment in the place of the one with its base, which the caller lets go.
func (l *Log) Replace(s *Segment) {
	ss := slices.Clone(l.Segments())
	ss[ss.find(s.Base)] = s
	l.setSegments(ss)
}

// RemoveFirst removes the oldest segment, which the caller lets go.
func (l *Log) RemoveFirst() { l.setSegments(l.Segments()[1:]) }

// LetGo releases a segment that the log does not have any more, and whose file is unlinked. The last reader closes it.
func (l *Log) LetGo(s *Segment) {
	var size int64
	_ = s.view(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	s.readers.Unlinked(size, &l.unlinked)
}

// UnlinkedBytes returns how many bytes of the disk the files take that were replaced or removed, and that readers still
// hold.
func (l *Log) UnlinkedBytes() int64 { return l.unlinked.Load() }

// Pending returns the pending records: all that the head does not have, and perhaps
// some that it has.
func (l *Log) Pending() []wal.Record { return *l.pending.Load() }

// SetPending replaces the pending records. A segment must have those that are left out,
// so that no reader misses them.
func (l *Log) SetPending(records []wal.Record) { l.pending.Store(&records) }

// CompactRevision returns the compact revision: the oldest one whose state can be read.
func (l *Log) CompactRevision() uint64 { return l.compactRevision.Load() }

// SetCompactRevision moves the compact revision for readers. The head must have saved it,
// or a greater one, before.
func (l *Log) SetCompactRevision(revision uint64) { l.compactRevision.Store(revision) }

// Published returns the newest revision that readers may see.
func (l *Log) Published() uint64 { return l.published() }

// Reads returns how many records were read from compressed segments.
func (l *Log) Reads() uint64 { return l.reads.Load() }

// Close ends the use of the log, and waits until the last reader has closed the segments.
func (l *Log) Close() error {
	l.closed.Store(true)
	held := l.segments.Load()
	held.Release()
	return held.close()
}
