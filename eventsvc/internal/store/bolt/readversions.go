package bolt

import (
	"context"
	"errors"
	"maps"
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A history collects the versions of the events that a selector matches.
type history struct {
	reader *reader
	what   *event.Selector
	until  uint64
	events map[string][]uint64 // by key: the versions that were found
}

// Versions implements [store.Timeline].
func (r *reader) Versions(ctx context.Context, s *event.Selector, visit func(v *store.View, gone bool) bool) error {
	until, err := r.state(0)
	if err != nil {
		return err
	}
	h := &history{reader: r, what: s, until: until, events: map[string][]uint64{}}
	err = h.find(ctx)
	more := true
	for _, key := range slices.Sorted(maps.Keys(h.events)) {
		if err != nil || !more || ctx.Err() != nil {
			break
		}
		more, err = h.show(key, visit)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return r.Failed(err)
	}
	return nil
}

// find finds the events: the one that the selector names, or those of which the columns have
// versions that match.
func (h *history) find(ctx context.Context) error {
	if key, ok := named(h.what); ok {
		h.events[key.String()] = nil // the index leads to all of its versions
		return nil
	}
	return h.reader.Log.View(func(log *seglog.Reader) error {
		turns := h.reader.turns(ctx, log)
		chunks, err := turns.search(versions(h.what.Filter(), h.until))
		if err != nil {
			return err
		}
		return turns.each(chunks, func(some []uint64) error {
			for _, revision := range some {
				if e, err := log.Get(revision); err == nil {
					h.add(&e)
				} else if !skipped(log, revision, err) {
					return err
				}
			}
			return nil
		})
	})
}

// named returns the key that a selector asks for, if it asks for nothing else.
func named(s *event.Selector) (key store.Key, ok bool) {
	if s == nil || len(s.Fields) != 2 || len(s.Labels) > 0 || s.Clusters != nil {
		return key, false
	}
	for _, f := range s.Fields {
		switch {
		case f.Not:
		case f.Field == event.FieldNamespace:
			key.Namespace = f.Value
		case f.Field == event.FieldName:
			key.Name = f.Value
		}
	}
	return key, key.Namespace != "" && key.Name != ""
}

// add adds a version that matches.
func (h *history) add(e *seglog.Entry) {
	namespace, name := string(e.Key[:e.NamespaceLen]), string(e.Key[e.NamespaceLen+1:])
	if e.Kind != seglog.Deleted && h.what.Matches(namespace, name, e.Attributes) {
		key := string(e.Key)
		h.events[key] = append(h.events[key], e.Revision)
	}
}

// show lends the versions of an event to visit.
func (h *history) show(key string, visit func(v *store.View, gone bool) bool) (more bool, err error) {
	revisions := h.events[key]
	shown := 0
	err = h.reader.View(func(v index.View, log *seglog.Reader) error {
		p, _, err := v.Newest(key)
		if err != nil {
			return err
		}
		all, err := h.chain(log, key, p.Revision())
		if err != nil {
			return err
		}
		all = append(all, revisions...)
		slices.Sort(all)
		all = slices.Compact(all)
		for more = true; more && shown < len(all); shown++ {
			if more, err = h.lend(log, all[shown], visit); err != nil {
				return err
			}
		}
		return nil
	})
	return more, err
}

// chain returns the revisions of the newest version of an event and of those before it,
// as far as they are held.
func (h *history) chain(log *seglog.Reader, key string, newest uint64) (all []uint64, err error) {
	for revision := newest; revision != 0; {
		e, err := log.Get(revision)
		if skipped(log, revision, err) {
			break
		}
		if err != nil {
			return nil, err
		}
		if string(e.Key) != key || e.Previous >= revision {
			return nil, seglog.Corrupt(revision, errors.New("it is no version of "+key))
		}
		if revision <= h.until {
			all = append(all, revision)
		}
		revision = e.Previous
	}
	return all, nil
}

// lend lends a version of an event to visit. For a deletion it lends the version before it. It leaves out what is gone:
// a version, or the version before a deletion.
func (h *history) lend(log *seglog.Reader, revision uint64, visit func(v *store.View, gone bool) bool) (more bool, err error) {
	e, err := held(log, revision)
	if e == nil {
		return true, err
	}
	if e.Kind == seglog.Deleted {
		return lendDeleted(log, e, func(v *store.View) bool { return visit(v, true) })
	}
	return log.Lend(e, e.StoreKey(), func(v *store.View) bool { return visit(v, false) }), nil
}

// lendDeleted lends the version before a deletion to visit, under the revision and time of the deletion. If that is
// gone, it calls nobody.
func lendDeleted(log *seglog.Reader, e *seglog.Entry, visit func(*store.View) bool) (more bool, err error) {
	revision, at := e.Revision, e.Time
	last, err := held(log, e.Previous)
	if last == nil {
		return true, err
	}
	last.Revision, last.Time = revision, at
	return log.Lend(last, last.StoreKey(), visit), nil
}

// held returns a record, nil if it is no longer held.
func held(log *seglog.Reader, revision uint64) (*seglog.Entry, error) {
	e, err := log.Get(revision)
	if err == nil {
		return &e, nil
	}
	if skipped(log, revision, err) {
		err = nil
	}
	return nil, err
}
