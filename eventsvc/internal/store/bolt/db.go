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
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/records"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/watch"
)

// Options say where the store is and how much it may use. Only Dir is required.
type Options struct {
	Dir       string
	Retention time.Duration // an event is deleted so long after its last write; 0: never
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time

	Rules        []maintenance.Rule // retentions of their own
	History      time.Duration      // superseded versions and deletions stay readable so long; default: Retention
	MaxBytes     int64              // the oldest events go when the files take more; default 8 GiB or 80 % of what is free at start; -1: no limit
	MaxEvents    int64              // the oldest events go when there are more; 0: no limit
	MinFree      int64              // only deletions are accepted when the disk has less left; default 64 MiB; -1: none
	MaxClockStep time.Duration      // a greater step forward, found at start, delays expiry by as much; default 6h

	SegmentBytes  int64 // a log file is sealed at this size; default 64 MiB
	RingEntries   int   // changes that the watch hub shares; default 8192
	RingBytes     int   // and the bytes that they keep in memory; default 16 MiB
	QueueLength   int   // writes that may wait; default 4096
	QueueBytes    int64 // and the bytes that they keep in memory; default 64 MiB
	MemtableLimit int   // keys in memory before they are merged into the index; default 65536
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
	setDefault(&o.MaxClockStep, 6*time.Hour)
	setDefault(&o.SegmentBytes, 64<<20)
	setDefault(&o.MinFree, 64<<20)
	setDefault(&o.RingEntries, 8192)
	setDefault(&o.RingBytes, 16<<20)
	setDefault(&o.QueueLength, 4096)
	setDefault(&o.QueueBytes, 64<<20)
	setDefault(&o.MemtableLimit, 65536)
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// DB is the bbolt engine of package store.
type DB struct {
	o         Options
	index     *index.Index
	log       *seglog.Log
	hub       *watch.Hub
	metrics   *metrics
	usage     *usage.Usage
	found     found
	remaining remaining

	committer   committer
	maintenance *maintenance.Maintenance
	merges      chan struct{} // told when a memtable was frozen
	stop        chan struct{} // closed when the store begins to close
	stopOnce    sync.Once
	committed   chan struct{} // closed when the committer has ended
	running     sync.WaitGroup
	closeErr    error
}

var _ store.Store = (*DB)(nil)

// Holds reports whether there are files of a store in a directory.
func Holds(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err == nil && len(files) == 0 {
		_, err = os.ReadDir(dir) // Glob is silent about a directory that cannot be read
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return len(files) > 0, err
}

// Open opens the store in a directory, which it makes if need be. A file that
// is not the store's, is damaged or in use by another process is a *store.FileError.
func Open(o Options) (*DB, error) {
	o.setDefaults()
	if o.Dir == "" {
		return nil, errors.New("store: no data directory given")
	}
	if err := disk.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("store directory: %w; name a directory that this user may write to, or one that can be made", err)
	}
	if o.MaxBytes == 0 {
		var err error
		if o.MaxBytes, err = usage.DefaultMaxBytes(o.Dir); err != nil {
			return nil, err
		}
	}
	db := &DB{o: o, merges: make(chan struct{}, 1), stop: make(chan struct{}), committed: make(chan struct{})}
	db.committer.db = db
	if err := db.openFiles(); err != nil {
		return nil, errors.Join(err, db.closeFiles())
	}
	var err error
	if db.metrics, err = newMetrics(db, o.Registry); err != nil {
		return nil, errors.Join(fmt.Errorf("store metrics: %w", err), db.closeFiles())
	}
	db.running.Go(db.committer.commitLoop)
	db.running.Go(db.mergeLoop)
	return db, nil
}

func (db *DB) openFiles() error {
	var err error
	if db.index, err = index.Open(db.o.Dir, db.newStoreID); err != nil {
		return err
	}
	if err := removeTemporary(db.o.Dir); err != nil {
		return err
	}
	// A process that was killed may have removed or replaced files, and not have
	// come to sync that.
	if err := disk.SyncDir(db.o.Dir); err != nil {
		return err
	}
	id, err := db.index.StoreID()
	if err != nil {
		return db.readError(err)
	}
	if db.log, err = seglog.Open(db.o.Dir, db.segmentMmap(), db.Revision); err != nil {
		return err
	}
	if len(db.log.Segments()) == 0 {
		if db.index.Merged() != 0 {
			return &store.FileError{Path: db.index.Path(), Reason: "the log files that it belongs to are missing", Fix: boltfile.FixRestore}
		}
		// Revision 1 is that of the empty store; the first write gets 2.
		if err := db.log.Init(2, string(id), 1); err != nil {
			return err
		}
	}
	if err := db.recover(string(id)); err != nil {
		return err
	}
	if err := db.startWAL(); err != nil {
		return err
	}
	db.usage.Measure()
	return nil
}

// newStoreID returns the id of the log files that are there without an index,
// or a random one.
func (db *DB) newStoreID() []byte {
	if id, ok := seglog.StoreIDOf(db.o.Dir); ok {
		return []byte(id)
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

// Revision implements [store.Store].
func (db *DB) Revision() uint64 { return db.hub.Published() }

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
		db.hub.Close()
		db.closeErr = errors.Join(db.mergeRest(), db.committer.emptyWAL(), db.closeFiles())
	})
	return db.closeErr
}

// mergeRest merges the memtables when the committer has ended, so that the
// next start need not read them from the log.
func (db *DB) mergeRest() error {
	if err := db.mergeFrozen(); err != nil {
		return err
	}
	db.freeze()
	return db.mergeFrozen()
}

// sources returns the log and its index.
func (db *DB) sources() records.Source { return records.Source{Index: db.index, Log: db.log} }

// emptyWAL brings the records of the write-ahead log into the head, so that the
// store can be opened without it. If that fails the next start reads the log.
func (c *committer) emptyWAL() error {
	if c.wal == nil {
		return nil
	}
	err := c.awaitCheckpoint()
	if c.failed() != nil {
		return nil
	}
	if err == nil {
		err = c.checkpoint(nil)
	}
	if err == nil {
		err = c.db.log.Head().SetFormat(boltfile.Version)
	}
	if err != nil {
		c.db.o.Log.Warn("the journal could not be emptied, and will be read at the next start", "error", err)
	}
	return nil
}

func (db *DB) closeFiles() error {
	var errs []error
	errs = append(errs, db.committer.closeWAL())
	if db.log != nil {
		errs = append(errs, db.log.Close())
	}
	if db.index != nil {
		errs = append(errs, db.index.Close())
	}
	return errors.Join(errs...)
}
