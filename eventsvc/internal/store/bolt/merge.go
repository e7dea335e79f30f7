package bolt

import (
	"context"
	"time"
)

// Flush implements [maintenance.Writer].
func (c *committer) Flush(ctx context.Context) error {
	if err := c.db.mergeFrozen(); err != nil {
		return err
	}
	if err := c.Do(ctx, func() error { c.db.freeze(); return nil }); err != nil {
		return err
	}
	return c.db.mergeFrozen()
}

// mergeLoop merges frozen memtables into the index.
func (db *DB) mergeLoop() {
	for {
		select {
		case <-db.merges:
		case <-db.stop:
			return
		}
		for db.mergeFrozen() != nil {
			// The memtable stays where it is: the log has everything, so that
			// nothing is lost meanwhile.
			if db.sleep(context.Background(), time.Second) != nil {
				return
			}
		}
	}
}

// mergeFrozen merges the frozen memtable, if there is one.
func (db *DB) mergeFrozen() error {
	if err := db.index.Merge(db.log.CompactRevision()); err != nil {
		db.o.Log.Error("the key index could not be written", "error", err)
		db.hurry()
		return err
	}
	select {
	case db.committer.merged <- struct{}{}:
	default:
	}
	return nil
}
