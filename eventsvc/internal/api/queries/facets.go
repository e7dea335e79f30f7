package queries

import (
	"context"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type facetsAnswer struct {
	counted
	Facets   map[string][]query.ValueCount `json:"facets"`
	Other    map[string]int64              `json:"other"`    // of the values that are cut off, by dimension
	Distinct map[string]int                `json:"distinct"` // how many values there are
	Total    int64                         `json:"total"`
}

// answerFacets counts the values of dimensions.
func answerFacets(ctx context.Context, r *request) (*answer, error) {
	by := r.by
	if by == nil {
		by = query.Indexed
	}
	facets, total, err := r.shot.Facets(ctx, by, r.limit)
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, total == 0); err != nil {
		return nil, err
	}
	out := facetsAnswer{counted: r.counted(), Facets: map[string][]query.ValueCount{}, Other: map[string]int64{}, Distinct: map[string]int{}, Total: total}
	for _, f := range facets {
		d := string(f.Dimension)
		out.Facets[d], out.Other[d], out.Distinct[d] = f.Values, f.Other, f.Distinct
	}
	return &answer{json: out, columns: facetColumns, rows: each(facetRows(facets))}, nil
}

var facetColumns = []string{"dimension", "value", "count", "other"}

func facetRows(facets []query.Facet) (rows [][]string) {
	for _, f := range facets {
		for _, v := range f.Values {
			rows = append(rows, []string{string(f.Dimension), v.Value, strconv.FormatInt(v.Count, 10), "false"})
		}
		if f.Other > 0 {
			rows = append(rows, []string{string(f.Dimension), "", strconv.FormatInt(f.Other, 10), "true"})
		}
	}
	return rows
}
