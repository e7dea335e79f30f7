package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the largest duration that a Histogram tells from longer ones.
const longest = time.Hour

// Histogram counts durations in buckets that are at most 1 % wide. Its size
// does not depend on the number of samples. The zero value is empty and ready.
// It is not safe for concurrent use.
type Histogram struct {
	counts *hdrhistogram.Histogram // nil without samples
}

// Add counts one duration. A negative one counts as zero: it comes from two
// clocks that were read in the wrong order.
func (h *Histogram) Add(d time.Duration) {
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, int64(longest), 2)
	}
	_ = h.counts.RecordValue(int64(min(max(d, 0), longest))) // fails only out of range
}

// Merge adds the samples of o.
func (h *Histogram) Merge(o *Histogram) {
	switch {
	case o.counts == nil:
	case h.counts == nil:
		h.counts = o.counts.Clone()
	default:
		h.counts.Merge(o.counts)
	}
}

// Count is the number of samples.
func (h *Histogram) Count() int64 {
	if h.counts == nil {
		return 0
	}
	return h.counts.TotalCount()
}

// Quantile is the duration that the share q of the samples does not exceed,
// rounded up to its bucket's end; 0 when there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.counts == nil {
		return 0
	}
	return time.Duration(h.counts.ValueAtPercentile(100 * q))
}
