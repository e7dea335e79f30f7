package query

import (
	"cmp"
	"context"
	"slices"

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
	t, err := s.count(ctx, by, func() func(store.Occurred) {
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
	for _, n := range counts {
		total += n
	}
	for _, d := range by {
		byValue := map[string]int64{}
		for id, n := range counts {
			if id != rest && n > 0 {
				byValue[*d.of(&t.keys[id].Dimensions)] += n
			}
		}
		facets = append(facets, facet(d, byValue, total, limit))
	}
	return facets, total, nil
}

func facet(d Dimension, byValue map[string]int64, total int64, limit int) Facet {
	f := Facet{Dimension: d, Values: make([]ValueCount, 0, len(byValue)), Other: total}
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
