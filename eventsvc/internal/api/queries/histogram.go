package queries

import (
	"context"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type histogramAnswer struct {
	counted
	Step    string   `json:"step"`
	By      []string `json:"by,omitempty"`
	Buckets []bucket `json:"buckets"`
	Total   int64    `json:"total"`
}

// bucket is a step that is not empty.
type bucket struct {
	Start string `json:"start"`
	Count int64  `json:"count"`
	// Counts are by the values of the dimensions, one object in another for each: with
	// by=type,reason {"Warning":{"BackOff":3}}.
	Counts map[string]any `json:"counts,omitempty"`
	Other  int64          `json:"other,omitempty"` // of the values that are not among the most frequent
}

// answerHistogram counts over time.
func answerHistogram(ctx context.Context, r *request) (*answer, error) {
	h, err := r.shot.Histogram(ctx, r.by, r.step)
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, h.Total == 0); err != nil {
		return nil, err
	}
	out := histogramAnswer{counted: r.counted(), Step: query.FormatDuration(h.Step), By: names(r.by), Buckets: make([]bucket, len(h.Buckets)), Total: h.Total}
	for i, b := range h.Buckets {
		out.Buckets[i] = bucket{Start: stamp(b.Start), Count: b.Count}
		if len(r.by) > 0 {
			out.Buckets[i].Counts, out.Buckets[i].Other = nested(h.Values, b.Counts), b.Other
		}
	}
	columns := append(append([]string{"start"}, names(r.by)...), "count", "other")
	return &answer{json: out, columns: columns, rows: func() ([][]string, error) { return histogramRows(&h), nil }}, nil
}

// names returns dimensions or orders as texts.
func names[T ~string](of []T) []string {
	var out []string
	for _, name := range of {
		out = append(out, string(name))
	}
	return out
}

// nested puts counts into objects, one level for each value.
func nested(values [][]string, counts []int64) map[string]any {
	out := map[string]any{}
	for i, path := range values {
		if counts[i] == 0 {
			continue
		}
		in := out
		for _, value := range path[:len(path)-1] {
			deeper, ok := in[value].(map[string]any)
			if !ok {
				deeper = map[string]any{}
				in[value] = deeper
			}
			in = deeper
		}
		in[path[len(path)-1]] = counts[i]
	}
	return out
}

// histogramRows has a row for each value of a bucket. The row of all other values has none,
// and says so in its last column.
func histogramRows(h *query.Histogram) [][]string {
	var rows [][]string
	for _, b := range h.Buckets {
		start := stamp(b.Start)
		if len(h.By) == 0 {
			rows = append(rows, []string{start, strconv.FormatInt(b.Count, 10), "false"})
			continue
		}
		for i, n := range b.Counts {
			if n > 0 {
				line := append([]string{start}, h.Values[i]...)
				rows = append(rows, append(line, strconv.FormatInt(n, 10), "false"))
			}
		}
		if b.Other > 0 {
			line := append([]string{start}, make([]string, len(h.By))...)
			rows = append(rows, append(line, strconv.FormatInt(b.Other, 10), "true"))
		}
	}
	return rows
}
