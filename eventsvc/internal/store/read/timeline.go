package read

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// each calls f with every record up to a revision, 0 for the newest.
func (r *Reader) each(ctx context.Context, revision uint64, f func(log *seglog.Reader, v index.View, e *seglog.Entry) error) (uint64, error) {
	revision = cmp.Or(revision, r.Published())
	if current := r.Published(); revision > current {
		return 0, &store.FutureError{Revision: revision, Current: current}
	}
	if err := r.Held(revision); err != nil {
		return 0, err
	}
	err := r.Index.View(func(v index.View) error {
		return r.Log.View(func(log *seglog.Reader) error {
			var failed error
			err := log.Scan(0, revision, func(e seglog.Entry) bool {
				failed = cmp.Or(ctx.Err(), f(log, v, &e))
				return failed == nil
			})
			return cmp.Or(err, failed)
		})
	})
	if err != nil {
		return 0, r.Failed(err)
	}
	return revision, nil
}

func occurrence(e *seglog.Entry) event.Occurrence {
	o, ok := event.Attributes(e.Attributes).Occurrence()
	if !ok {
		o = event.Occurrence{Time: e.Time.Truncate(time.Microsecond), Count: 1, New: 1}
	}
	return o
}

// Occurrences implements [store.Timeline].
func (r *Reader) Occurrences(ctx context.Context, in store.Range, group func(event.Dimensions) int, visit func(store.Occurred)) error {
	var all []store.Occurred
	_, err := r.each(ctx, in.Revision, func(_ *seglog.Reader, _ index.View, e *seglog.Entry) error {
		o := occurrence(e)
		if e.Kind == seglog.Deleted || o.New == 0 || o.Time.Before(in.From) || !o.Time.Before(in.To) {
			return nil
		}
		if g := group(event.DimensionsOf(string(e.Key[:e.NamespaceLen]), e.Attributes)); g >= 0 {
			all = append(all, store.Occurred{Group: g, Second: o.Time.Unix(), Revision: e.Revision, Count: o.New})
		}
		return nil
	})
	for _, o := range all {
		visit(o)
	}
	return err
}

// Observed implements [store.Timeline].
func (r *Reader) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	type item struct {
		store.Record
		at store.Moment
	}
	var found []item
	behind := func(a, b store.Moment) int {
		n := cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Revision, b.Revision))
		if !q.OldestFirst {
			n = -n
		}
		return n
	}
	until := cmp.Or(q.Revision, r.Published())
	revision, err := r.each(ctx, until, func(log *seglog.Reader, v index.View, e *seglog.Entry) error {
		at := store.Moment{Time: occurrence(e).Time, Revision: e.Revision}
		key := e.StoreKey()
		if e.Kind == seglog.Deleted || at.Time.Before(q.From) || !at.Time.Before(q.To) || q.After != (store.Moment{}) && behind(at, q.After) <= 0 ||
			q.Wanted != nil && !q.Wanted(event.DimensionsOf(key.Namespace, e.Attributes)) || !q.Selector.Matches(key.Namespace, key.Name, e.Attributes) {
			return nil
		}
		if last, err := lastBefore(log, v, string(e.Key), e.Revision, until); err != nil || !last {
			return err
		}
		found = append(found, item{e.Clone(), at})
		return nil
	})
	if err != nil {
		return store.TimePage{}, err
	}
	slices.SortFunc(found, func(a, b item) int { return behind(a.at, b.at) })
	p := store.TimePage{Revision: revision}
	for i := range found {
		p.Last = found[i].at
		if !visit(found[i].View(), found[i].at) {
			p.More = true
			break
		}
	}
	return p, nil
}

// Versions implements [store.Timeline].
func (r *Reader) Versions(ctx context.Context, s *event.Selector, visit func(v *store.View, gone bool) bool) error {
	versions := map[string][]store.Record{}
	wanted := map[string]bool{}
	_, err := r.each(ctx, 0, func(_ *seglog.Reader, _ index.View, e *seglog.Entry) error {
		key := string(e.Key)
		versions[key] = append(versions[key], e.Clone())
		if k := e.StoreKey(); e.Kind != seglog.Deleted && s.Matches(k.Namespace, k.Name, e.Attributes) {
			wanted[key] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	keys := make([]string, 0, len(wanted))
	for key := range wanted {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		for i, v := range versions[key] {
			gone := v.Value == nil || len(v.Value) == 0
			if gone && i > 0 {
				last := versions[key][i-1]
				v.Attributes, v.Value, v.Bytes = last.Attributes, last.Value, last.Bytes
			} else if gone {
				continue
			}
			if !visit(v.View(), gone) {
				return nil
			}
		}
	}
	return nil
}

// Begin implements [store.Timeline].
func (r *Reader) Begin(ctx context.Context) (time.Time, error) {
	begin := time.Now()
	_, err := r.each(ctx, 0, func(_ *seglog.Reader, _ index.View, e *seglog.Entry) error {
		if o := occurrence(e); e.Kind != seglog.Deleted && o.Time.Before(begin) {
			begin = o.Time
		}
		return nil
	})
	return begin, err
}
