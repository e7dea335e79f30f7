package api

import (
	"math"
	"time"
)

// period is the time that is parted equally among the clients who are about.
const period = 50 * time.Millisecond

// rotate begins a new period when it is time. What a client has had too much is
// taken from its part of the next, and who has nothing to remember is forgotten.
func (t *turns) rotate() {
	gone := time.Since(t.since)
	if gone < period {
		return
	}
	due := t.part() * (min(gone, time.Minute) / period)
	if t.lonely() {
		due = math.MaxInt64 // nobody has lost by it
	}
	t.about = 0
	for name, a := range t.clients {
		if a.spent > 0 || a.inFlight > 0 {
			t.about++
		}
		a.spent = max(a.spent-due, 0)
		if a.spent == 0 && a.inFlight == 0 && a.idle() {
			delete(t.clients, name)
		}
	}
	t.since = time.Now()
}

// part is everybody's equal part of a period.
func (t *turns) part() time.Duration {
	return period * time.Duration(t.processors) / time.Duration(max(t.about, 2))
}

// sated tells whether a client has had its part and somebody has not.
func (t *turns) sated(a *account) bool {
	part := t.part()
	if a.spent < part || t.alone(a) {
		return false
	}
	for _, other := range t.clients {
		if other.spent < part && other.inFlight > 0 {
			return true
		}
	}
	return false
}

// wakeLater sees to it that who has had its part is let in when the next period
// begins.
func (t *turns) wakeLater() {
	if t.timer == nil {
		t.timer = time.AfterFunc(period-time.Since(t.since), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.timer = nil
			t.rotate()
			t.admitAll()
		})
	}
}
