package api

import (
	"strconv"
	"time"
)

// FloodCreateRates creates n events, each in a namespace of its own, at one a
// second for each. It returns the buckets that are kept and how many passed.
func FloodCreateRates(start time.Time, n int, at func(i int) time.Time) (kept, passed int) {
	rates := newCreateRates(Limits{NamespaceCreateRate: Rate{PerSecond: 1, Burst: 1}})
	for i := range n {
		if rates.take(at(i), "client", strconv.Itoa(i)) == nil {
			passed++
		}
	}
	return len(rates[0].byKey), passed
}

// ReadNothingAhead takes all room that lists have to be read ahead in, beyond a
// buffer each, and returns what gives it back.
func (s *Server) ReadNothingAhead() (undo func()) {
	for s.buffers.more.take() {
	}
	return func() { s.buffers.more.Store(0) }
}

// Ahead is how many buffers lists have, beyond one each.
func (s *Server) Ahead() int { return int(s.buffers.more.Load()) }
