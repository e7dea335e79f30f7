package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
)

// OpenTest is Open, with -compress for a store that compresses.
func OpenTest(o Options) (*DB, error) {
	if *storetest.Compress && o.CompressAfter == 0 {
		o.CompressAfter = time.Nanosecond
	}
	return Open(o)
}

// Sealed returns the number of sealed log files, and of those that are compressed.
func (db *DB) Sealed() (files, compressed int) {
	for _, c := range db.Compressed() {
		if files++; c {
			compressed++
		}
	}
	return files, compressed
}

// Compressed says of each sealed log file, in their order, whether it is compressed.
func (db *DB) Compressed() (all []bool) {
	ss := db.log.Segments()
	for _, s := range ss[:len(ss)-1] {
		all = append(all, s.Compressed)
	}
	return all
}

// Seal starts a new log file.
func (db *DB) Seal() error {
	return db.committer.Queue.Do(context.Background(), db.committer.Writer.Rotate)
}

// Fail has a file fail.
func (db *DB) Fail() { _ = db.committer.Writer.Health.Fail(db.log.Head().Path, syscall.EIO) }

// FailAfterCommit brings a record to the disk as a commit does of which then
// the sync fails: it is in the file, and its writer is told otherwise.
func (db *DB) FailAfterCommit(key store.Key, value []byte) (failed error) {
	err := db.committer.Queue.Do(context.Background(), func() error {
		w := db.committer.Writer
		w.Last++
		before, _, err := db.index.Newest(key.String())
		if err != nil {
			return err
		}
		e := seglog.Entry{Revision: w.Last, Kind: seglog.Modified, Previous: before.Revision(), Key: []byte(key.String()), NamespaceLen: len(key.Namespace), Value: value, Time: db.committer.Clock.Now()}
		record := seglog.AppendEntry(nil, &e)
		frame := wal.NewFrame(1, int64(len(record)))
		frame.Append(e.Revision, func(dst []byte) []byte { return append(dst, record...) })
		inHead, err := db.log.Head().LastRevision()
		if err != nil {
			return err
		}
		log, _, err := wal.Open(filepath.Join(db.o.Dir, wal.FileName), db.log.Head().StoreID, inHead)
		if err != nil {
			return err
		}
		err = errors.Join(log.Append(frame, db.Revision()), log.Close())
		failed = w.Health.Fail(filepath.Join(db.o.Dir, wal.FileName), syscall.EIO)
		return err
	})
	return errors.Join(failed, err)
}

// AwaitCheckpoint waits for a checkpoint that runs beside the committer.
func (db *DB) AwaitCheckpoint() error {
	return db.committer.Queue.Do(context.Background(), db.committer.Writer.AwaitCheckpoint)
}

// Checkpoint brings the records of the write-ahead log into the head.
func (db *DB) Checkpoint() error {
	return db.committer.Queue.Do(context.Background(), db.committer.Writer.Checkpoint)
}

// Dir is where the store is.
func (db *DB) Dir() string { return db.o.Dir }

// Segments are the paths of the files of the log.
func (db *DB) Segments() (paths []string) {
	for _, s := range db.log.Segments() {
		paths = append(paths, s.Path)
	}
	return paths
}
