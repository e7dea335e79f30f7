package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/watch"
	"tidings.example/shared/safefile"
)

// ringBytes is how many bytes of changes the watch hub keeps in memory.
const ringBytes = 16 << 20

// recover opens the files of a store, and brings what is in memory to the state of the
// newest durable write. What it has opened is the DB's when it fails as well.
func (db *DB) recover() (err error) {
	o := &db.o
	if db.index, err = index.Open(o.Dir, func() []byte { return newStoreID(o.Dir) }); err != nil {
		return err
	}
	if err := removeTemporary(o.Dir); err != nil {
		return err
	}
	if db.log, err = seglog.Open(o.Dir, int(2*o.SegmentBytes+2*o.QueueBytes), db.Revision); err != nil {
		return err
	}
	if err := checkLog(db.log, db.index); err != nil {
		return err
	}
	source := seglog.IndexedLog{Index: db.index, Log: db.log}
	hurry := func() { db.maintenance.Hurry() }
	if db.usage, err = usage.New(o.Dir, usage.Limits{MaxBytes: o.MaxBytes, MinFree: o.MinFree, OverLimit: hurry}, source); err != nil {
		reason := err.Error()
		if damage, ok := errors.AsType[*store.CorruptError](err); ok { // of the file, and not of an event
			reason = damage.Reason
		}
		return &store.FileError{Path: db.index.Path(), Reason: reason, Fix: boltfile.FixRebuild}
	}
	db.read = newReader(readerSource{
		IndexedLog: source, Closed: db.life.Closed, Failed: db.reads.failed, Events: db.usage.Namespaces.At, Kept: func() time.Time { return db.maintenance.Kept() },
	})
	health := commit.NewHealth(o.Log)
	db.index.Unwritable = func(cause error) { _ = health.Fail(db.index.Path(), cause) }
	w, err := commit.OpenWriter(commit.WriterConfig{
		Dir: o.Dir, StoreID: db.index.StoreID, SegmentBytes: o.SegmentBytes, Records: db.log,
		Health: health, Rotated: db.usage.Measure, Log: o.Log,
	})
	if err != nil {
		return err
	}
	db.hub = watch.NewHub(w.Last, o.RingEntries, ringBytes)
	db.committer = commit.New(commit.Config{
		Queue: commit.NewQueue(o.QueueLength, o.QueueBytes), Writer: w, Hub: db.hub, Usage: db.usage, Stop: db.life.Ctx.Done(), ReadError: db.reads.failed,
		Merger: commit.NewMerger(commit.Merger{Index: db.index, Records: db.log, Usage: db.usage, MaxKeys: o.MemtableLimit, Unmerged: hurry, Log: o.Log}),
	})
	if merged := db.index.Merged(); merged > w.Last {
		return &store.FileError{Path: db.log.Head().Path, Reason: fmt.Sprintf("it ends with revision %d, but the index knows revision %d: a newer log file is missing",
			w.Last, merged), Fix: boltfile.FixRestore}
	}
	if db.committer.Clock, err = newClock(o, db.log, db.reads.failed); err != nil {
		return err
	}
	db.maintenance = maintenance.New(maintenance.Config{
		Policy:  maintenance.Policy{Retention: o.Retention, Rules: o.Rules, History: o.History, CompressAfter: o.CompressAfter},
		Records: source, Usage: db.usage, Clock: db.committer.Clock, Writer: w, Do: db.committer.Queue.Do, Flush: db.committer.Flush, ReadError: db.reads.failed,
		Delete: o.delete(db), Expires: o.expires,
		SegmentBytes: o.SegmentBytes, Log: o.Log,
	})
	replay := &replay{IndexedLog: source, db: db}
	if err = replay.run(w.Last); err == nil {
		err = w.Start()
	}
	db.usage.Measure()
	return err
}

// newStoreID returns the id of the log files that are there without an index,
// or a random one.
func newStoreID(dir string) []byte {
	if id, ok := seglog.StoreIDOf(dir); ok {
		return []byte(id)
	}
	return []byte(rand.Text())
}

// removeTemporary removes files that a process has left that was killed. It syncs the
// directory, because that process may also have removed or replaced files.
func removeTemporary(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil {
		return fmt.Errorf("store directory: %w", err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("store directory: %w", err)
		}
	}
	return safefile.Sync(dir)
}

// checkLog checks that the head belongs to the store of the index, and makes a new log
// where there is none. It sets the compact revision.
func checkLog(log *seglog.Log, x *index.Index) error {
	if len(log.Segments()) == 0 {
		if x.Merged() != 0 {
			return &store.FileError{Path: x.Path(), Reason: "the log files that it belongs to are missing", Fix: boltfile.FixRestore}
		}
		// Revision 1 stands for the empty store; the first write gets 2.
		head, err := log.NewHead(2, x.StoreID, 1, false)
		if err != nil {
			return err
		}
		log.Add(head)
	}
	head := log.Head()
	compactRevision, err := head.SavedCompactRevision()
	if head.StoreID != x.StoreID {
		err = errors.New("it belongs to another store than " + x.Path())
	}
	if err != nil {
		return &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	log.SetCompactRevision(compactRevision)
	return nil
}

// newClock returns a clock that goes on from the last write.
func newClock(o *Options, log *seglog.Log, readError func(error) error) (*commit.Clock, error) {
	var written time.Time
	err := log.View(func(r *seglog.Reader) error {
		e, err := r.Newest()
		written = e.Time
		return err
	})
	switch {
	case errors.As(err, new(*store.CorruptError)): // only reads of that record fail; the store opens
		_ = readError(err)
	case err != nil && !errors.Is(err, seglog.ErrGone):
		return nil, readError(err)
	}
	c, step := commit.NewClock(o.Now, written, o.MaxClockStep)
	switch {
	case step < 0:
		o.Log.Warn("the system clock is behind the last write; times go on from there until it has caught up", "behind", -step)
	case step > 0:
		o.Log.Warn("the system clock is far ahead of the last write; nothing expires for a while, in case it is wrong",
			"ahead", step, "while", o.MaxClockStep)
	}
	return c, nil
}

// A replay puts what was written after the last merge into the index, and counts it.
// A damaged record does not end it: its event, as far as its name can be read, is one that
// cannot be read, and not what it was before.
type replay struct {
	seglog.IndexedLog
	db       *DB
	at       uint64 // the record that was looked at last
	damaged  int
	full     bool // the disk has no room for a merge: the memtable takes everything
	repeated bool // the index had some of it already, from a merge that was cut short: the counts of these revisions are not known
}

func (r *replay) run(last uint64) error {
	merger := r.db.committer.Merger
	for r.at = r.Index.Merged(); r.at < last; {
		if err := r.View(func(v index.View, log *seglog.Reader) error { return r.some(v, log, last) }); err != nil {
			return r.db.reads.failed(err)
		}
		if r.full || !merger.Full() {
			break
		}
		if err := merger.MergeAll(); disk.IsFull(err) { // everything can be read nevertheless
			r.full = true
		} else if err != nil {
			return err
		}
	}
	if r.damaged > 0 && r.db.o.Copy != nil { // the other store has these records as they were
		return &store.CorruptError{Revision: r.at, Reason: fmt.Sprintf("%d records that were not merged into the index are damaged", r.damaged)}
	}
	if r.damaged > 0 {
		r.db.o.Log.Error("damaged records were passed over; restore a backup, or see with check which events they are of", "records", r.damaged)
	}
	if !r.repeated {
		return nil
	}
	return r.Index.View(func(v index.View) error { _, err := r.db.usage.Namespaces.Count(v, last); return err })
}

// some goes on until the memtable is full.
func (r *replay) some(v index.View, log *seglog.Reader, last uint64) error {
	var failed error
	each := func(e seglog.Entry) bool {
		failed = r.put(v, log, &e)
		r.at = e.Revision
		return failed == nil && (r.full || !r.db.committer.Merger.Full())
	}
	err := log.Scan(r.at, last, each, func(e seglog.Entry) bool {
		r.damaged++
		r.db.o.Log.Error("a record of the log is damaged", "revision", e.Revision)
		r.at = e.Revision
		return !e.Named() || each(e)
	})
	return errors.Join(err, failed)
}

// put puts one record of the log into the memtable and the count of events.
func (r *replay) put(v index.View, log *seglog.Reader, e *seglog.Entry) error {
	p, known, err := v.Newest(string(e.Key))
	if err != nil {
		return err
	}
	counted := known && !p.Deletion() // by its namespace
	if known && p.Revision() >= e.Revision {
		// A merge that was cut short had it already.
		r.repeated = true
		p, known = index.NewPointer(e.Previous, e.Kind == seglog.Created), e.Previous != 0
	}
	existed, exists := known && !p.Deletion(), e.Kind != seglog.Deleted
	if existed {
		before, err := log.Get(p.Revision())
		if before.Key != nil { // it takes room, damaged or not
			r.db.usage.AddBytes(-before.Size())
		} else if !errors.Is(err, seglog.ErrGone) { // or it was not counted
			return err
		}
	}
	if exists {
		r.db.usage.AddBytes(e.Size())
	}
	if namespace := string(e.Key[:e.NamespaceLen]); exists && !counted {
		r.db.usage.Namespaces.Add(namespace, e.Revision, 1)
	} else if counted && !exists {
		r.db.usage.Namespaces.Add(namespace, e.Revision, -1)
	}
	r.Index.Put(string(e.Key), index.NewPointer(e.Revision, !exists))
	return nil
}
