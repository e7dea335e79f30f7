package bolt

import (
	"context"
	"fmt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
)

// makeRoomInMemory freezes a memtable that has grown to its limit. While the
// one before it is still being merged it may grow on, to four times the limit;
// then writes wait.
func (c *committer) makeRoomInMemory() {
	for c.db.index.Size() >= c.db.o.MemtableLimit && !c.db.freeze() {
		if c.db.index.Size() < 4*c.db.o.MemtableLimit {
			return
		}
		select {
		case <-c.merged:
		case <-c.db.stop:
			return
		}
	}
}

// freeze hands the active memtable over to be merged, unless another is being
// merged still.
func (db *DB) freeze() bool {
	if !db.index.Freeze(db.usage.Live()) {
		return false
	}
	select {
	case db.merges <- struct{}{}:
	default:
	}
	return true
}

// rotateIfDue seals a head that has grown to its limit and starts the next.
func (c *committer) rotateIfDue() {
	head := c.db.log.Head()
	if head.Bytes() < max(c.db.o.SegmentBytes, c.rotateAt) || c.failed() != nil {
		return
	}
	if err := c.rotate(head); c.failed() != nil {
		return // and that was said
	} else if err != nil {
		c.db.o.Log.Error("a new log file could not be started; the old one goes on", "error", err)
		c.rotateAt = head.Bytes() + c.db.o.SegmentBytes/16
		return
	}
	c.rotateAt = 0
}

// rotate seals the head and starts the next. The committer runs it.
func (c *committer) rotate(head *seglog.Segment) error {
	return c.rotateTo(head, c.db.log.CompactRevision())
}

// rotateTo is rotate with the compact revision that the next head saves.
func (c *committer) rotateTo(head *seglog.Segment, compactRevision uint64) error {
	last := c.revision
	if err := c.checkpoint(nil); err != nil {
		return err
	}
	err := head.Seal(last)
	if err != nil && !disk.IsFull(err) {
		return c.headFailed(err)
	} else if err != nil {
		return err
	}
	next, err := c.nextHead(head, compactRevision)
	if err != nil {
		return err
	}
	c.db.log.Add(next)
	// Not before: as long as this is the head, the write-ahead log is needed with it.
	if err := head.SetFormat(boltfile.Version); err != nil {
		c.db.o.Log.Warn("a sealed log file cannot be read by a release that knows of no journal", "file", head.Path, "error", err)
	}
	if err := head.Shrink(); err != nil {
		c.db.o.Log.Warn("a sealed log file takes more room than it needs", "error", err)
	}
	c.db.usage.Measure()
	return nil
}

// Rotate implements [maintenance.Writer].
func (c *committer) Rotate(ctx context.Context, due func(head *seglog.Segment) bool) error {
	return c.Do(ctx, func() error {
		head := c.db.log.Head()
		if !due(head) {
			return nil
		}
		return c.rotate(head)
	})
}

// MoveCompactRevision implements [maintenance.Writer].
func (c *committer) MoveCompactRevision(ctx context.Context, revision uint64) error {
	return c.Do(ctx, func() error {
		if err := c.failed(); err != nil {
			return err
		}
		if revision <= c.db.log.CompactRevision() {
			return nil // a bump came in between: the compact revision never moves back
		}
		head := c.db.log.Head()
		err := head.SaveCompactRevision(revision)
		if err != nil && !disk.IsFull(err) {
			return c.headFailed(err)
		} else if err != nil {
			return fmt.Errorf("store: moving the compact revision: %w", err)
		}
		c.db.log.SetCompactRevision(revision)
		return nil
	})
}
