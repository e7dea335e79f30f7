package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/watch"
	"tidings.example/shared/safefile"
)

// Options say where the store is and how much it may use. Only Dir is required.
type Options struct {
	Dir       string
	Retention time.Duration // an event is deleted so long after its last write; 0: never
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time

	Rules        func() *rules.Set // retentions of their own, as they are now; nil: none
	History      time.Duration     // superseded versions and deletions stay readable so long; default: Retention
	MaxBytes     int64             // the oldest events go when the files take more; default 8 GiB or 80 % of what is free at start; -1: no limit
	MinFree      int64             // only deletions are accepted when the disk has less left; default 64 MiB; -1: none
	MaxClockStep time.Duration     // a greater step forward, found at start, delays expiry by as much; default 6h

	CompressAfter time.Duration // sealed log files whose events are older are compressed, by when they were observed; 0: none

	SegmentBytes  int64 // a log file is sealed at this size; default 64 MiB or a 64th of MaxBytes
	RingEntries   int   // changes that the watch hub shares; default 8192
	QueueLength   int   // writes that may wait; default commit.QueueWrites
	QueueBytes    int64 // and the bytes that they keep in memory; default commit.QueueBytes
	MemtableLimit int   // keys in memory before they are merged into the index; default 65536, or fewer if MaxBytes is less than 8 GiB

	Copy *Copy // set if the store is the copy of another one
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Registry = cmp.Or[prometheus.Registerer](o.Registry, prometheus.NewRegistry())
	o.MaxClockStep = cmp.Or(o.MaxClockStep, 6*time.Hour)
	o.MinFree = cmp.Or(o.MinFree, 64<<20)
	o.RingEntries = cmp.Or(o.RingEntries, 8192)
	o.QueueLength = cmp.Or(o.QueueLength, commit.QueueWrites)
	o.QueueBytes = cmp.Or(o.QueueBytes, commit.QueueBytes)
}

// DB is the bbolt engine of package store.
type DB struct {
	o           Options
	index       *index.Index
	log         *seglog.Log
	hub         *watch.Hub // what was published last, and its readers
	usage       *usage.Usage
	committer   *commit.Committer
	maintenance *maintenance.Maintenance
	read        *reader
	reads       *reads
	life        *commit.Life
	lock        *os.File // of the directory; nil if the caller of open holds it
}

var _ store.Store = (*DB)(nil)

// Holds reports whether there are files of a store in a directory.
func Holds(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".db" }), err
}

// Open opens the store in a directory, which it makes if need be. A file that
// is not the store's, is damaged or in use by another process is a *store.FileError.
func Open(o Options) (*DB, error) {
	if o.Dir == "" {
		return nil, errors.New("store: no data directory given")
	}
	if err := safefile.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("store directory: %w; name a directory that this user may write to, or one that can be made", err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	return open(o, lock)
}

// open opens the store in a directory that is locked. The lock is the store's, unless it is nil.
func open(o Options, lock *os.File) (*DB, error) {
	o.setDefaults()
	db := &DB{o: o, lock: lock}
	db.life = commit.NewLife(db.end)
	db.reads = newReads(o.Log, db.life)
	if err := db.start(); err != nil {
		return nil, errors.Join(err, db.closeFiles())
	}
	return db, nil
}

// start opens the files, and begins to write to them.
func (db *DB) start() error {
	o := &db.o
	if o.Copy != nil && o.Copy.Discard {
		if err := discard(o.Dir); err != nil {
			return fmt.Errorf("store directory: %w", err)
		}
	}
	if o.MaxBytes == 0 {
		var err error
		if o.MaxBytes, err = usage.DefaultMaxBytes(o.Dir); err != nil {
			return err
		}
	}
	o.SegmentBytes, o.MemtableLimit = cmp.Or(o.SegmentBytes, usage.SegmentBytes(o.MaxBytes)), cmp.Or(o.MemtableLimit, usage.MemtableKeys(o.MaxBytes))
	if err := db.recover(); err != nil {
		return err
	}
	if err := register(o.Registry, db); err != nil {
		return fmt.Errorf("store metrics: %w", err)
	}
	db.life.Running.Go(db.committer.Run)
	db.life.Running.Go(func() { db.committer.Merger.Run(db.life.Ctx.Done()) })
	return nil
}

// Revision implements [store.Store].
func (db *DB) Revision() uint64 { return db.hub.Published() }

// Close ends watches, commits the writes that wait, and closes the files.
func (db *DB) Close() error { return db.life.Close() }

func (db *DB) end() error {
	db.hub.Close()
	// What was merged need not be read from the log by the next start.
	err := db.committer.Merger.MergeAll()
	db.committer.Writer.Finish()
	return errors.Join(err, db.closeFiles())
}

func (db *DB) closeFiles() error {
	var errs []error
	if db.committer != nil {
		errs = append(errs, db.committer.Writer.Close())
	}
	if db.log != nil {
		errs = append(errs, db.log.Close())
	}
	if db.index != nil {
		errs = append(errs, db.index.Close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.Close())
	}
	return errors.Join(errs...)
}
