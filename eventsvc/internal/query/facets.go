package query

import (
	"cmp"
	"context"
	"slices"
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
	t, err := s.count(ctx, by, true, func() func(store.Occurred) {
		counts = nil
		return func(o store.Occurred) {
			for len(counts) <= o.Group {
				counts = append(counts, 0)
			}
			counts[o.Group] += o.Count
		}
	})
	if err != nil {
		return nil, 0, err
	}
	facets, total = t.facets(counts, limit)
	return facets, total, nil
}

// Overview is [Snapshot.Facets] and a [Snapshot.Histogram] in one pass. The histogram is by one of the dimensions, in at most so
// many buckets, and one more if the range does not begin with one.
func (s *Snapshot) Overview(ctx context.Context, by []Dimension, limit int, over Dimension, most int64) ([]Facet, Histogram, error) {
	step := StepOf(s.begin(), s.To.Add(-time.Second), most)
	t, g, err := s.countOver(ctx, by, step)
	if err != nil {
		return nil, Histogram{}, err
	}
	merged, cells := newTable([]Dimension{over}, s.querier.Groups), s.newGrid(step)
	for id, row := range g.rows {
		to := rest
		if id != rest {
			to = merged.group(t.keys[id].Dimensions, Regarding{})
		}
		for bucket, n := range row {
			cells.add(to, bucket, n)
		}
	}
	facets, _ := t.facets(g.totals(), limit)
	return facets, cells.histogram(merged), nil
}

// facets returns the most frequent values of each dimension, and the total, from the counts by group.
func (t *table) facets(counts []int64, limit int) (facets []Facet, total int64) {
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
		facets = append(facets, facet(d, byValue, total, limit))
	}
	return facets, total
}

func facet(d Dimension, byValue map[string]int64, total int64, limit int) Facet {
	f := Facet{Dimension: d, Values: make([]ValueCount, 0, len(byValue)), Other: total, Distinct: len(byValue)}
	for value, n := range byValue {
		f.Values = append(f.Values, ValueCount{value, n})
	}
	slices.SortFunc(f.Values, func(a, b ValueCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	f.Values = f.Values[:min(len(f.Values), limit)]
	for _, v := range f.Values {
		f.Other -= v.Count
	}
	return f
}
