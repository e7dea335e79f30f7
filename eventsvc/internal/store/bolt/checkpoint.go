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

const (
	walName  = "journal"
	walShare = 16 // of a segment's size
)

func (db *DB) walPath() string { return filepath.Join(db.o.Dir, walName) }

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
	db.wal, records, err = wal.Open(db.walPath(), id, last)
	return records, err
}

// startWAL begins the write-ahead log of a store that was closed. Without room for
// one, commits go to the head until the next start: the store can then still be read,
// and events be deleted.
func (db *DB) startWAL() (err error) {
	if db.wal != nil {
		return nil
	}
	head := db.log.Head()
	id, err := head.StoreID()
	if err == nil {
		db.wal, err = wal.Begin(db.walPath(), id, wal.SizeFor(db.o.SegmentBytes/walShare))
	}
	if err == nil {
		err = head.SetFormat(seglog.FormatWAL)
	}
	if disk.IsFull(err) {
		db.o.Log.Warn("there is no room for the journal: commits go without, and take longer, until the next start", "error", err)
		err = db.closeWAL()
	}
	return err
}

func (db *DB) closeWAL() (err error) {
	if db.wal != nil {
		err = db.wal.Close()
		db.wal = nil
	}
	return err
}

// beginCheckpoint continues in the other half of the write-ahead log, and starts a
// checkpoint of the current one beside the committer. It waits if the other half is
// not free yet.
func (db *DB) beginCheckpoint() error {
	if err := db.awaitCheckpoint(); err != nil {
		return err
	}
	if db.wal.BothInUse() {
		return db.checkpoint(nil)
	}
	db.wal.Rotate()
	c := &db.committer
	head, pending := db.log.Head(), db.log.Pending()
	c.checkpointing = len(pending)
	go func() { c.checkpointed <- db.metrics.checkpoint(func() error { return head.Checkpoint(pending) }) }()
	return nil
}

// awaitCheckpoint waits for a checkpoint that was begun.
func (db *DB) awaitCheckpoint() error {
	if db.committer.checkpointing == 0 {
		return nil
	}
	return db.endCheckpoint(<-db.committer.checkpointed)
}

// endCheckpoint releases the records that the head has now. If it had no room for
// them they stay in the write-ahead log, to be tried again when their half is needed.
func (db *DB) endCheckpoint(err error) error {
	c := &db.committer
	done := c.checkpointing
	c.checkpointing = 0
	head, pending := db.log.Head(), db.log.Pending()
	switch {
	case err == nil:
		left := slices.Clone(pending[done:])
		db.log.SetPending(left)
		db.wal.Checkpointed()
		return nil
	case head.Refused(err, pending):
		return nil
	}
	return db.headFailed(err)
}

// checkpoint brings all records of the write-ahead log, and more behind them, into
// the head in one commit, and empties the log. An error for another reason than room
// means that the head has failed.
func (db *DB) checkpoint(more []wal.Record) error {
	if err := errors.Join(db.awaitCheckpoint(), db.committer.failed()); err != nil {
		return err
	}
	head, pending := db.log.Head(), db.log.Pending()
	all := slices.Concat(pending, more)
	if len(all) == 0 {
		return nil
	}
	err := db.metrics.checkpoint(func() error { return head.Checkpoint(all) })
	if err != nil && head.Refused(err, all) {
		return err
	} else if err != nil {
		return db.headFailed(err)
	}
	head.AddBytes(wal.Bytes(more))
	db.log.SetPending(nil)
	if db.wal != nil {
		db.wal.Reset()
	}
	return nil
}
