package seglog

import (
	"sync/atomic"
	"time"
)

// openReads counts the read transactions that are open by the second in which
// they began, because a forgotten one keeps every page that is given up from
// being used again. It is a ring: one that is open for longer than it is long
// seems younger.
type openReads struct {
	began   time.Time
	seconds [1024]atomic.Int32
}

// begin counts a transaction in, at what it returns; there it is counted out.
func (o *openReads) begin() *atomic.Int32 {
	second := &o.seconds[int(time.Since(o.began).Seconds())%len(o.seconds)]
	second.Add(1)
	return second
}

// oldest is the age of the transaction that is open for longest, 0 if there is
// none from before this second.
func (o *openReads) oldest() time.Duration {
	now := int(time.Since(o.began).Seconds())
	for age := min(now, len(o.seconds)-1); age > 0; age-- {
		if o.seconds[(now-age)%len(o.seconds)].Load() > 0 {
			return time.Duration(age) * time.Second
		}
	}
	return 0
}
