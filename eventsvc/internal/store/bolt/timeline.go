package bolt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
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

// Occurrences implements [store.Timeline].
func (r *reader) Occurrences(ctx context.Context, in store.Range, group func(event.Dimensions) int, visit func(store.Occurred)) error {
	revision, err := r.state(in.Revision)
	if err != nil {
		return err
	}
	err = r.Log.View(func(log *seglog.Reader) (err error) {
		m := seglog.Moments{From: in.From.Unix(), To: in.To.Unix(), Last: revision, Nodes: in.Nodes, Hours: in.Hours, Sees: in.Sees, Group: group}
		turns := r.turns(ctx, log)
		for more := true; more && err == nil; {
			if err = turns.next(); err == nil {
				more, err = m.Occurrences(log, visit)
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.ended(revision, err)
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
	revision, err := r.state(c.Revision)
	if err != nil {
		return err
	}
	err = r.Log.View(func(log *seglog.Reader) error {
		turns := r.turns(ctx, log)
		if err := turns.next(); err != nil {
			return err
		}
		from, to := c.From.Unix(), c.To.Unix()
		tables, err := log.Tables(from, to, revision, turns.next)
		if err != nil {
			return err
		}
		for _, t := range slices.Backward(tables) {
			scan, err := t.Scan(&columns.Query{From: from, To: to, Last: revision, Filter: c.Matching(), Held: turns.held})
			if err == nil && scan != nil {
				err = countTable(scan, &c, turns, visit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.ended(revision, err)
}

func countTable(scan *columns.Scan, c *store.Count, turns *turns, visit func(store.Occurred)) error {
	counter, err := scan.Counter(c, visit)
	for chunk := 0; err == nil && chunk < scan.Chunks(); chunk++ {
		if err = turns.next(); err == nil {
			err = counter.Chunk(chunk)
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
		first, ok, err := log.First(r.Kept())
		if ok {
			observed = time.Unix(first, 0).UTC()
		}
		oldest := func(e seglog.Entry) bool {
			written = e.Time.UTC()
			return false
		}
		return cmp.Or(ctx.Err(), err, log.Scan(0, r.Log.Published(), oldest, seglog.SkipDamaged))
	})
	if err != nil {
		return observed, written, r.Failed(err)
	}
	return observed, written, nil
}

// skipped reports that a record is not there because nothing needs it any more.
func skipped(log *seglog.Reader, revision uint64, err error) bool {
	return errors.Is(err, seglog.ErrGone) && !log.Complete(revision)
}
