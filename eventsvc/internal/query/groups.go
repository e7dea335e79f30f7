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
	First, Last time.Time // in whole seconds
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
	p := GroupPlace{Value: -g.Count, Key: append(g.Key.Values(by), g.Key.Dimensions.Namespace, g.Key.Dimensions.Cluster)}
	switch o {
	case Newest:
		p.Value = -g.Last.Unix()
	case Oldest:
		p.Value = g.First.Unix()
	}
	return p
}

func (p GroupPlace) compare(other GroupPlace) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), slices.Compare(p.Key, other.Key))
}

// Groups counts by dimensions, of which one may be the object. It returns a page of the
// groups, and where the next one begins, nil if there is none.
func (s *Snapshot) Groups(ctx context.Context, by []Dimension, p GroupPage) ([]Group, *GroupPlace, error) {
	var groups []Group
	t, err := s.count(ctx, by, true, func() func(store.Occurred) {
		groups = nil
		return func(o store.Occurred) {
			for len(groups) <= o.Group {
				groups = append(groups, Group{})
			}
			groups[o.Group].add(o)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	type placed struct {
		GroupPlace
		Group
	}
	var page []placed
	for id, g := range groups {
		if id == rest || g.Count == 0 {
			continue
		}
		g.Key = t.keys[id]
		if place := g.Place(p.Order, by); p.After == nil || place.compare(*p.After) > 0 {
			page = append(page, placed{place, g})
		}
	}
	slices.SortFunc(page, func(a, b placed) int { return a.compare(b.GroupPlace) })
	out, size := make([]Group, 0, min(len(page), p.Limit)), 0
	for i := range page {
		if i > 0 && (i == p.Limit || size >= p.Bytes) {
			return out, &page[i-1].GroupPlace, nil
		}
		g := page[i].Group
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

func (g *Group) add(o store.Occurred) {
	first, last := time.Unix(o.Second, 0).UTC(), time.Unix(o.Second+o.Length, 0).UTC()
	if g.Count == 0 || first.Before(g.First) {
		g.First = first
	}
	if g.Count == 0 || last.After(g.Last) {
		g.Last = last
	}
	g.Count += o.Count
}

// sample returns the newest event of a group. It looks at the last observation first. If
// the event of that one has been deleted or observed again since, one page more has to do.
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
	q.From, q.To, q.Nodes = r.From, r.To, q.Nodes || slices.Contains(by, Node)
	q.Wanted = func(d event.Dimensions) bool { return keyOf(d, g.Key.Object, by) == g.Key && s.wanted(d) }
	if s.text == nil && g.Key.Object.Name != "" {
		q.Selector = g.Key.Object.selector(q.Selector)
	}
	err = s.pages(ctx, q, func(v *store.View, _ store.Moment) (bool, error) {
		if slices.Contains(by, Object) && regarding(v.Attributes).cut() != g.Key.Object {
			return true, nil
		}
		sample = new(v.Clone())
		return false, nil
	}, func(Next) (bool, error) { return false, nil })
	return sample, err
}

// selector adds the object to what a selector asks for.
func (r Regarding) selector(also *event.Selector) *event.Selector {
	var s event.Selector
	if also != nil {
		s = *also
	}
	s.Fields = append(slices.Clip(s.Fields),
		event.FieldRequirement{Field: event.RegardingName, Value: r.Name},
		event.FieldRequirement{Field: event.RegardingUID, Value: r.UID})
	return &s
}
