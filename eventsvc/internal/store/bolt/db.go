package bolt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
)

// Options say where the store is and how much it may use. Only Dir is required.
type Options struct {
	Dir       string
	Retention time.Duration // an event is deleted so long after its last write; 0: never
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time

	SegmentBytes  int64 // a log file is sealed at this size; default 256 MiB
	RingEntries   int   // changes that the watch hub shares; default 8192
	RingBytes     int   // and the bytes of their values; default 16 MiB
	QueueLength   int   // writes that may wait; default 4096
	QueueBytes    int64 // and the bytes of their values; default 64 MiB
	MemtableLimit int   // keys in memory before they are merged into the index; default 32768
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	setDefault(&o.SegmentBytes, 256<<20)
	setDefault(&o.RingEntries, 8192)
	setDefault(&o.RingBytes, 16<<20)
	setDefault(&o.QueueLength, 4096)
	setDefault(&o.QueueBytes, 64<<20)
	setDefault(&o.MemtableLimit, 32768)
}

func setDefault[T int | int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// DB is the bbolt engine of package store.
type DB struct {
	o        Options
	index    *index
	segments atomic.Pointer[segments]
	tables   atomic.Pointer[tables]
	hub      *hub
	horizon  atomic.Uint64 // states from this revision on can be read

	committer committer
	merges    chan struct{} // told when a memtable was frozen
	stop      chan struct{} // closed when the store begins to close
	stopOnce  sync.Once
	committed chan struct{} // closed when the committer has ended
	running   sync.WaitGroup
	closeErr  error
}

// tables are the memtables: one that the committer writes, and one that is
// being merged into the index.
type tables struct{ active, frozen *memtable }

var _ store.Store = (*DB)(nil)

// Open opens the store in a directory, which it makes if need be. A file that
// is not the store's, is damaged or in use by another process is a *FileError.
func Open(o Options) (*DB, error) {
	o.setDefaults()
	if o.Dir == "" {
		return nil, errors.New("store: no data directory given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store directory: %w", err)
	}
	db := &DB{o: o, merges: make(chan struct{}, 1), stop: make(chan struct{}), committed: make(chan struct{})}
	if err := db.openFiles(); err != nil {
		return nil, errors.Join(err, db.closeFiles())
	}
	db.running.Go(db.commitLoop)
	db.running.Go(db.mergeLoop)
	return db, nil
}

func (db *DB) openFiles() error {
	var err error
	if db.index, err = openIndex(db.o.Dir, db.newStoreID); err != nil {
		return err
	}
	if err := removeTemporary(db.o.Dir); err != nil {
		return err
	}
	id, err := db.index.storeID()
	if err != nil {
		return db.readError(err)
	}
	ss, err := openSegments(db.o.Dir, db.segmentMmap())
	if err != nil {
		return err
	}
	if len(ss) == 0 {
		if db.index.merged != 0 {
			return &FileError{db.index.path, "the log files that it belongs to are missing", fixRestore}
		}
		// Revision 1 is that of the empty store; the first write gets 2.
		if err := createSegment(db.o.Dir, 2, id, 1); err != nil {
			return err
		}
		if ss, err = openSegments(db.o.Dir, db.segmentMmap()); err != nil {
			return err
		}
	}
	db.segments.Store(&ss)
	return db.recover(string(id))
}

// newStoreID returns the id of the log files that are there without an index,
// or a random one.
func (db *DB) newStoreID() []byte {
	if ss, err := openSegments(db.o.Dir, db.segmentMmap()); err == nil && len(ss) > 0 {
		id, err := ss[0].storeID()
		_ = ss.close()
		if err == nil {
			return []byte(id)
		}
	}
	return []byte(rand.Text())
}

func removeTemporary(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil {
		return fmt.Errorf("store directory: %w", err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("store directory: %w", err)
		}
	}
	return nil
}

func (db *DB) segmentMmap() int { return int(2*db.o.SegmentBytes + 2*db.o.QueueBytes) }

// recover finds the newest revision and reads what the index does not know yet
// from the log.
func (db *DB) recover(id string) error {
	head := db.segments.Load().head()
	headID, err := head.storeID()
	if err != nil {
		return db.readError(err)
	}
	if headID != id {
		return &FileError{head.path, "it belongs to another store than " + db.index.path, fixRestore}
	}
	last, err := head.lastRevision()
	if err != nil {
		return &FileError{head.path, err.Error(), fixRestore}
	}
	if db.index.merged > last {
		return &FileError{head.path, fmt.Sprintf("it ends with revision %d, but the index knows revision %d: a newer log file is missing",
			last, db.index.merged), fixRestore}
	}
	horizon, err := head.meta(metaHorizon)
	if err != nil {
		return &FileError{head.path, err.Error(), fixRestore}
	}
	db.horizon.Store(horizon)
	db.hub = newHub(last, db.o.RingEntries, db.o.RingBytes)
	db.tables.Store(&tables{active: newMemtable()})
	db.committer.init(db.o, last)
	return db.replayIndex(last)
}

// replayIndex fills the memtable with what was written after the last merge.
func (db *DB) replayIndex(last uint64) error {
	for at := db.index.merged; at < last; {
		m := db.tables.Load().active
		err := db.readLog(func(r *logReader) error {
			return r.scan(at, last, func(e entry) bool {
				m.put(string(e.key), newPointer(e.revision, e.kind == deleted))
				at = e.revision
				db.committer.lastTime = e.time
				return m.size < db.o.MemtableLimit
			})
		})
		if err != nil {
			return db.readError(err)
		}
		if m.size >= db.o.MemtableLimit {
			if err := db.index.merge(m, db.horizon.Load()); err != nil {
				return err
			}
			db.tables.Store(&tables{active: newMemtable()})
		} else {
			break
		}
	}
	return nil
}

// mergeLoop merges frozen memtables into the index.
func (db *DB) mergeLoop() {
	for {
		select {
		case <-db.merges:
		case <-db.stop:
			return
		}
		t := db.tables.Load()
		if err := db.index.merge(t.frozen, db.horizon.Load()); err != nil {
			// The memtable stays where it is and is tried again: the log has
			// everything, so that nothing is lost meanwhile.
			db.o.Log.Error("the key index could not be written", "error", err)
			if !db.pause(time.Second) {
				return
			}
			db.requestMerge()
			continue
		}
		// The committer leaves the tables alone as long as one is frozen.
		db.tables.Store(&tables{active: t.active})
		select {
		case db.committer.merged <- struct{}{}:
		default:
		}
	}
}

func (db *DB) requestMerge() {
	select {
	case db.merges <- struct{}{}:
	default:
	}
}

// pause waits and reports false if the store closes meanwhile.
func (db *DB) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-db.stop:
		return false
	}
}

// Revision implements [store.Store].
func (db *DB) Revision() uint64 { return db.hub.published.Load() }

// Ready reports why the store cannot take writes, nil if it can.
func (db *DB) Ready(context.Context) error {
	if db.closed() {
		return store.ErrClosed
	}
	return db.committer.failed()
}

func (db *DB) closed() bool {
	select {
	case <-db.stop:
		return true
	default:
		return false
	}
}

// Close ends watches, commits the writes that wait, and closes the files.
func (db *DB) Close() error {
	db.stopOnce.Do(func() {
		close(db.stop)
		db.running.Wait()
		db.hub.close()
		db.closeErr = db.closeFiles()
	})
	return db.closeErr
}

func (db *DB) closeFiles() error {
	var errs []error
	if ss := db.segments.Load(); ss != nil {
		errs = append(errs, ss.close())
	}
	if db.index != nil {
		if t := db.tables.Load(); t != nil {
			for _, m := range []*memtable{t.frozen, t.active} {
				if m != nil && m.size > 0 {
					errs = append(errs, db.index.merge(m, db.horizon.Load()))
				}
			}
		}
		errs = append(errs, db.index.db.Close())
	}
	return errors.Join(errs...)
}
