package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

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
	db.o.Log.Error("a log file could not be written; what was acknowledged is now copied to another", "file", db.segments.Load().head().path, "error", cause)
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
	failed := db.segments.Load().head()
	c.revision = max(c.revision, failed.base) // one at least is given away, so that the next head has another base
	tmp := failed.path + ".tmp"
	if err := db.copyAcknowledged(failed, tmp); err != nil {
		return errors.Join(err, disk.Remove(tmp))
	}
	if err := errors.Join(os.Rename(tmp, failed.path), disk.SyncDir(db.o.Dir)); err != nil {
		return err
	}
	sealed, err := openSegment(failed.path, false, 0)
	if err != nil {
		return err
	}
	if err := db.renewWAL(failed); err != nil {
		return errors.Join(err, sealed.close())
	}
	next, err := db.nextHead(failed, db.horizon.Load())
	if err != nil {
		return errors.Join(err, sealed.close())
	}
	ss := *db.segments.Load()
	swapped := append(ss[:len(ss)-1:len(ss)-1], sealed, next)
	db.segments.Store(&swapped)
	db.pending.Store(new([]wal.Record)) // in this order: a reader that has one of them has seen it in the other
	if err := failed.close(); err != nil {
		db.o.Log.Warn("a log file that had failed could not be closed", "file", failed.path, "error", err)
	}
	c.failure.Store(nil)
	c.rollAt = 0
	db.measureFiles()
	return nil
}

// nextHead makes and opens the file for the revisions behind those that were
// given away, also to writes that failed.
func (db *DB) nextHead(before *segment, horizon uint64) (*segment, error) {
	base := db.committer.revision + 1
	id, err := before.storeID()
	if err != nil {
		return nil, err
	}
	format := boltfile.Version
	if db.wal != nil {
		format = formatWAL
	}
	path := segmentPath(db.o.Dir, base)
	var next *segment
	if err = createSegment(db.o.Dir, base, []byte(id), horizon, format); err == nil {
		next, err = openSegment(path, true, db.segmentMmap())
	}
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
func (db *DB) renewWAL(head *segment) error {
	if db.wal == nil {
		return nil
	}
	id, err := head.storeID()
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

// copyAcknowledged copies the records of the head and the write-ahead log up to the
// published revision to a sealed file, and verifies each, and that none is missing.
func (db *DB) copyAcknowledged(head *segment, path string) error {
	id, err := head.storeID()
	if err != nil {
		return err
	}
	to, err := createSegmentFile(path, head.base, []byte(id))
	if err != nil {
		return err
	}
	last := db.Revision()
	copied := int64(0)
	pending := *db.pending.Load()
	err = head.view(func(from *bbolt.Tx) error {
		pending = wal.After(pending, lastIn(from, 0)) // a commit that was said to have failed has brought the others here
		keep := func(k, v []byte) ([]byte, []byte, error) {
			revision, err := seglog.RevisionOf(k)
			if err != nil {
				return nil, nil, err
			}
			if revision > last {
				return nil, nil, nil
			}
			copied += int64(len(v))
			_, err = seglog.ParseRecord(revision, v)
			return k, v, err
		}
		ctx := context.Background() // bounded by the size of one file
		return errors.Join(boltfile.CopyBucket(ctx, from, to, bucketLog, keep), boltfile.CopyBucket(ctx, from, to, bucketMinutes, nil))
	})
	if err == nil && len(pending) > 0 {
		copied += wal.Bytes(pending)
		for _, l := range pending {
			_, damage := seglog.ParseRecord(l.Revision, l.Data)
			err = errors.Join(err, damage)
		}
		err = errors.Join(err, to.Update(func(tx *bbolt.Tx) error { return putRecords(tx, pending) }))
	}
	if err == nil && copied != head.records.Load() {
		err = fmt.Errorf("%d bytes of records were acknowledged, but %d are in the file", head.records.Load(), copied)
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(boltfile.Meta))
			return errors.Join(
				meta.Put([]byte(metaEnd), seglog.RevisionKey(db.committer.revision)),
				meta.Put([]byte(metaBytes), seglog.RevisionKey(uint64(copied))),
				meta.Put([]byte(metaHorizon), seglog.RevisionKey(db.horizon.Load())))
		})
	}
	return errors.Join(err, to.Sync(), to.Close())
}
