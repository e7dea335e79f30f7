package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Group is what was observed with the same values of some dimensions.
type Group struct {
	Key         Key
	Count       int64
	First, Last time.Time     // in whole seconds
	Every       time.Duration // the usual distance between two observations; 0: not known
	State       State         // at the end of the range
	// Sample is the newest event of the group that still exists, nil if there is none.
	Sample *store.Record
}

// GroupPage says which groups are asked for: at most Limit, and no more once they and their
// samples have Bytes.
type GroupPage struct {
	Order        Order
	After        *GroupPlace // only behind this place; nil: from the first
	Limit, Bytes int
}

// GroupPlace is the place of a group in an order.
type GroupPlace struct {
	Value int64 // by which it is ordered
	Key   []string
}

// Place returns where a group is in an order. Smaller values come first.
func (g *Group) Place(o Order, by []Dimension) GroupPlace {
	return placeOf(Rhythm{Count: g.Count, First: g.First.Unix(), Last: g.Last.Unix()}, o, &g.Key, by)
}

// rhythmBytes is what a rhythm takes, also while a slice of them grows.
const rhythmBytes = 120

// value returns that by which a group is ordered.
func (r *Rhythm) value(o Order) int64 {
	switch o {
	case Newest:
		return -r.Last
	case Oldest:
		return r.First
	}
	return -r.Count
}

func placeOf(r Rhythm, o Order, key *Key, by []Dimension) GroupPlace {
	return GroupPlace{Value: r.value(o), Key: append(key.Values(by), key.Dimensions.Namespace, key.Dimensions.Cluster)}
}

func (p GroupPlace) compare(other GroupPlace) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), slices.Compare(p.Key, other.Key))
}

// Groups counts by dimensions, of which one may be the object. It returns a page of the
// groups, and where the next one begins, nil if there is none.
func (s *Snapshot) Groups(ctx context.Context, by []Dimension, p GroupPage) ([]Group, *GroupPlace, error) {
	var all []Rhythm
	t, err := s.count(ctx, by, 0, func(t *table) func(store.Occurred) {
		all = nil
		return func(o store.Occurred) {
			for len(all) <= o.Group {
				all = append(all, Rhythm{})
				t.grow(rhythmBytes)
			}
			all[o.Group].Add(o)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	behind := p.behind(all, t, by)
	page, err := best(ctx, len(behind), p.Limit+1, func(a, b int) int {
		a, b = behind[a], behind[b]
		if c := cmp.Compare(all[a].value(p.Order), all[b].value(p.Order)); c != 0 {
			return c
		}
		return placeOf(all[a], p.Order, &t.keys[a], by).compare(placeOf(all[b], p.Order, &t.keys[b], by))
	})
	if err != nil {
		return nil, nil, err
	}
	out, size := make([]Group, 0, min(len(page), p.Limit)), 0
	for i, place := range page {
		if i > 0 && (i == p.Limit || size >= p.Bytes) {
			return out, new(out[i-1].Place(p.Order, by)), nil
		}
		id := behind[place]
		r := &all[id]
		g := Group{
			Key: t.keys[id], Count: r.Count, First: time.Unix(r.First, 0).UTC(), Last: time.Unix(r.Last, 0).UTC(), Every: r.Every(), State: r.At(s.To),
		}
		if g.Sample, err = s.sample(ctx, &g, by); err != nil {
			return nil, nil, err
		}
		if size += g.Key.bytes(); g.Sample != nil {
			size += len(g.Sample.Value)
		}
		out = append(out, g)
	}
	return out, nil, nil
}

// behind returns the numbers of the groups that this page and those behind it have.
func (p *GroupPage) behind(all []Rhythm, t *table, by []Dimension) (ids []int) {
	for id := range all {
		if id != rest && all[id].Count > 0 && (p.After == nil || placeOf(all[id], p.Order, &t.keys[id], by).compare(*p.After) > 0) {
			ids = append(ids, id)
		}
	}
	return ids
}

// sample returns the newest event of a group as it was last observed. If the event of the last observation has been
// deleted, one page more has to do.
func (s *Snapshot) sample(ctx context.Context, g *Group, by []Dimension) (*store.Record, error) {
	last := store.Range{From: g.Last, To: g.Last.Add(time.Second)}
	sample, err := s.newestOf(ctx, g, by, last)
	if err != nil || sample != nil {
		return sample, err
	}
	return s.newestOf(ctx, g, by, store.Range{From: s.begin(), To: last.To})
}

// newestOf returns the newest event of a group in a range, as far as one page goes.
func (s *Snapshot) newestOf(ctx context.Context, g *Group, by []Dimension, r store.Range) (sample *store.Record, err error) {
	q := s.timeQuery(ctx, Page{})
	q.From, q.To = r.From, r.To
	if slices.Contains(by, Pattern) {
		pattern := g.Key.Dimensions.Pattern
		q.Filter = event.All(&event.Filter{Kind: event.FilterDimension, Dimension: string(Pattern), Fits: func(text string) bool { return text == pattern }}, q.Filter)
	}
	q.Wanted = func(d event.Dimensions) bool {
		d.Pattern = g.Key.Dimensions.Pattern // the filter asks for it
		return keyOf(d, g.Key.Object, by) == g.Key
	}
	if slices.Contains(by, Object) {
		q.Filter = event.All(ofObject(g.Key.Object), q.Filter)
	}
	err = s.pages(ctx, q, func(v *store.View, _ store.Moment) (bool, error) {
		sample = new(v.Clone())
		return false, nil
	}, func(Next, int) (bool, error) { return false, nil })
	return sample, err
}

// ofObject returns a filter of an object, whose texts may have been cut.
func ofObject(r Regarding) *event.Filter {
	of := func(f event.Field, text string) *event.Filter {
		fits := &event.Filter{Kind: event.FilterField, Field: f, Fits: func(t string) bool { return event.CutDimension(t) == text }}
		if !event.IsCut(text) {
			fits.Exact = text
		}
		return fits
	}
	return event.All(of(event.RegardingKind, r.Kind), of(event.RegardingNamespace, r.Namespace), of(event.RegardingName, r.Name), of(event.RegardingUID, r.UID))
}
