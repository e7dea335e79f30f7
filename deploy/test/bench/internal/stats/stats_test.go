package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/stats"
)

func TestQuantilesAreWithinOneBucketOfTheExactOnes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var h stats.Histogram
	exact := make([]time.Duration, 20_000)
	for i := range exact {
		exact[i] = time.Duration(math.Exp(r.Float64() * 30)) // 1 ns to 3 h
		h.Add(exact[i])
	}
	slices.Sort(exact)
	for _, q := range []float64{0, .01, .5, .95, .99, .999, 1} {
		want := exact[min(int(q*float64(len(exact))), len(exact)-1)]
		got := h.Quantile(q)
		if got < want || float64(got) > float64(want)*(1+1.0/64)+1 {
			t.Errorf("quantile %v: got %d, exact %d", q, got, want)
		}
	}
	if h.Max() != exact[len(exact)-1] || h.Count() != 20_000 {
		t.Errorf("max %v of %d samples, want %v of 20000", h.Max(), h.Count(), exact[len(exact)-1])
	}
}

func TestHistogramEdges(t *testing.T) {
	t.Parallel()
	var h stats.Histogram
	if got := h.Quantile(.5); got != 0 {
		t.Errorf("quantile of nothing: %v", got)
	}
	h.Add(-time.Second)
	h.Add(math.MaxInt64)
	if got := h.Quantile(.25); got != 0 {
		t.Errorf("a negative duration counts as %v, want 0", got)
	}
	if got := h.Quantile(.99); got != math.MaxInt64 {
		t.Errorf("the largest duration counts as %v", got)
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
