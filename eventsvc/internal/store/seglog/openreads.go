package seglog

import (
	"sync/atomic"
	"time"
)

// openReads counts the open readers by the second in which they began, because bbolt
// reuses no page while a reader is open. It is a ring: the age of a reader that is open
// for longer than its length is reported too low.
type openReads struct {
	began   time.Time
	seconds [1024]atomic.Int32
}

// begin counts a reader, and returns the count to decrement at its end.
func (o *openReads) begin() *atomic.Int32 {
	second := &o.seconds[int(time.Since(o.began).Seconds())%len(o.seconds)]
	second.Add(1)
	return second
}

// oldest returns the age of the oldest open reader, 0 if none is from before this second.
func (o *openReads) oldest() time.Duration {
	now := int(time.Since(o.began).Seconds())
	for age := min(now, len(o.seconds)-1); age > 0; age-- {
		if o.seconds[(now-age)%len(o.seconds)].Load() > 0 {
			return time.Duration(age) * time.Second
		}
	}
	return 0
}
