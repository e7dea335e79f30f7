package stats_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/stats"
	"tidings.example/shared/randtest"
)

func TestQuantilesAreWithinOnePercentOfTheExactOnes(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	var h, halves [2]stats.Histogram
	exact := make([]time.Duration, 20_000)
	for i := range exact {
		exact[i] = time.Duration(math.Exp(r.Float64() * 28)) // 1 ns to 24 minutes
		h[0].Add(exact[i])
		halves[i%2].Add(exact[i])
	}
	for i := range halves { // into one that is empty, and into one that is not
		h[1].Merge(&halves[i])
		h[1].Merge(new(stats.Histogram))
	}
	slices.Sort(exact)
	for _, q := range []float64{.01, .5, .95, .99, .999, 1} {
		want := exact[int(math.Round(q*float64(len(exact))))-1]
		for i := range h {
			if got := h[i].Quantile(q); got < want || float64(got) > float64(want)*1.01 {
				t.Errorf("quantile %v: got %d, exact %d", q, got, want)
			}
		}
	}
	if h[0].Count() != 20_000 || h[1].Count() != 20_000 {
		t.Errorf("%d and %d samples, want 20000", h[0].Count(), h[1].Count())
	}
}

func TestHistogramEdges(t *testing.T) {
	t.Parallel()
	var h stats.Histogram
	if got := h.Quantile(.5); got != 0 || h.Count() != 0 {
		t.Errorf("quantile of nothing: %v of %d", got, h.Count())
	}
	h.Add(-time.Second)
	h.Add(math.MaxInt64)
	if got := h.Quantile(.25); got != 0 {
		t.Errorf("a negative duration counts as %v, want 0", got)
	}
	if got := h.Quantile(.99); got < time.Hour || h.Count() != 2 {
		t.Errorf("the largest duration counts as %v, in %d samples", got, h.Count())
	}
}

func TestAUC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a, b []time.Duration
		want float64
	}{
		{"always larger", []time.Duration{5, 6}, []time.Duration{1, 2, 3}, 1},
		{"always smaller", []time.Duration{1}, []time.Duration{2, 3}, 0},
		{"the same", []time.Duration{1, 2, 3}, []time.Duration{3, 2, 1}, 0.5},
		{"three pairs of four", []time.Duration{2, 4}, []time.Duration{1, 3}, 0.75},
		{"nothing to compare", nil, []time.Duration{1}, 0.5},
	} {
		if got := stats.AUC(c.a, c.b); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
