package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// headFailed ends writing to the head and the write-ahead log, of which one could not take
// its last commit, for another reason than room. What of it is on the disk nobody
// knows, and to sync again would not tell: the kernel drops what it could not
// write, and reports that once. So nothing is written to these files any more;
// [DB.salvage] makes others.
func (db *DB) headFailed(cause error) error {
	c := &db.committer
	if err := c.failed(); err != nil {
		return err
	}
	failure := fmt.Errorf("%w: %w", store.ErrUnwritable, cause)
	c.failure.Store(&failure)
	db.metrics.failedCommits.Inc()
	db.o.Log.Error("a log file could not be written; what was acknowledged is now copied to another", "file", db.log.Head().Path, "error", cause)
	db.hurry()
	return failure
}

// salvage brings writing back after a failure, if the disk lets it: what was
// acknowledged is verified, record by record, and copied to new files, which
// take the place of those that failed. It is tried again in every round of
// maintenance. Where a record is damaged or missing it must not go on: then
// reading does, and a person has to restore a backup.
func (db *DB) salvage(ctx context.Context) error {
	if db.index.Failed() { // first, because the committer may be waiting for a merge
		if err := db.rewriteIndex(ctx); err != nil {
			return fmt.Errorf("store: the index cannot be written, and not be copied to another file: %w", err)
		}
		db.o.Log.Warn("the index is written again, to a new file")
	}
	if db.committer.failed() != nil {
		if err := db.control(ctx, db.salvageHead); err != nil {
			return fmt.Errorf("store: the log cannot be written, and not be copied to another file: %w", err)
		}
		db.o.Log.Warn("the log is written again, to a new file")
	}
	return nil
}

// salvageHead seals a copy of the head with what was acknowledged, and starts
// the next. The revisions of the commit that failed are in neither. The
// committer runs it.
func (db *DB) salvageHead() error {
	c := &db.committer
	_ = db.awaitCheckpoint() // it has failed as well, or has not: what it has brought there is found
	failed := db.log.Head()
	c.revision = max(c.revision, failed.Base) // one at least is given away, so that the next head has another base
	tmp := failed.Path + ".tmp"
	if err := db.log.CopyAcknowledged(tmp, c.revision); err != nil {
		return errors.Join(err, disk.Remove(tmp))
	}
	if err := errors.Join(os.Rename(tmp, failed.Path), disk.SyncDir(db.o.Dir)); err != nil {
		return err
	}
	sealed, err := seglog.OpenSegment(failed.Path, false, 0)
	if err != nil {
		return err
	}
	if err := db.renewWAL(failed); err != nil {
		return errors.Join(err, sealed.Close())
	}
	next, err := db.nextHead(failed, db.log.CompactRevision())
	if err != nil {
		return errors.Join(err, sealed.Close())
	}
	db.log.ReplaceHead(sealed, next)
	db.log.SetPending(nil) // in this order: a reader that has one of them has seen it in the other
	if err := failed.Close(); err != nil {
		db.o.Log.Warn("a log file that had failed could not be closed", "file", failed.Path, "error", err)
	}
	c.failure.Store(nil)
	c.rollAt = 0
	db.measureFiles()
	return nil
}

// nextHead makes and opens the file for the revisions behind those that were
// given away, also to writes that failed.
func (db *DB) nextHead(before *seglog.Segment, horizon uint64) (*seglog.Segment, error) {
	base := db.committer.revision + 1
	id, err := before.StoreID()
	if err != nil {
		return nil, err
	}
	format := boltfile.Version
	if db.wal != nil {
		format = seglog.FormatWAL
	}
	path := seglog.SegmentPath(db.o.Dir, base)
	next, err := db.log.NewHead(base, id, horizon, format)
	if err == nil {
		return next, nil
	}
	// It must not be the head at the next start: that would hide what is written
	// to the present one from now on.
	if there := errors.Join(disk.Remove(path), disk.SyncDir(db.o.Dir)); there != nil {
		err = errors.Join(err, there)
		_ = db.headFailed(err)
	}
	return nil, err
}

// renewWAL replaces a write-ahead log that may have failed. There
// is none until that has been done: its records are in the file that was copied.
func (db *DB) renewWAL(head *seglog.Segment) error {
	if db.wal == nil {
		return nil
	}
	id, err := head.StoreID()
	if err != nil {
		return err
	}
	log, err := wal.Create(db.wal.Path(), id, db.wal.Size())
	if err != nil {
		return err
	}
	if err := db.wal.Close(); err != nil {
		db.o.Log.Warn("a journal that may have failed could not be closed", "error", err)
	}
	db.wal = log
	return nil
}
