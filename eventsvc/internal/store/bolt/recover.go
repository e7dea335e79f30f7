package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/clock"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/eventsvc/internal/watch"
)

// recover finds the newest revision, and reads what the index does not know
// yet from the log.
func (db *DB) recover(id string) error {
	head := db.log.Head()
	headID, err := head.StoreID()
	if err != nil {
		return &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	if headID != id {
		return &store.FileError{Path: head.Path, Reason: "it belongs to another store than " + db.index.Path(), Fix: boltfile.FixRestore}
	}
	last, err := head.LastRevision()
	if err != nil {
		return &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	pending, err := db.openWAL(head, id, last)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		db.log.SetPending(pending)
		head.AddBytes(wal.Bytes(pending))
		last = pending[len(pending)-1].Revision
	}
	if merged := db.index.Merged(); merged > last {
		return &store.FileError{Path: head.Path, Reason: fmt.Sprintf("it ends with revision %d, but the index knows revision %d: a newer log file is missing",
			last, merged), Fix: boltfile.FixRestore}
	}
	compactRevision, err := head.SavedCompactRevision()
	if err != nil {
		return &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	db.log.SetCompactRevision(compactRevision)
	db.hub = watch.NewHub(last, db.o.RingEntries, db.o.RingBytes)
	db.committer.init(db.o, last)
	limits := usage.Limits{MaxBytes: db.o.MaxBytes, MinFree: db.o.MinFree, OverLimit: db.hurry}
	if db.usage, err = usage.New(db.o.Dir, limits, db.sources()); err != nil {
		return &store.FileError{Path: db.index.Path(), Reason: err.Error(), Fix: boltfile.FixRebuild}
	}
	if err := db.setClock(); err != nil {
		return err
	}
	db.maintenance = maintenance.New(maintenance.Config{
		Policy:  maintenance.Policy{Retention: db.o.Retention, Rules: db.o.Rules, History: db.o.History, MaxEvents: db.o.MaxEvents},
		Records: db.sources(), Usage: db.usage, Clock: db.committer.clock, Writer: &db.committer, ReadError: db.readError,
		Delete: func(ctx context.Context, seen []store.Seen) error {
			_, _, err := db.DeleteMany(ctx, seen)
			return err
		},
		SegmentBytes: db.o.SegmentBytes, Log: db.o.Log,
	})
	return db.replayIndex(last)
}

// setClock starts the clock from the time of the last write.
func (db *DB) setClock() error {
	var written time.Time
	err := db.log.View(func(log *seglog.Reader) error {
		e, err := log.Newest()
		written = e.Time
		return err
	})
	switch {
	case isCorrupt(err): // only reads of that record fail; the store opens
		_ = db.readError(err)
	case err != nil && !errors.Is(err, seglog.ErrGone):
		return db.readError(err)
	}
	var step time.Duration
	db.committer.clock, step = clock.New(db.o.Now, written, db.o.MaxClockStep)
	switch {
	case step < 0:
		db.o.Log.Warn("the system clock is behind the last write; times go on from there until it has caught up", "behind", -step)
	case step > 0:
		db.o.Log.Warn("the system clock is far ahead of the last write; nothing expires for a while, in case it is wrong",
			"ahead", step, "while", db.o.MaxClockStep)
	}
	return nil
}

// replayIndex fills the memtable with what was written after the last merge. A
// damaged record does not end it: its event, as far as its name can be read, is
// one that cannot be, and not what it was before.
func (db *DB) replayIndex(last uint64) error {
	damaged := 0
	for at := db.index.Merged(); at < last; {
		from := at
		err := db.sources().View(func(v index.View, log *seglog.Reader) error {
			var failed error
			each := func(e seglog.Entry) bool {
				failed = db.replay(log, v, &e)
				at = e.Revision
				return failed == nil && db.index.Size() < db.o.MemtableLimit
			}
			err := log.ScanAll(from, last, each, func(revision uint64, record []byte) bool {
				damaged++
				db.o.Log.Error("a record of the log is damaged", "revision", revision)
				at = revision
				e, err := seglog.SplitRecord(revision, record)
				return err != nil || !e.Named() || each(e)
			})
			return errors.Join(err, failed)
		})
		if err != nil {
			return db.readError(err)
		}
		if db.index.Size() < db.o.MemtableLimit {
			break
		}
		db.freeze()
		if err := db.mergeFrozen(); err != nil {
			return err
		}
	}
	if damaged > 0 {
		db.o.Log.Error("damaged records were passed over; restore a backup, or see with check which events they are of", "records", damaged)
	}
	return nil
}

// replay puts one record of the log into the memtable and the count of events.
func (db *DB) replay(log *seglog.Reader, v index.View, e *seglog.Entry) error {
	p, known, err := v.Newest(string(e.Key))
	if err != nil {
		return err
	}
	if known && p.Revision() >= e.Revision {
		// A merge that was cut short had it already.
		p, known = index.NewPointer(e.Previous, e.Kind == seglog.Created), e.Previous != 0
	}
	if known && !p.Deletion() {
		before, err := log.Peek(p.Revision())
		if err == nil {
			db.usage.AddLive(-1, -before.Size())
		} else if !errors.Is(err, seglog.ErrGone) {
			return err
		}
	}
	if e.Kind != seglog.Deleted {
		db.usage.AddLive(1, e.Size())
	}
	db.index.Put(string(e.Key), index.NewPointer(e.Revision, e.Kind == seglog.Deleted), e.Attributes)
	return nil
}

func isCorrupt(err error) bool {
	ce := new(store.CorruptError)
	return errors.As(err, &ce)
}
