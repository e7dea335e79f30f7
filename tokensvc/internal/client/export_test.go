package client

import "context"

// HoldGate occupies the one place of a gate, so that attempts line up, until the returned function is called.
func (a *Authenticator) HoldGate() (release func()) {
	if err := a.gate.enter(context.Background(), "held by the test"); err != nil {
		panic(err)
	}
	return a.gate.leave
}

// Effortless makes failures cost nothing, for tests that are about order and waiting. BCrypt takes about a second under
// the race detector.
func (a *Authenticator) Effortless() { a.budget.Store(0) }
