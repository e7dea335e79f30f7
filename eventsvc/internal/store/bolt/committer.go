package bolt

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/clock"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/eventsvc/internal/watch"
)

// Bounds of one commit.
const (
	batchWrites = 1024
	batchBytes  = 8 << 20
)

// The committer alone gives out revisions and brings records to the disk, but for
// a checkpoint, which it begins. It takes what is waiting into one frame of the write-ahead log,
// so that many writes share one sync and none waits for a timer. Its fields are
// used by its goroutine alone, unless they say otherwise.
type committer struct {
	db       *DB
	clock    *clock.Clock
	wal      *wal.Log // nil if there was no room for one
	queue    chan *write
	controls chan func()
	queued   atomic.Int64 // bytes of the drafts that wait; any goroutine

	revision      uint64                // the last that was given to a write
	rotateAt      int64                 // size of the head at which to try again to seal it
	merged        chan struct{}         // a memtable was merged; the merge loop's
	checkpointing int                   // so many records are being brought into the head
	checkpointed  chan error            // the result of that
	failure       atomic.Pointer[error] // why nothing can be written until failover has made another file; any goroutine

	key     []byte // of the write at hand
	batch   []*write
	frame   *wal.Frame // the records of the current batch
	changes []watch.Change
	growth  struct{ events, bytes int64 } // of what exists, by the current batch
	newest  map[string]index.Pointer      // of the events that the current batch has written
}

func (c *committer) init(o Options, revision uint64) {
	c.queue = make(chan *write, o.QueueLength)
	c.controls = make(chan func())
	c.merged, c.checkpointed = make(chan struct{}, 1), make(chan error, 1)
	c.revision = revision
	c.newest = make(map[string]index.Pointer)
}

// failed returns the error that stopped the committer, nil if it works.
func (c *committer) failed() error {
	if p := c.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// commitLoop is the committer. When the store closes it still commits what is
// waiting.
func (c *committer) commitLoop() {
	defer close(c.db.committed)
	for {
		select {
		case w := <-c.queue:
			c.commit(c.collect(w))
		case f := <-c.controls:
			f()
		case err := <-c.checkpointed:
			_ = c.endCheckpoint(err) // it has said so
		case <-c.db.stop:
			for {
				select {
				case w := <-c.queue:
					c.commit(c.collect(w))
				default:
					return
				}
			}
		}
	}
}

// collect takes the writes that wait behind the first into one batch.
func (c *committer) collect(first *write) []*write {
	c.batch = c.batch[:0]
	c.add(first)
	size := len(first.draft.Value)
	for len(c.batch) < batchWrites && size < batchBytes {
		select {
		case w := <-c.queue:
			c.add(w)
			size += len(w.draft.Value)
		default:
			return c.batch
		}
	}
	return c.batch
}

// add puts a write into the batch, behind those that are in one piece with it.
func (c *committer) add(w *write) {
	for i := range w.others {
		c.batch = append(c.batch, &w.others[i])
	}
	c.batch = append(c.batch, w)
}

// commit stores a batch and answers its writes.
func (c *committer) commit(batch []*write) {
	c.makeRoomInMemory()
	c.rotateIfDue()
	start := time.Now()
	err := c.failed()
	if err == nil {
		err = c.store(batch)
	}
	c.db.metrics.committed(len(batch), start)
	concerned := 0 // watchers
	if err != nil {
		err = c.commitFailed(err)
		for _, w := range batch {
			if w.err == nil {
				w.version, w.err = nil, err
			}
		}
	} else if len(c.changes) > 0 {
		concerned = c.db.hub.Publish(c.changes)
	}
	for i, w := range batch {
		c.queued.Add(-w.size())
		if w.done != nil {
			w.done <- struct{}{}
		}
		batch[i] = nil
	}
	c.changes, c.frame = nil, nil // the hub has the ones now, readers have the other
	clear(c.newest)
	c.db.hub.Announce(concerned)
}

// store brings the writes of a batch to the disk and, when they are there, into
// the memtable.
func (c *committer) store(batch []*write) error {
	now := c.clock.Now()
	c.frame = wal.NewFrame(len(batch), batchSize(batch))
	c.growth.events, c.growth.bytes = 0, 0
	c.changes = make([]watch.Change, 0, len(batch))
	full := c.db.usage.Full()
	err := c.db.index.View(func(v index.View) error {
		for _, w := range batch {
			if w.kind != seglog.Deleted && full != nil {
				w.err = full
				continue
			}
			w.err = c.put(v, w, now)
		}
		return nil
	})
	if err != nil || len(c.frame.Records) == 0 {
		return err
	}
	if err := c.keep(c.frame); err != nil {
		return err
	}
	for _, w := range batch {
		if w.err == nil {
			c.db.index.Put(w.joined, index.NewPointer(w.revision, w.kind == seglog.Deleted), w.draft.Attributes)
		}
	}
	c.db.usage.AddLive(c.growth.events, c.growth.bytes)
	return nil
}

// batchSize is the most that the records of a batch take.
func batchSize(batch []*write) (n int64) {
	for _, w := range batch {
		n += w.size()
	}
	return n
}

// maxLogged is how many records of one commit go to the write-ahead log. A commit of
// more, such as a part of a deleted collection, takes no longer in the head, where its
// records have to go anyway.
const maxLogged = 512

// keep makes the records of a frame durable: in the write-ahead log or, if they are
// too many for it, in the head together with all that the log holds.
func (c *committer) keep(frame *wal.Frame) error {
	if c.wal == nil || len(frame.Records) > maxLogged || !c.wal.FitsHalf(frame) {
		return c.checkpoint(frame.Records)
	}
	if !c.wal.Fits(frame) {
		if err := c.beginCheckpoint(); err != nil {
			return err
		}
	}
	if err := c.wal.Append(frame, c.db.Revision()); err != nil {
		return err
	}
	c.db.log.Head().AddBytes(wal.Bytes(frame.Records))
	pending := append(c.db.log.Pending(), frame.Records...)
	c.db.log.SetPending(pending)
	return nil
}

// put checks one write against the state that the batch has come to, and adds
// it to the frame. Its error is that write's alone.
func (c *committer) put(v index.View, w *write, now time.Time) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	c.key = append(c.key[:0], w.joined...)
	newest, known := c.newest[w.joined]
	if !known {
		var err error
		if newest, known, err = v.Newest(w.joined); err != nil {
			return err
		}
	}
	live := known && !newest.Deletion()
	switch {
	case w.seen.Revision == 0 && live, w.seen.Revision != 0 && (!live || newest.Revision() != w.seen.Revision):
		return w.exists
	}
	e := seglog.Entry{
		Revision: c.revision + 1, Kind: w.kind, Previous: newest.Revision(), Time: now,
		Key: c.key, NamespaceLen: len(w.key.Namespace), Attributes: w.draft.Attributes, Value: w.draft.Value,
	}
	c.frame.Append(e.Revision, func(dst []byte) []byte { return seglog.AppendRecord(dst, &e) })
	c.revision++
	w.revision = e.Revision
	ch := watch.Change{Revision: e.Revision, Key: w.key, Previous: w.previous}
	switch w.kind {
	case seglog.Created:
		c.growth.events++
	case seglog.Deleted:
		c.growth.events--
	}
	if w.seen.Revision != 0 {
		c.growth.bytes -= int64(w.seen.Bytes)
	}
	if w.kind != seglog.Deleted {
		c.growth.bytes += e.Size()
		ch.Current = &store.Version{Record: store.Record{
			Key: w.key, Revision: e.Revision, Time: now, Attributes: e.Attributes, Value: e.Value, Bytes: int(e.Size()),
		}}
		w.version = ch.Current
	}
	c.changes = append(c.changes, ch)
	c.newest[w.joined] = index.NewPointer(e.Revision, w.kind == seglog.Deleted)
	return nil
}

// commitFailed returns what the writers of a batch are told that failed. Where
// there was no room for it, or for what was to be checkpointed before it, nothing of it
// is in the head, or that has failed.
func (c *committer) commitFailed(cause error) error {
	switch failure := c.failed(); {
	case failure != nil:
		return failure
	case disk.IsFull(cause) && !errors.Is(cause, wal.ErrAppend):
		return fmt.Errorf("%w: %w", store.ErrFull, cause)
	}
	return c.headFailed(cause)
}
