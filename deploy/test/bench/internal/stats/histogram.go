// Package stats holds what is computed over the samples of one row: latency
// quantiles and the separability of two sets of times.
package stats

import (
	"fmt"
	"math/bits"
	"time"
)

// subBits is the number of bits kept below the leading one: a bucket is at
// most 1/64 = 1.6 % wide, which is finer than any two runs agree.
const subBits = 6

const bucketCount = (64 - subBits) << subBits

// Histogram counts durations in buckets of constant relative width. Its size
// does not depend on the number of samples, and adding one allocates nothing,
// so that it can sit in the path of two hundred thousand deliveries a second.
// The zero value is empty and ready.
type Histogram struct {
	counts [bucketCount]uint64
	n      uint64
	max    time.Duration
}

// Add counts one duration. Negative ones count as zero: they come from two
// clocks read in the wrong order, not from time travel.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// Merge adds the samples of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is the number of samples.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the largest sample, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is the smallest duration that at least the share q of the samples
// does not exceed, rounded up to its bucket's end; 0 when there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for i, c := range h.counts {
		seen += c
		if c > 0 && (seen > rank || seen == h.n) {
			return min(time.Duration(bucketEnd(i)), h.max)
		}
	}
	return 0
}

// String is the usual three quantiles and the maximum.
func (h *Histogram) String() string {
	return fmt.Sprintf("p50 %v p95 %v p99 %v max %v (%d)", h.Quantile(.5), h.Quantile(.95), h.Quantile(.99), h.max, h.n)
}

// bucket is where v is counted: v itself below 2^subBits, then 2^subBits
// buckets for every power of two.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// bucketEnd is the largest value of bucket i.
func bucketEnd(i int) uint64 {
	shift := max(i>>subBits-1, 0)
	return uint64(i-shift<<subBits+1)<<shift - 1
}
