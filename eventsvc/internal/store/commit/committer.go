package commit

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/eventsvc/internal/watch"
)

// Config is what a Committer works on.
type Config struct {
	Queue  *Queue
	Writer *Writer
	Merger *Merger
	Hub    *watch.Hub
	Usage  *usage.Usage
	Clock  *Clock
	Stop   <-chan struct{} // closed when the store begins to close

	ReadError func(error) error // reports and translates an error of reading
}

// The Committer alone gives out revisions and writes records. The fields below the metrics
// are those of the current batch, and are used by its goroutine alone.
type Committer struct {
	Config
	writes  prometheus.Histogram
	seconds prometheus.Histogram

	batch   []*Write
	frame   *wal.Frame // the records
	changes []watch.Change
	bytes   int64                    // by which the records of what exists grow
	newest  map[string]index.Pointer // of the events that the batch has written
	key     []byte                   // of the write at hand
}

// New returns the committer of an open store.
func New(c Config) *Committer {
	return &Committer{
		Config: c, newest: map[string]index.Pointer{},
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_writes", Help: "Writes that shared one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_seconds", Help: "Time of one commit, its sync included.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
	}
}

// Collectors returns the metrics of commits and of the queue.
func (c *Committer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.writes, c.seconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_queued_writes", Help: "Writes that wait for their commit."},
			func() float64 { n, _ := c.Queue.Waiting(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_queued_bytes", Help: "Bytes of writes that wait for their commit."},
			func() float64 { _, n := c.Queue.Waiting(); return float64(n) }),
	}
}

// Run commits writes until Stop, and then what is waiting. It is to be called once.
func (c *Committer) Run() {
	defer c.Queue.End()
	for {
		select {
		case w := <-c.Queue.writes:
			c.commit(w)
		case f := <-c.Queue.controls:
			f()
		case checkpoint := <-c.Writer.checkpointed:
			_ = c.Writer.EndCheckpoint(checkpoint) // it was logged
		case <-c.Stop:
			for {
				select {
				case w := <-c.Queue.writes:
					c.commit(w)
				default:
					return
				}
			}
		}
	}
}

// commit stores a write and those that wait behind it, and answers them.
func (c *Committer) commit(first *Write) {
	c.batch = c.Queue.collect(c.batch[:0], first)
	c.Merger.makeRoom(c.Stop, c.Writer.Health.Done())
	c.Writer.rotateIfFull()
	start := time.Now()
	err := c.Writer.Health.Failed()
	if err == nil {
		err = c.store()
	}
	c.writes.Observe(float64(len(c.batch)))
	c.seconds.Observe(time.Since(start).Seconds())
	concerned := 0 // watchers
	if err != nil {
		for _, w := range c.batch {
			if w.Err == nil {
				w.version, w.Err = nil, err
			}
		}
	} else if len(c.changes) > 0 {
		concerned = c.Hub.Publish(c.changes)
	}
	for i, w := range c.batch {
		c.Queue.answer(w)
		c.batch[i] = nil
	}
	c.changes, c.frame = nil, nil // not reused: the hub keeps the changes, and readers the frame
	clear(c.newest)
	c.Hub.Announce(concerned)
}

// store brings the writes of the batch to the disk and, when they are there, into
// the memtable.
func (c *Committer) store() error {
	c.refuse(c.begin())
	now, last := c.Clock.Now(), c.Writer.Last
	err := c.Merger.Index.View(func(v index.View) error {
		for _, w := range c.batch {
			if w.Err == nil {
				w.Err = c.accept(v, w, now)
			}
		}
		return nil
	})
	if err != nil {
		c.Writer.Last = last // nothing has these revisions
		return c.ReadError(err)
	}
	return c.persist()
}

// refuse refuses the writes of the batch, which has so many bytes, for which there is no room. Writes that belong
// together are refused together. Where not all have room, those that come first and have it are made: a limit with room
// for each write must not refuse them because others come at the same time.
func (c *Committer) refuse(bytes int64) {
	create, _ := c.Usage.Full(bytes)
	if create == nil {
		return
	}
	made, first := int64(0), 0
	for i, last := range c.batch {
		if last.done == nil {
			continue // it belongs to one that follows
		}
		together, size := c.batch[first:i+1], int64(0)
		first = i + 1
		for _, w := range together {
			size += w.size()
		}
		create, remove := c.Usage.Full(made + size)
		for _, w := range together {
			if w.Err = create; w.Kind == seglog.Deleted {
				w.Err = remove
			}
		}
		if last.Err == nil {
			made += size
		}
	}
}

// begin makes room in memory for the records of the batch, and returns how many bytes they have.
func (c *Committer) begin() (size int64) {
	for _, w := range c.batch {
		size += w.size()
	}
	c.frame = wal.NewFrame(len(c.batch), size)
	c.changes = make([]watch.Change, 0, len(c.batch))
	c.bytes = 0
	return size
}

// persist makes the frame durable, and puts the writes that were accepted into the memtable.
func (c *Committer) persist() error {
	if len(c.frame.Records) == 0 {
		return nil
	}
	if err := c.Writer.Append(c.frame); err != nil {
		return err
	}
	for _, w := range c.batch {
		if w.Err == nil {
			c.Merger.Index.Put(w.joined, index.NewPointer(w.revision, w.Kind == seglog.Deleted))
			switch w.Kind {
			case seglog.Created:
				c.Usage.Namespaces.Add(w.Key.Namespace, w.revision, 1)
			case seglog.Deleted:
				c.Usage.Namespaces.Add(w.Key.Namespace, w.revision, -1)
			}
		}
	}
	c.Usage.AddBytes(c.bytes)
	return nil
}

// accept checks one write against the state that the batch has come to, and puts it under
// the next revision. Its error is that write's alone.
func (c *Committer) accept(v index.View, w *Write, now time.Time) error {
	if err := w.Ctx.Err(); err != nil {
		return err
	}
	newest, err := c.newestOf(v, w.joined)
	if err != nil {
		return err
	}
	live := newest.Live()
	if seen := w.Seen.Revision; live != (seen != 0) || live && newest.Revision() != seen {
		return ErrConflict
	}
	c.Writer.Last++
	w.revision = c.Writer.Last
	c.put(w, newest, now)
	return nil
}

// newestOf returns the newest version of an event, with the batch so far.
func (c *Committer) newestOf(v index.View, joined string) (newest index.Pointer, err error) {
	newest, known := c.newest[joined]
	if !known {
		newest, _, err = v.Newest(joined)
	}
	return newest, err
}

// put adds a write that has its revision to the frame and to the changes.
func (c *Committer) put(w *Write, newest index.Pointer, now time.Time) {
	c.key = append(c.key[:0], w.joined...)
	e := seglog.Entry{
		Revision: w.revision, Kind: w.Kind, Previous: newest.Revision(), Time: now,
		Key: c.key, NamespaceLen: len(w.Key.Namespace), Attributes: w.Draft.Attributes, Value: w.Draft.Value,
	}
	c.frame.Append(e.Revision, func(dst []byte) []byte { return seglog.AppendEntry(dst, &e) })
	change := watch.Change{Revision: e.Revision, Key: w.Key, Previous: w.Previous}
	if newest.Live() {
		c.bytes -= int64(w.Seen.Bytes)
	}
	if w.Kind != seglog.Deleted {
		c.bytes += e.Size()
		change.Current = &store.Version{Record: store.Record{
			Key: w.Key, Revision: e.Revision, Time: now, Attributes: e.Attributes, Value: e.Value, Bytes: int(e.Size()),
		}}
		w.version = change.Current
	}
	c.changes = append(c.changes, change)
	c.newest[w.joined] = index.NewPointer(e.Revision, w.Kind == seglog.Deleted)
}

// Flush merges everything that was written so far into the index.
func (c *Committer) Flush(ctx context.Context) error {
	if err := c.Merger.merge(); err != nil {
		return err
	}
	if err := c.Queue.Do(ctx, func() error { c.Merger.freeze(); return nil }); err != nil {
		return err
	}
	return c.Merger.merge()
}

// Skip leaves out the revisions up to the one that next returns for the last one, and
// returns that. It is then the newest revision and the compact revision.
func (c *Committer) Skip(ctx context.Context, next func(last uint64) uint64) (revision uint64, err error) {
	err = c.Queue.Do(ctx, func() error {
		revision = next(c.Writer.Last)
		if err := c.Writer.Skip(revision); err != nil {
			return err
		}
		// In this order: no reader finds a newest revision that is less than the compact revision.
		c.Hub.Advance(revision)
		c.Writer.Records.SetCompactRevision(revision)
		return nil
	})
	return revision, err
}
