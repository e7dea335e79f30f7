package queries

import (
	"context"
	"slices"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type histogramAnswer struct {
	counted
	Step  string   `json:"step"`
	By    []string `json:"by,omitempty"`
	Total int64    `json:"total"`
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
	return &answer{
		json:    histogramAnswer{counted: r.counted(), Step: query.FormatDuration(h.Step), By: names(r.by), Total: h.Total},
		lists:   []elements{bucketList(&h)},
		held:    len(h.Buckets) * (bucketBytes + 8*len(h.Values)),
		columns: append(append([]string{"start"}, names(r.by)...), "count", "other"),
		rows:    func(row func([]string) error) error { return histogramRows(&h, row) },
	}, nil
}

// bucketList lists the buckets of a histogram.
func bucketList(h *query.Histogram) elements {
	return elements{"buckets", len(h.Buckets), func(b []byte, i int) ([]byte, error) { return appendBucket(b, h, &h.Buckets[i]), nil }}
}

// bucketBytes is what a bucket takes in memory without its counts.
const bucketBytes = 80

// appendBucket appends a step that is not empty. Its counts are by the values of the dimensions, one object in another
// for each: with by=type,reason {"Warning":{"BackOff":3}}. Other is the count of the values that are not among the most
// frequent.
func appendBucket(b []byte, h *query.Histogram, in *query.Bucket) []byte {
	b = append(append(append(b, `{"start":"`...), stamp(in.Start)...), `","count":`...)
	b = strconv.AppendInt(b, in.Count, 10)
	if len(h.By) > 0 {
		var shown []int
		for i, n := range in.Counts {
			if n > 0 {
				shown = append(shown, i)
			}
		}
		slices.SortFunc(shown, func(i, j int) int { return slices.Compare(h.Values[i], h.Values[j]) })
		if len(shown) > 0 {
			b = appendNested(append(b, `,"counts":`...), h, in, shown, 0)
		}
		if in.Other > 0 {
			b = strconv.AppendInt(append(b, `,"other":`...), in.Other, 10)
		}
	}
	return append(b, '}')
}

// appendNested appends counts as objects, one level for each dimension from a level on. Those that are shown are in the
// order of their values, and the values before the level are the same.
func appendNested(b []byte, h *query.Histogram, in *query.Bucket, shown []int, level int) []byte {
	b = append(b, '{')
	for len(shown) > 0 {
		value := h.Values[shown[0]][level]
		same := 1
		for same < len(shown) && h.Values[shown[same]][level] == value {
			same++
		}
		b, _ = appendJSON(b, value) // a text: no error
		if b = append(b, ':'); level == len(h.By)-1 {
			b = strconv.AppendInt(b, in.Counts[shown[0]], 10)
		} else {
			b = appendNested(b, h, in, shown[:same], level+1)
		}
		if shown = shown[same:]; len(shown) > 0 {
			b = append(b, ',')
		}
	}
	return append(b, '}')
}

// names returns dimensions or orders as texts.
func names[T ~string](of []T) []string {
	var out []string
	for _, name := range of {
		out = append(out, string(name))
	}
	return out
}

// histogramRows has a row for each value of a bucket. The row of all other values has none,
// and says so in its last column.
func histogramRows(h *query.Histogram, row func([]string) error) error {
	for i := range h.Buckets {
		b := &h.Buckets[i]
		start := stamp(b.Start)
		if len(h.By) == 0 {
			if err := row([]string{start, strconv.FormatInt(b.Count, 10), "false"}); err != nil {
				return err
			}
			continue
		}
		line := func(values []string, n int64, other string) error {
			if n == 0 {
				return nil
			}
			return row(append(append([]string{start}, values...), strconv.FormatInt(n, 10), other))
		}
		for j, n := range b.Counts {
			if err := line(h.Values[j], n, "false"); err != nil {
				return err
			}
		}
		if err := line(make([]string, len(h.By)), b.Other, "true"); err != nil {
			return err
		}
	}
	return nil
}
