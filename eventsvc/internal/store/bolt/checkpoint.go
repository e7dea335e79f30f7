package bolt

import (
	"errors"
	"path/filepath"
	"slices"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// A commit is acknowledged when the write-ahead log has it. A checkpoint brings the
// records of half of the log into the head, in one transaction, while the committer
// writes to the other half.

const walShare = 16 // of a segment's size

func (db *DB) walPath() string { return filepath.Join(db.o.Dir, wal.FileName) }

// openWAL opens the write-ahead log if the head was used with one, and returns its
// records with revisions greater than last.
func (db *DB) openWAL(head *seglog.Segment, id string, last uint64) (records []wal.Record, err error) {
	format, err := head.Format()
	if err != nil {
		return nil, &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	if format != seglog.FormatWAL {
		return nil, nil
	}
	db.committer.wal, records, err = wal.Open(db.walPath(), id, last)
	return records, err
}

// startWAL begins the write-ahead log of a store that was closed. Without room for
// one, commits go to the head until the next start: the store can then still be read,
// and events be deleted.
func (db *DB) startWAL() (err error) {
	if db.committer.wal != nil {
		return nil
	}
	head := db.log.Head()
	id, err := head.StoreID()
	if err == nil {
		db.committer.wal, err = wal.Begin(db.walPath(), id, wal.SizeFor(db.o.SegmentBytes/walShare))
	}
	if err == nil {
		err = head.SetFormat(seglog.FormatWAL)
	}
	if disk.IsFull(err) {
		db.o.Log.Warn("there is no room for the journal: commits go without, and take longer, until the next start", "error", err)
		err = db.committer.closeWAL()
	}
	return err
}

func (c *committer) closeWAL() (err error) {
	if c.wal != nil {
		err = c.wal.Close()
		c.wal = nil
	}
	return err
}

// beginCheckpoint continues in the other half of the write-ahead log, and starts a
// checkpoint of the current one beside the committer. It waits if the other half is
// not free yet.
func (c *committer) beginCheckpoint() error {
	if err := c.awaitCheckpoint(); err != nil {
		return err
	}
	if c.wal.BothInUse() {
		return c.checkpoint(nil)
	}
	c.wal.Rotate()
	head, pending := c.db.log.Head(), c.db.log.Pending()
	c.checkpointing = len(pending)
	go func() { c.checkpointed <- c.db.metrics.checkpoint(func() error { return head.Checkpoint(pending) }) }()
	return nil
}

// awaitCheckpoint waits for a checkpoint that was begun.
func (c *committer) awaitCheckpoint() error {
	if c.checkpointing == 0 {
		return nil
	}
	return c.endCheckpoint(<-c.checkpointed)
}

// endCheckpoint releases the records that the head has now. If it had no room for
// them they stay in the write-ahead log, to be tried again when their half is needed.
func (c *committer) endCheckpoint(err error) error {
	done := c.checkpointing
	c.checkpointing = 0
	head, pending := c.db.log.Head(), c.db.log.Pending()
	switch {
	case err == nil:
		left := slices.Clone(pending[done:])
		c.db.log.SetPending(left)
		c.wal.Checkpointed()
		return nil
	case head.Refused(err, pending):
		return nil
	}
	return c.headFailed(err)
}

// checkpoint brings all records of the write-ahead log, and more behind them, into
// the head in one commit, and empties the log. An error for another reason than room
// means that the head has failed.
func (c *committer) checkpoint(more []wal.Record) error {
	if err := errors.Join(c.awaitCheckpoint(), c.failed()); err != nil {
		return err
	}
	head, pending := c.db.log.Head(), c.db.log.Pending()
	all := slices.Concat(pending, more)
	if len(all) == 0 {
		return nil
	}
	err := c.db.metrics.checkpoint(func() error { return head.Checkpoint(all) })
	if err != nil && head.Refused(err, all) {
		return err
	} else if err != nil {
		return c.headFailed(err)
	}
	head.AddBytes(wal.Bytes(more))
	c.db.log.SetPending(nil)
	if c.wal != nil {
		c.wal.Reset()
	}
	return nil
}
