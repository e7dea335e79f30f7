package commit

import "time"

// A Clock gives an open store its times, and protects it from jumps of the wall clock. While the
// process runs it follows the monotonic clock, whatever is done to the wall clock. At start it is
// set by the wall clock, with two exceptions:
//
//   - The wall clock is behind the last write: it was set back. The clock goes on from the last
//     write, so that the log stays in order of time.
//   - It is ahead of the last write by more than a maximal step: either nobody wrote for so long,
//     or it is wrong. Now follows it. Old does not for as long as the maximal step: until then
//     nothing counts as old that was not old at the last write. A person who sees the warning has
//     that long to set the clock right.
//
// A Clock never changes, so it is safe for concurrent use.
type Clock struct {
	wall    func() time.Time
	opened  time.Time // the wall clock when the store was opened
	base    time.Time // what this clock showed then
	held    time.Duration
	maxStep time.Duration
}

// NewClock returns a clock for a store whose last write was at a time, zero if there was
// none. It also returns the step of the wall clock that it does not follow, 0 if there
// is none.
func NewClock(wall func() time.Time, last time.Time, maxStep time.Duration) (*Clock, time.Duration) {
	c := &Clock{wall: wall, opened: wall(), maxStep: maxStep}
	c.base = c.opened.Round(0)
	if last.IsZero() {
		return c, 0
	}
	step := c.base.Sub(last)
	switch {
	case step < 0:
		c.base = last
	case step > maxStep:
		c.held = step
	default:
		step = 0
	}
	return c, step
}

func (c *Clock) running() time.Duration { return max(0, c.wall().Sub(c.opened)) }

// Now returns the time of a write.
func (c *Clock) Now() time.Time { return c.base.Add(c.running()) }

// Old returns the time from which ages are counted.
func (c *Clock) Old() time.Time {
	if running := c.running(); running < c.maxStep {
		return c.base.Add(running - c.held)
	}
	return c.Now()
}
