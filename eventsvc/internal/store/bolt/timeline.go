package bolt

import (
	"cmp"
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/seglog"
)

var _ store.Timeline = (*reader)(nil)

// state returns the revision that a read is about, 0 for the newest, if it is held.
func (r *reader) state(revision uint64) (uint64, error) {
	current := r.Log.Published()
	if revision > current {
		return 0, &store.FutureError{Revision: revision, Current: current}
	}
	if revision == 0 {
		if r.Closed() {
			return 0, store.ErrClosed
		}
		return current, nil
	}
	return revision, r.Held(revision)
}

// Observed implements [store.Timeline].
func (r *reader) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	revision, err := r.state(q.Revision)
	if err != nil {
		return store.TimePage{}, err
	}
	p := &timePager{query: &q, visit: visit, page: store.TimePage{Revision: revision, Last: q.After}}
	err = r.Log.View(func(log *seglog.Reader) error {
		p.turns = r.turns(ctx, log)
		return p.run(ctx)
	})
	p.page.Looked = p.looked
	if ctx.Err() != nil {
		return store.TimePage{}, ctx.Err()
	}
	if err := r.ended(revision, err); err != nil {
		return store.TimePage{}, err
	}
	return p.page, nil
}

// Count implements [store.Timeline].
func (r *reader) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	current := r.Log.Published()
	if c.Revision > current {
		return &store.FutureError{Revision: c.Revision, Current: current}
	}
	revision := cmp.Or(c.Revision, current)
	err := r.Log.View(func(log *seglog.Reader) error {
		turns := r.turns(ctx, log)
		if err := turns.next(); err != nil {
			return err
		}
		q := columns.Query{From: c.From.Unix(), To: c.To.Unix(), Last: revision, Filter: c.Matching(), Whole: !c.Light(), Held: turns.held}
		tables, err := log.Tables(&q, turns.next)
		if err != nil {
			return err
		}
		for _, t := range tables {
			scan, err := t.Scan(&q)
			if err == nil && scan != nil {
				err = countTable(scan, &c, turns, visit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return r.answered(ctx, err)
}

// answered translates the error of a read that has no need of a revision.
func (r *reader) answered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return r.Failed(err)
	}
	return nil
}

func countTable(scan *columns.Scan, c *store.Count, turns *turns, visit func(store.Occurred)) error {
	if c.Values != nil {
		return valuesOf(scan, c, turns)
	}
	counter, err := scan.Counter(c, visit)
	for chunk := 0; err == nil && chunk < scan.Chunks(); chunk++ {
		if err = turns.next(); err == nil {
			err = counter.Chunk(chunk)
		}
	}
	if err == nil {
		counter.Flush()
	}
	return err
}

func valuesOf(scan *columns.Scan, c *store.Count, turns *turns) error {
	values, err := scan.Values(c, c.Values)
	for chunk := 0; err == nil && values.More() && chunk < scan.Chunks(); chunk++ {
		if err = turns.next(); err == nil {
			err = values.Chunk(chunk)
		}
	}
	return err
}

// Begin implements [store.Timeline].
func (r *reader) Begin(ctx context.Context) (observed, written time.Time, err error) {
	if r.Closed() {
		return observed, written, store.ErrClosed
	}
	observed = time.Now().UTC()
	written = observed
	err = r.Log.View(func(log *seglog.Reader) error {
		turns := r.turns(ctx, log)
		first, ok, err := log.Begin(r.Kept(), turns.next)
		if ok {
			observed = time.Unix(first, 0).UTC()
		}
		oldest := func(e seglog.Entry) bool {
			written = e.Time.UTC()
			return false
		}
		return cmp.Or(err, log.Scan(0, r.Log.Published(), oldest, seglog.SkipDamaged))
	})
	return observed, written, r.answered(ctx, err)
}

// skipped reports that a record is not there because nothing needs it any more.
func skipped(log *seglog.Reader, revision uint64, err error) bool {
	return errors.Is(err, seglog.ErrGone) && !log.Complete(revision)
}
