package bolt

import (
	"errors"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"

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
	walName = "journal"
	// formatWAL is the version of a head with a write-ahead log in use: a program
	// that does not know of the log must not overlook what it holds. A store that was
	// closed has none.
	formatWAL = 2
	walShare  = 16 // of a segment's size
)

func (db *DB) walPath() string { return filepath.Join(db.o.Dir, walName) }

// openWAL opens the write-ahead log if the head was used with one, and returns its
// records with revisions greater than last.
func (db *DB) openWAL(head *segment, id string, last uint64) (records []wal.Record, err error) {
	format, err := head.format()
	if err != nil {
		return nil, &store.FileError{Path: head.path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	if format != formatWAL {
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
	head := db.segments.Load().head()
	id, err := head.storeID()
	if err == nil {
		db.wal, err = wal.Begin(db.walPath(), id, wal.SizeFor(db.o.SegmentBytes/walShare))
	}
	if err == nil {
		err = head.setFormat(formatWAL)
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
	head, pending := db.segments.Load().head(), *db.pending.Load()
	c.checkpointing = len(pending)
	go func() { c.checkpointed <- db.metrics.checkpoint(func() error { return head.checkpoint(pending) }) }()
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
	head, pending := db.segments.Load().head(), *db.pending.Load()
	switch {
	case err == nil:
		left := slices.Clone(pending[done:])
		db.pending.Store(&left)
		db.wal.Checkpointed()
		return nil
	case head.refused(err, pending):
		return nil
	}
	return db.headFailed(err)
}

// refused reports that a head had no room for records and has none of them. It may
// have them although its commit failed: if the last sync of the commit did.
func (s *segment) refused(err error, records []wal.Record) bool {
	if !disk.IsFull(err) {
		return false
	}
	last, unread := s.lastRevision()
	return unread == nil && last < records[0].Revision
}

// checkpoint brings all records of the write-ahead log, and more behind them, into
// the head in one commit, and empties the log. An error for another reason than room
// means that the head has failed.
func (db *DB) checkpoint(more []wal.Record) error {
	if err := errors.Join(db.awaitCheckpoint(), db.committer.failed()); err != nil {
		return err
	}
	head, pending := db.segments.Load().head(), *db.pending.Load()
	all := slices.Concat(pending, more)
	if len(all) == 0 {
		return nil
	}
	err := db.metrics.checkpoint(func() error { return head.checkpoint(all) })
	if err != nil && head.refused(err, all) {
		return err
	} else if err != nil {
		return db.headFailed(err)
	}
	head.records.Add(wal.Bytes(more))
	db.pending.Store(new([]wal.Record))
	if db.wal != nil {
		db.wal.Reset()
	}
	return nil
}

// checkpoint brings records into the file of a head. It skips those that the head
// has, which would be counted twice.
func (s *segment) checkpoint(records []wal.Record) error {
	return s.update(func(tx *bbolt.Tx) error {
		return putRecords(tx, wal.After(records, lastIn(tx, 0)))
	})
}

// putRecords puts records into the file of a segment, and counts their minutes.
func putRecords(tx *bbolt.Tx, records []wal.Record) error {
	log := tx.Bucket([]byte(bucketLog))
	log.FillPercent = boltfile.FillPercent
	for _, l := range records {
		if err := log.Put(seglog.RevisionKey(l.Revision), l.Data); err != nil {
			return err
		}
	}
	counts := tally{}
	counts.addAfter(records, 0)
	return counts.save(tx.Bucket([]byte(bucketMinutes)))
}
