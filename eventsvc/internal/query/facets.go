package query

import (
	"cmp"
	"context"
	"math"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// The numbers of values of a facet.
const (
	DefaultFacetValues = 10
	MaxFacetValues     = 1000
)

// Facet says how often each value of a dimension was observed.
type Facet struct {
	Dimension Dimension
	Values    []ValueCount // most frequent first
	Other     int64        // of the values that are cut off
	Distinct  int          // how many values there are
}

// ValueCount is one value, which may be empty, and how often it was observed.
type ValueCount struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Facets counts by each of some dimensions, and returns the most frequent values of each and
// the total.
func (s *Snapshot) Facets(ctx context.Context, by []Dimension, limit int) (facets []Facet, total int64, err error) {
	var counts []int64
	t, err := s.count(ctx, by, math.MaxInt64, func(t *table) func(store.Occurred) {
		counts = nil
		return func(o store.Occurred) { counts = t.add(counts, o) }
	})
	if err != nil {
		return nil, 0, err
	}
	return t.facets(ctx, counts, limit)
}

// add counts by group.
func (t *table) add(counts []int64, o store.Occurred) []int64 {
	for len(counts) <= o.Group {
		counts = append(counts, 0)
		t.grow(8 + facetBytes)
	}
	counts[o.Group] += o.Count
	return counts
}

// facetBytes is about what a value takes of which it is counted how often it was observed.
const facetBytes = 96

// Overview is [Snapshot.Facets] and a [Snapshot.Histogram] in one pass. The histogram is by one of the dimensions, in
// at most so many buckets, and one more if the range does not begin with one.
func (s *Snapshot) Overview(ctx context.Context, by []Dimension, limit int, over Dimension, most int64) ([]Facet, Histogram, error) {
	step := StepOf(s.begin(), s.To.Add(-time.Second), most)
	var counts []int64
	var merged *table // by the one dimension
	var cells *grid
	t, err := s.count(ctx, by, step, func(t *table) func(store.Occurred) {
		counts, merged, cells = nil, newTable(t.memory, []Dimension{over}, s.querier.Groups), s.newGrid(t.memory, step)
		var to []int // the groups of merged, by the groups of t
		return func(o store.Occurred) {
			counts = t.add(counts, o)
			for id := len(to); id <= o.Group; id++ {
				to = append(to, rest)
				if id != rest {
					to[id] = merged.group(t.keys[id].Dimensions, Regarding{})
				}
			}
			o.Group = to[o.Group]
			cells.count(o)
		}
	})
	if err != nil {
		return nil, Histogram{}, err
	}
	h, err := cells.histogram(ctx, merged)
	if err != nil {
		return nil, Histogram{}, err
	}
	facets, _, err := t.facets(ctx, counts, limit)
	return facets, h, err
}

// facets returns the most frequent values of each dimension, and the total, from the counts by group.
func (t *table) facets(ctx context.Context, counts []int64, limit int) (facets []Facet, total int64, err error) {
	for _, n := range counts {
		total += n
	}
	for _, d := range t.by {
		byValue := map[string]int64{}
		for id, n := range counts {
			if id != rest && n > 0 {
				byValue[*d.of(&t.keys[id].Dimensions)] += n
			}
		}
		f, err := facet(ctx, d, byValue, total, limit)
		if err != nil {
			return nil, 0, err
		}
		facets = append(facets, f)
	}
	return facets, total, nil
}

func facet(ctx context.Context, d Dimension, byValue map[string]int64, total int64, limit int) (Facet, error) {
	f := Facet{Dimension: d, Other: total, Distinct: len(byValue)}
	all := make([]ValueCount, 0, len(byValue))
	for value, n := range byValue {
		all = append(all, ValueCount{value, n})
	}
	found, err := best(ctx, len(all), limit, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[b].Count, all[a].Count), cmp.Compare(all[a].Value, all[b].Value))
	})
	f.Values = make([]ValueCount, len(found))
	for i, at := range found {
		f.Values[i] = all[at]
		f.Other -= all[at].Count
	}
	return f, err
}
