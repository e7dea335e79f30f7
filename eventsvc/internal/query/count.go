package query

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// Order is the order of groups.
type Order string

// The orders.
const (
	ByCount Order = "count"  // most frequent first
	Newest  Order = "newest" // by their last observation
	Oldest  Order = "oldest" // by their first observation
)

// The bounds of what a count keeps in memory. Together with the cells of a histogram and with what is selected from them, they are less
// than the largest room of one client (flow).
const (
	tableBytes = 20 << 20 // groups
	keyBytes   = 256      // of a group, besides its texts
)

// rest is the group of what has no group of its own because there are too many.
const rest = 0

// memory is what a question takes beside the room that every question has. It takes the room before it is used.
type memory struct {
	room  *flow.Room // nil: there is no limit
	bytes int
	err   error // there was no room: what was counted since is wrong
}

// grow takes n bytes more, in steps of 512 KiB.
func (m *memory) grow(n int) {
	const step = 512 << 10
	if m.bytes += n; m.err == nil && m.bytes > m.room.Bytes() {
		m.err = m.room.Grow((m.bytes + step - 1) / step * step)
	}
}

// table numbers the groups of an answer.
type table struct {
	*memory
	by    []Dimension
	most  int
	keys  []Key // by number; the key of rest is empty
	ids   map[[2]uint64]int
	bytes int
	full  bool // something is counted under rest
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func newTable(m *memory, by []Dimension, most int) *table {
	return &table{memory: m, by: by, most: most, keys: make([]Key, 1), ids: map[[2]uint64]int{}}
}

// group returns the number of the group that observations belong to.
func (t *table) group(d event.Dimensions, object Regarding) int {
	key := keyOf(d, object, t.by)
	hash := [2]uint64{maphash.Comparable(seeds[0], key), maphash.Comparable(seeds[1], key)}
	if id, ok := t.ids[hash]; ok {
		return id
	}
	if len(t.keys) > t.most || t.bytes > tableBytes || t.err != nil {
		t.full = true
		return rest
	}
	id, size := len(t.keys), key.bytes()+keyBytes
	t.bytes += size
	t.grow(size)
	t.keys = append(t.keys, key)
	t.ids[hash] = id
	return id
}

// count counts what was observed by some dimensions. If hours is set, one occurrence may be the sum of an hour. It calls start at the
// beginning, and again if it has to begin again; what that returns takes the observations.
func (s *Snapshot) count(ctx context.Context, by []Dimension, hours bool, start func(*table) func(store.Occurred)) (t *table, err error) {
	s.OverEvents = s.query.Terms.overEvents() || slices.Contains(by, Object)
	if s.OverEvents {
		t = newTable(&memory{room: flow.FromContext(ctx).Room()}, by, s.querier.Groups)
		err = s.scan(ctx, t, start(t))
	} else {
		err = s.reading(func() error {
			t = newTable(&memory{room: flow.FromContext(ctx).Room()}, by, s.querier.Groups)
			group := func(d event.Dimensions) int {
				if !s.wanted(d) {
					return -1
				}
				return t.group(d, Regarding{})
			}
			return s.occurrences(ctx, store.Range{Nodes: s.query.Terms.onNodes() || slices.Contains(by, Node), Hours: hours}, group, start(t))
		})
	}
	if err == nil {
		err = t.err
	}
	if t.full {
		s.Partly("there are more than %d groups: the others are not counted apart", len(t.keys)-1)
	}
	return t, err
}

// scan is a count that goes over events.
type scan struct {
	*Snapshot
	table   *table
	visit   func(store.Occurred)
	object  bool // is one of the dimensions
	events  int  // that were read
	lookups int
	earlier []observed
}

// observed is an event that was observed before its last version.
type observed struct {
	store.Key
	object event.FieldRequirement // that the event is about: stores find its events fast
	origin string
	last   store.Occurred // what the last version adds
	all    int64          // observations up to it
}

// scan counts the observations of events that match. If it takes too long or there are too
// many, it stops and notes that.
func (s *Snapshot) scan(ctx context.Context, t *table, visit func(store.Occurred)) error {
	w := &scan{Snapshot: s, table: t, visit: visit, object: slices.Contains(t.by, Object)}
	q := s.timeQuery(ctx, Page{})
	if match := q.Match; match != nil {
		q.Match = func(note []byte) (bool, error) {
			ok, err := match(note)
			if !ok {
				w.events++ // read in vain
			}
			return ok, err
		}
	}
	return s.pages(ctx, q, w.event, func(n Next) (bool, error) {
		if err := w.before(ctx); err != nil {
			return false, err
		}
		switch {
		case !n.More:
			return false, nil
		case w.events >= s.querier.Events:
			s.Partly("only the newest %d events were counted, those observed since %s", w.events, n.After.Time.UTC().Format(time.RFC3339))
			return false, nil
		case !s.querier.Now().Before(s.deadline):
			s.Partly("counting took longer than %s: only the events observed since %s were counted", s.querier.Time, n.After.Time.UTC().Format(time.RFC3339))
			return false, nil
		}
		return true, nil
	})
}

// event counts the observations that the last version of an event adds.
func (w *scan) event(v *store.View, at store.Moment) (bool, error) {
	w.events++
	var object Regarding
	if w.object {
		object = regarding(v.Attributes).cut()
	}
	o, ok := v.Attributes.Occurrence()
	if !ok { // the version was stored without
		o = event.Occurrence{Time: at.Time, Count: 1, New: 1, Counted: 1}
	}
	last := store.Occurred{
		Group:  w.table.group(event.DimensionsOf(v.Namespace, v.Attributes), object),
		Second: at.Time.Unix(), Revision: v.Revision, Count: o.New,
	}
	for _, added := range spread(o, last) {
		w.within(added)
	}
	if o.Counted > o.New {
		origin, err := w.querier.Origin(v)
		if err != nil {
			return false, err
		}
		w.earlier = append(w.earlier, observed{v.Key, objectOf(v.Attributes), origin, last, o.Counted})
	}
	return w.events < w.querier.Events, w.table.err
}

// spread returns what a version adds, with the group and the revision of as.
func spread(o event.Occurrence, as store.Occurred) (added []store.Occurred) {
	o.Spread(func(second, span, n int64) {
		if as.Second, as.Span, as.Count = second, span, n; n > 0 {
			added = append(added, as)
		}
	})
	return added
}

// within counts what is within the range, in whole seconds.
func (w *scan) within(o store.Occurred) {
	if o.Second >= w.From.Unix() && o.Second < w.To.Unix() {
		w.visit(o)
	}
}

// objectOf returns a requirement of the object of an event.
func objectOf(a event.Attributes) event.FieldRequirement {
	if uid := a.Field(event.RegardingUID); len(uid) > 0 {
		return event.FieldRequirement{Field: event.RegardingUID, Value: string(uid)}
	}
	return event.FieldRequirement{Field: event.RegardingName, Value: string(a.Field(event.RegardingName))}
}

// before counts the observations before the last version, of the events of a page that have
// some.
func (w *scan) before(ctx context.Context) error {
	for _, e := range w.earlier {
		if w.lookups == w.querier.Lookups || !w.querier.Now().Before(w.deadline) {
			w.Partly("earlier observations were counted of the newest %d events only", w.lookups)
			break
		}
		w.lookups++
		if err := w.versions(ctx, &e); err != nil {
			return err
		}
	}
	w.earlier = w.earlier[:0]
	return nil
}

// versions counts what earlier versions of an event add, also those from before it was deleted and came back. If no version
// that is held adds anything, the last one counts for all.
func (w *scan) versions(ctx context.Context, e *observed) error {
	selector := &event.Selector{Fields: []event.FieldRequirement{
		{Field: event.FieldNamespace, Value: e.Namespace}, {Field: event.FieldName, Value: e.Name}, e.object,
	}}
	var added []store.Occurred
	known := 0 // how many of them are those of this event
	var failed error
	err := w.querier.Timeline.Versions(ctx, selector, func(v *store.View, gone bool) bool {
		o, ok := v.Attributes.Occurrence()
		switch {
		case v.Revision >= e.last.Revision:
			return false
		case !w.query.Allows(v.Namespace, v.Attributes.Get(event.ClusterLabel)): // it was of another cluster then
		case gone:
			var origin string
			if origin, failed = w.querier.Origin(v); origin == e.origin {
				known = len(added)
			} else { // another event of this name
				added = added[:known]
			}
		case ok:
			added = append(added, spread(o, store.Occurred{Group: e.last.Group, Revision: v.Revision})...)
		}
		return failed == nil
	})
	if err := cmp.Or(failed, err); err != nil {
		return err
	}
	if len(added) == 0 && e.last.Count == 0 {
		e.last.Count = e.all
		added = append(added, e.last)
	}
	for _, o := range added {
		w.within(o)
	}
	return nil
}

// best returns the first n of so many things in an order, or all. It keeps no more than n, and takes turns.
func best(ctx context.Context, of, n int, compare func(a, b int) int) (found []int, err error) {
	const piece = 1000 // about a millisecond
	turns := flow.NewTurns(ctx)
	for i := range of {
		if i%piece == 0 && !turns.Next() {
			return nil, turns.Err()
		}
		if len(found) == n && (n == 0 || compare(i, found[n-1]) >= 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, i, compare)
		if len(found) == n {
			found = found[:n-1]
		}
		found = slices.Insert(found, at, i)
	}
	return found, nil
}
