package flow

import (
	"math"
	"time"
)

// period is the time that is divided equally among the active flows.
const period = 50 * time.Millisecond

// startPeriod starts a new period when the current one is over. Time that a flow
// used beyond its share is carried over, and flows that owe no time are dropped.
func (s *Scheduler) startPeriod() {
	gone := time.Since(s.since)
	if gone < period {
		return
	}
	due := s.share() * (min(gone, time.Minute) / period)
	if !s.contended() {
		due = math.MaxInt64 // no other flow wanted that time
	}
	s.active = 0
	for name, f := range s.flows {
		if f.spent > 0 || f.running() {
			s.active++
		}
		f.spent = max(f.spent-due, 0)
		if f.spent == 0 && f.inFlight == 0 && f.idle() {
			delete(s.flows, name)
		}
	}
	s.since = time.Now()
}

// share is the fair share of one flow: its equal part of a period.
func (s *Scheduler) share() time.Duration {
	return period * time.Duration(s.processors) / time.Duration(max(s.active, 2))
}

// overShare reports whether a flow has used its share while another that is
// running has not.
func (s *Scheduler) overShare(f *flow) bool {
	share := s.share()
	if f.spent < share || s.alone(f) {
		return false
	}
	for _, other := range s.flows {
		if other.spent < share && other.running() {
			return true
		}
	}
	return false
}

// dispatchLater dispatches when the next period starts, for flows over their share.
func (s *Scheduler) dispatchLater() {
	if s.timer == nil {
		s.timer = time.AfterFunc(period-time.Since(s.since), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.timer = nil
			s.startPeriod()
			s.dispatchAll()
		})
	}
}
