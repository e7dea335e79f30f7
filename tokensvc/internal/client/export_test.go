package client

import (
	"context"
	"time"
)

// HoldGate occupies the one place of a gate, so that attempts line up, until the returned function is called.
func (a *Authenticator) HoldGate() (release func()) {
	place, err := a.gate.enter(context.Background(), "held by the test")
	if err != nil {
		panic(err)
	}
	return func() { a.gate.leave(place) }
}

// CompareTakes makes the work of a failure a wait on the clock of the test's bubble: BCrypt takes a second under the race
// detector.
func (a *Authenticator) CompareTakes(d time.Duration) { a.burn = func(int) { time.Sleep(d) } }
