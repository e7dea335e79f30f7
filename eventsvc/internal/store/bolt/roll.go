package bolt

import (
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// makeRoomInMemory freezes a memtable that has grown to its limit. While the
// one before it is still being merged it may grow on, to four times the limit;
// then writes wait.
func (db *DB) makeRoomInMemory() {
	for db.index.Size() >= db.o.MemtableLimit && !db.freeze() {
		if db.index.Size() < 4*db.o.MemtableLimit {
			return
		}
		select {
		case <-db.committer.merged:
		case <-db.stop:
			return
		}
	}
}

// freeze hands the active memtable over to be merged, unless another is being
// merged still.
func (db *DB) freeze() bool {
	if !db.index.Freeze(index.Live{Events: db.live.events.Load(), Bytes: db.live.bytes.Load()}) {
		return false
	}
	select {
	case db.merges <- struct{}{}:
	default:
	}
	return true
}

// rollIfDue seals a head that has grown to its limit and starts the next.
func (db *DB) rollIfDue() {
	c := &db.committer
	head := db.log.Head()
	if head.Bytes() < max(db.o.SegmentBytes, c.rollAt) || c.failed() != nil {
		return
	}
	if err := db.roll(head); c.failed() != nil {
		return // and that was said
	} else if err != nil {
		db.o.Log.Error("a new log file could not be started; the old one goes on", "error", err)
		c.rollAt = head.Bytes() + db.o.SegmentBytes/16
		return
	}
	c.rollAt = 0
}

// roll seals the head and starts the next. The committer runs it.
func (db *DB) roll(head *seglog.Segment) error { return db.rollTo(head, db.log.CompactRevision()) }

// rollTo is roll with the horizon that the next head notes.
func (db *DB) rollTo(head *seglog.Segment, horizon uint64) error {
	last := db.committer.revision
	if err := db.checkpoint(nil); err != nil {
		return err
	}
	err := head.Seal(last)
	if err != nil && !disk.IsFull(err) {
		return db.headFailed(err)
	} else if err != nil {
		return err
	}
	next, err := db.nextHead(head, horizon)
	if err != nil {
		return err
	}
	db.log.Add(next)
	// Not before: as long as this is the head, the write-ahead log is needed with it.
	if err := head.SetFormat(boltfile.Version); err != nil {
		db.o.Log.Warn("a sealed log file cannot be read by a release that knows of no journal", "file", head.Path, "error", err)
	}
	if err := head.Shrink(); err != nil {
		db.o.Log.Warn("a sealed log file takes more room than it needs", "error", err)
	}
	db.measureFiles()
	return nil
}
