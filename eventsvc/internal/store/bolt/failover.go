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

// headFailed stops all writes after the head or the write-ahead log failed to commit,
// for another reason than room. The commit may be on the disk in part. Another sync
// would not tell: the kernel drops pages that it could not write, and reports the
// error once. [committer.Failover] replaces both files. It returns what writers are told.
func (c *committer) headFailed(cause error) error {
	if err := c.failed(); err != nil {
		return err
	}
	failure := fmt.Errorf("%w: %w", store.ErrUnwritable, cause)
	c.failure.Store(&failure)
	c.db.metrics.failedCommits.Inc()
	c.db.o.Log.Error("a log file could not be written; what was acknowledged is now copied to another", "file", c.db.log.Head().Path, "error", cause)
	c.db.hurry()
	return failure
}

// Failover implements [maintenance.Writer]. It brings writing back after a failure, if the
// disk lets it: it verifies what was acknowledged, record by record, and copies it to new
// files, which take the place of those that failed. Where a record is damaged or missing it
// must not go on: then reading does, and a person has to restore a backup.
func (c *committer) Failover(ctx context.Context) error {
	if c.failed() == nil {
		return nil
	}
	if err := c.Do(ctx, c.failoverHead); err != nil {
		return fmt.Errorf("store: the log cannot be written, and not be copied to another file: %w", err)
	}
	c.db.o.Log.Warn("the log is written again, to a new file")
	return nil
}

// failoverHead seals a copy of the head with what was acknowledged, and starts
// the next. The revisions of the commit that failed are in neither. The
// committer runs it.
func (c *committer) failoverHead() error {
	_ = c.awaitCheckpoint() // it has failed as well, or has not: what it has brought there is found
	failed := c.db.log.Head()
	c.revision = max(c.revision, failed.Base) // one at least is given away, so that the next head has another base
	tmp := failed.Path + ".tmp"
	if err := c.db.log.CopyAcknowledged(tmp, c.revision); err != nil {
		return errors.Join(err, disk.Remove(tmp))
	}
	if err := errors.Join(os.Rename(tmp, failed.Path), disk.SyncDir(c.db.o.Dir)); err != nil {
		return err
	}
	sealed, err := seglog.OpenSegment(failed.Path, false, 0)
	if err != nil {
		return err
	}
	if err := c.renewWAL(failed); err != nil {
		return errors.Join(err, sealed.Close())
	}
	next, err := c.nextHead(failed, c.db.log.CompactRevision())
	if err != nil {
		return errors.Join(err, sealed.Close())
	}
	c.db.log.ReplaceHead(sealed, next)
	c.db.log.SetPending(nil) // in this order: a reader that has one of them has seen it in the other
	if err := failed.Close(); err != nil {
		c.db.o.Log.Warn("a log file that had failed could not be closed", "file", failed.Path, "error", err)
	}
	c.failure.Store(nil)
	c.rotateAt = 0
	c.db.usage.Measure()
	return nil
}

// nextHead makes and opens the file for the revisions behind those that were
// given away, also to writes that failed.
func (c *committer) nextHead(before *seglog.Segment, compactRevision uint64) (*seglog.Segment, error) {
	base := c.revision + 1
	id, err := before.StoreID()
	if err != nil {
		return nil, err
	}
	format := boltfile.Version
	if c.wal != nil {
		format = seglog.FormatWAL
	}
	path := seglog.SegmentPath(c.db.o.Dir, base)
	next, err := c.db.log.NewHead(base, id, compactRevision, format)
	if err == nil {
		return next, nil
	}
	// It must not be the head at the next start: that would hide what is written
	// to the present one from now on.
	if there := errors.Join(disk.Remove(path), disk.SyncDir(c.db.o.Dir)); there != nil {
		err = errors.Join(err, there)
		_ = c.headFailed(err)
	}
	return nil, err
}

// renewWAL replaces a write-ahead log that may have failed. There
// is none until that has been done: its records are in the file that was copied.
func (c *committer) renewWAL(head *seglog.Segment) error {
	if c.wal == nil {
		return nil
	}
	id, err := head.StoreID()
	if err != nil {
		return err
	}
	log, err := wal.Create(c.wal.Path(), id, c.wal.Size())
	if err != nil {
		return err
	}
	if err := c.wal.Close(); err != nil {
		c.db.o.Log.Warn("a journal that may have failed could not be closed", "error", err)
	}
	c.wal = log
	return nil
}
