package client

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"
)

// Apart returns n client ids, or source addresses, of which no two share an allowance: which names do is drawn at random
// when an authenticator is made, so that a test with names of its own would see others' attempts once in a hundred runs.
func (a *Authenticator) Apart(n int) []string {
	var names []string
	taken := map[uint64]bool{}
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprint("name", i)
		id, source := maphash.String(a.ids.seed, name)%throttleNames, maphash.String(a.sources.seed, name)%throttleNames
		if taken[id] || taken[throttleNames+source] {
			continue
		}
		taken[id], taken[throttleNames+source] = true, true
		names = append(names, name)
	}
	return names
}

// HoldGate takes the only seat of a gate, so that attempts wait, until the returned function is called.
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

// MatchesHash compares with a stored hash of any cost: those that are accepted take too long to fuzz with.
func MatchesHash(hash, secret string) bool { return Secret{encoded: hash}.matchesHash(secret) }

// Gate is a gate without an authenticator, for states that attempts cannot be brought to at a given time.
type Gate struct{ g *gate }

// NewGate returns a gate for so many compares at a time.
func NewGate(parallel int) Gate { return Gate{newGate(parallel, 100)} }

// Place is a seat of a gate.
type Place struct {
	g *gate
	w *waiter
}

// Enter waits for a seat.
func (g Gate) Enter(ctx context.Context, name string) (Place, error) {
	w, err := g.g.enter(ctx, name)
	return Place{g.g, w}, err
}

// Early reports whether the seat is one of the fair queue.
func (p Place) Early() bool { return p.w.early }

// Failed reports that the compare in a seat of the fair queue did not match.
func (p Place) Failed(ctx context.Context) error { return p.g.failed(ctx, p.w) }

// Leave gives the seat back.
func (p Place) Leave() { p.g.leave(p.w) }

// Free is the number of free seats.
func (g Gate) Free() int {
	g.g.mu.Lock()
	defer g.g.mu.Unlock()
	return g.g.free
}
