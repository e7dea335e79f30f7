package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// FailAfterCommit brings a record to the disk as a commit does of which then
// the sync fails: it is in the file, and its writer is told otherwise.
func (db *DB) FailAfterCommit(key store.Key, value []byte) (failed error) {
	err := db.committer.Queue.Do(context.Background(), func() error {
		w := db.committer.Writer
		w.Last++
		e := seglog.Entry{Revision: w.Last, Kind: seglog.Modified, Key: []byte(key.String()), NamespaceLen: len(key.Namespace), Value: value, Time: db.committer.Clock.Now()}
		record := seglog.AppendRecord(nil, &e)
		frame := wal.NewFrame(1, int64(len(record)))
		frame.Append(e.Revision, func(dst []byte) []byte { return append(dst, record...) })
		id, err := db.log.Head().StoreID()
		if err != nil {
			return err
		}
		inHead, err := db.log.Head().LastRevision()
		if err != nil {
			return err
		}
		log, _, err := wal.Open(filepath.Join(db.o.Dir, wal.FileName), id, inHead)
		if err != nil {
			return err
		}
		err = errors.Join(log.Append(frame, db.Revision()), log.Close())
		failed = w.Fail(errors.New("input/output error"))
		return err
	})
	return errors.Join(failed, err)
}

// Checkpoint brings the records of the write-ahead log into the head.
func (db *DB) Checkpoint() error {
	return db.committer.Queue.Do(context.Background(), db.committer.Writer.Checkpoint)
}

// Bumped is where revisions go on after a known one.
func Bumped(known uint64, now time.Time) uint64 { return bumped(known, now) }

// Dir is where the store is.
func (db *DB) Dir() string { return db.o.Dir }
