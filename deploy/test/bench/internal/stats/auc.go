package stats

import (
	"cmp"
	"slices"
	"time"
)

// AUC is the probability that a value drawn from a is larger than one drawn
// from b, ties counting half (Mann and Whitney's U over the number of pairs):
// 0.5 when the values do not tell a from b, 0 or 1 when one value is enough to
// tell.
func AUC(a, b []time.Duration) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0.5
	}
	b = slices.Clone(b)
	slices.Sort(b)
	var wins float64
	for _, v := range a {
		below, _ := slices.BinarySearch(b, v)
		upTo, _ := slices.BinarySearch(b, v+1)
		wins += float64(below) + float64(upTo-below)/2
	}
	return wins / float64(len(a)) / float64(len(b))
}

// Median is the value in the middle, of an even number the greater one. There must be one.
func Median[T cmp.Ordered](values []T) T { return slices.Sorted(slices.Values(values))[len(values)/2] }
