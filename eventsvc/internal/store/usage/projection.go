package usage

import (
	"cmp"
	"time"
)

// Before a store holds the events of projectAfter, or fills a part of its limit, a few
// events would say too much about the rate.
const (
	projectAfter = time.Hour
	projectPart  = 0.1
)

// Forever is the longest age that is projected, and counts as a retention that never ends.
const Forever = 100 * 365 * 24 * time.Hour

// Projected returns how old events get before MaxBytes removes them, if they go on to
// arrive as they have since the oldest one that exists was written: the time that they
// have taken so far, times what fits, divided by what is there. It returns 0 if there
// is no limit, or if it cannot be known yet. Where compression has begun, it reckons that
// all but the newest files will be compressed.
func (s Stats) Projected(oldest, now time.Time) time.Duration {
	span, limit := now.Sub(oldest), s.room()
	if limit <= 0 || s.LiveBytes <= 0 || span <= 0 || span < projectAfter && float64(s.LiveBytes) < projectPart*limit {
		return 0
	}
	return time.Duration(min(float64(Forever), float64(span)*limit/float64(s.LiveBytes)))
}

// Fits estimates how many events fit into MaxBytes, from the size and the compression of the present ones; 0 if there
// is no limit or no event.
func (s Stats) Fits() int64 {
	if s.LiveBytes <= 0 {
		return 0
	}
	return int64(s.room() / float64(s.LiveBytes) * float64(s.Events))
}

// room returns how many bytes of events MaxBytes has room for, 0 if there is no limit.
func (s Stats) room() float64 {
	return s.packing(cmp.Or(s.PackedBytes, s.FileBytes)) * float64(eventRoom(s.MaxBytes))
}

// packing returns how many bytes of records a byte of the files has: less than one because of the index and the slack
// of pages, more where records are compressed.
func (s Stats) packing(files int64) float64 {
	return min(maxPacking, max(0.4, float64(s.LiveBytes+s.HistoryBytes+s.DeadBytes)/float64(files+1)))
}
