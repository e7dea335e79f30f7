package client

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"
)

// Apart returns n client ids, or source addresses, of which no two share an allowance. Which names share one is random,
// so a test with fixed names would fail once in a hundred runs.
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
	held, released := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = a.gate.run(context.Background(), "held by the test", 1, func() int {
			close(held)
			<-released
			return 0
		})
	}()
	<-held
	return func() { close(released) }
}

// CompareTakes replaces the work of a failure by a wait in fake time, because BCrypt takes a second under the race
// detector.
func (a *Authenticator) CompareTakes(d time.Duration) { a.burn = func(int) { time.Sleep(d) } }

// Burns replaces the work that stands in for a compare.
func (a *Authenticator) Burns(burn func(units int)) { a.burn = burn }

// Seen records the work of a registered id, as a look-up does.
func (a *Authenticator) Seen(id string, work int) { a.costs.see(id, work) }

// Work is what a failed attempt costs of an id without secrets.
func (a *Authenticator) Work(id string) int { return a.costs.of(id) }

// MatchesHash compares with a stored hash of any cost. The costs that are accepted take too long for fuzzing.
func MatchesHash(hash, secret string) bool { return Secret{encoded: hash}.matchesHash(secret) }

// Gate is a gate without an authenticator, for states that attempts do not reach reliably.
type Gate struct{ *gate }

// NewGate returns a gate for so many compares at a time.
func NewGate(parallel int) Gate { return Gate{newGate(parallel, 100)} }

// Run calls compare in a seat. A failure costs so much work.
func (g Gate) Run(ctx context.Context, client string, work int, compare func() int) (int, error) {
	return g.run(ctx, client, work, compare)
}

// Free is the number of free seats.
func (g Gate) Free() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free
}

// Replays is a table of used assertions, for states that assertions do not reach in a test.
type Replays struct{ *replays }

// MaxReplays is the size of the table in use.
const MaxReplays = maxReplays

// NewReplays returns a table for so many assertions.
func NewReplays(all int) Replays { return Replays{newReplays(all)} }

// Replays are the used assertions that a remembers.
func (a *Authenticator) Replays() Replays { return Replays{a.replays} }

// Add remembers an assertion.
func (r Replays) Add(clientID, jti string, until, now time.Time) string {
	return map[replay]string{firstUse: "first", replayed: "replayed", noRoom: "no room"}[r.add(clientID, jti, until, now)]
}

// Length is the number of remembered assertions.
func (r Replays) Length() int { return r.length() }
