package bolt

import "time"

// The clock gives the times that are written, and decides what is old. While
// the process runs it follows the monotonic clock, whatever is done to the
// wall clock. At start it is set by the wall clock, with two exceptions:
//
//   - The wall clock is behind the last write: it was set back. The clock goes
//     on from the last write, so that the log stays in order of time.
//   - It is ahead of the last write by more than maxStep: either nobody wrote
//     for so long, or it is wrong. Times are taken from it, but for maxStep
//     nothing is taken for old that was not old at the last write. A person who
//     sees the warning has so much time to set it right.
type clock struct {
	wall    func() time.Time
	opened  time.Time // the wall clock when the store was opened
	base    time.Time // what this clock showed then
	held    time.Duration
	maxStep time.Duration
}

// newClock returns a clock, and the step of the wall clock that it does not
// follow, 0 if there is none.
func newClock(wall func() time.Time, last time.Time, maxStep time.Duration) (*clock, time.Duration) {
	c := &clock{wall: wall, opened: wall(), maxStep: maxStep}
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

func (c *clock) running() time.Duration { return max(0, c.wall().Sub(c.opened)) }

// now is the time of a write.
func (c *clock) now() time.Time { return c.base.Add(c.running()) }

// old is the time from which ages are counted.
func (c *clock) old() time.Time {
	if running := c.running(); running < c.maxStep {
		return c.base.Add(running - c.held)
	}
	return c.now()
}
