package queries

import (
	"context"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type facetsAnswer struct {
	counted
	Facets map[string][]valueCount `json:"facets"`
	Other  map[string]int64        `json:"other"` // of the values that are cut off, by dimension
	Total  int64                   `json:"total"`
}

type valueCount struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// answerFacets counts the values of dimensions.
func answerFacets(ctx context.Context, r *request) (*answer, error) {
	by := r.by
	if by == nil {
		by = query.Indexed
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	facets, total, err := r.shot.Facets(ctx, by, r.limit)
	if err != nil {
		return nil, err
	}
	out := facetsAnswer{counted: r.counted(), Facets: map[string][]valueCount{}, Other: map[string]int64{}, Total: total}
	for _, f := range facets {
		values := make([]valueCount, len(f.Values))
		for i, v := range f.Values {
			values[i] = valueCount(v)
		}
		out.Facets[string(f.Dimension)], out.Other[string(f.Dimension)] = values, f.Other
	}
	return &answer{json: out, columns: []string{"dimension", "value", "count", "other"}, partial: r.shot.Partial, rows: func() (rows [][]string, err error) {
		for _, f := range facets {
			for _, v := range f.Values {
				rows = append(rows, []string{string(f.Dimension), v.Value, strconv.FormatInt(v.Count, 10), "false"})
			}
			if f.Other > 0 {
				rows = append(rows, []string{string(f.Dimension), "", strconv.FormatInt(f.Other, 10), "true"})
			}
		}
		return rows, nil
	}}, nil
}
