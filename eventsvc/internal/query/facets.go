package query

import (
	"cmp"
	"context"

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

// Facets counts by each of some dimensions, and returns the most frequent values of each and the total.
func (s *Snapshot) Facets(ctx context.Context, by []Dimension, limit int) (facets []Facet, total int64, err error) {
	o, err := s.Overview(ctx, OverviewQuery{By: by, Values: limit, Most: 1})
	if err != nil {
		return nil, 0, err
	}
	return o.Facets, o.Total, nil
}

// A valueCounter counts by the values of one dimension.
type valueCounter struct {
	*table
	counts []int64 // by group
}

func (f *valueCounter) add(o store.Occurred) {
	for len(f.counts) <= o.Group {
		f.counts = append(f.counts, 0)
		f.grow(8 + facetBytes)
	}
	f.counts[o.Group] += o.Count
}

// facetBytes is about what a value takes while the most frequent ones are found.
const facetBytes = 96

// facet returns the most frequent values.
func (f *valueCounter) facet(ctx context.Context, total int64, limit int) (Facet, error) {
	d := f.by[0]
	var all []ValueCount
	for id, n := range f.counts {
		if id != rest && n > 0 {
			all = append(all, ValueCount{*d.of(&f.keys[id].Dimensions), n})
		}
	}
	out := Facet{Dimension: d, Other: total, Distinct: len(all)}
	found, err := best(ctx, len(all), limit, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[b].Count, all[a].Count), cmp.Compare(all[a].Value, all[b].Value))
	})
	out.Values = make([]ValueCount, len(found))
	for i, at := range found {
		out.Values[i] = all[at]
		out.Other -= all[at].Count
	}
	return out, err
}
