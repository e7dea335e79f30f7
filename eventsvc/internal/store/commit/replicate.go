package commit

import (
	"context"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Replicated is a change that another store has committed.
type Replicated struct {
	Revision uint64 // that it has there
	Kind     seglog.Kind
	Key      store.Key
	Time     time.Time
	Draft    store.Draft // zero for a deletion
}

// Apply stores changes of another store under the revisions that they have there, in order, and publishes them
// together. There may be gaps between the revisions, but none may be less than the newest one here. Nothing is stored
// after an error, and the same changes can be applied again. A [*store.CorruptError] says that this store does not
// continue with them.
func (c *Committer) Apply(ctx context.Context, changes []Replicated) error {
	return c.Queue.Do(ctx, func() error { return c.apply(changes) })
}

func (c *Committer) apply(changes []Replicated) error {
	c.Merger.makeRoom(c.Stop, c.Writer.Health.Done())
	c.Writer.rotateIfFull()
	c.batch = c.batch[:0]
	for i := range changes {
		r := &changes[i]
		c.batch = append(c.batch, &Write{Ctx: context.Background(), Kind: r.Kind, Key: r.Key, Draft: r.Draft, joined: r.Key.String(), revision: r.Revision})
	}
	start, last := time.Now(), c.Writer.Last
	source := seglog.IndexedLog{Index: c.Merger.Index, Log: c.Writer.Records}
	err := source.View(func(v index.View, log *seglog.Reader) error {
		c.begin()
		before := map[string]*store.Version{}
		for i, w := range c.batch {
			if err := c.replicate(v, log, w, before, changes[i].Time); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = c.persist()
	}
	c.writes.Observe(float64(len(c.batch)))
	c.seconds.Observe(time.Since(start).Seconds())
	if err == nil && len(c.changes) > 0 {
		c.Hub.Announce(c.Hub.Publish(c.changes))
	} else {
		c.Writer.Last = last // the other store has these revisions still
	}
	clear(c.batch)
	clear(c.newest)
	c.changes, c.frame = nil, nil
	return err
}

// replicate puts one change. before has the versions that the batch has put so far.
func (c *Committer) replicate(v index.View, log *seglog.Reader, w *Write, before map[string]*store.Version, at time.Time) error {
	if w.revision <= c.Writer.Last {
		return &store.CorruptError{Key: w.Key, Revision: w.revision, Reason: fmt.Sprintf("it does not follow revision %d", c.Writer.Last)}
	}
	newest, err := c.newestOf(v, w.joined)
	if err != nil {
		return err
	}
	switch {
	case newest.Live():
		if w.Previous = before[w.joined]; w.Previous == nil {
			e, err := log.Get(newest.Revision())
			if err != nil {
				return seglog.Corrupt(newest.Revision(), err)
			}
			w.Previous = &store.Version{Record: e.Clone()}
		}
		w.Seen = w.Previous.View().Seen()
		if w.Kind == seglog.Created {
			return &store.CorruptError{Key: w.Key, Revision: w.revision, Reason: "it is created, but exists here"}
		}
	case w.Kind == seglog.Deleted:
		return &store.CorruptError{Key: w.Key, Revision: w.revision, Reason: "it is deleted, but does not exist here"}
	default: // the other store may not have the version before any more
		w.Kind = seglog.Created
	}
	c.Writer.Last = w.revision
	c.put(w, newest, at)
	before[w.joined] = w.version
	return nil
}
