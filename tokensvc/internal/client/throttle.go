package client

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// throttle slows guessing down. Every name (a client id, a source address) has an allowance of attempts that refills
// with time; a right secret gives its attempt back. Who is out of allowance waits for it, and is sent away only when
// too many wait under the same name. Nobody is ever locked out.
//
// The table has a fixed size and is indexed by a keyed hash: ids that exist and ids that do not look the same in it,
// it cannot be filled up, and names that collide cannot be chosen from outside.
type throttle struct {
	burst  int           // attempts that may be spent at once
	refill time.Duration // per attempt
	queue  int           // attempts under way per name
	now    func() time.Time

	seed  maphash.Seed
	mu    sync.Mutex
	table []allowance
}

// allowance of one name. The zero value is a full one.
type allowance struct {
	limiter  *rate.Limiter // below zero: somebody waits
	underway int
}

const throttleNames = 1 << 14

func newThrottle(burst int, refill time.Duration, queue int, now func() time.Time) *throttle {
	return &throttle{
		burst: burst, refill: refill, queue: queue, now: now,
		seed: maphash.MakeSeed(), table: make([]allowance, throttleNames),
	}
}

// attempt is one that began under a name and must end.
type attempt struct {
	t    *throttle
	slot uint64
}

// begin waits until name has allowance left. A nil throttle never waits.
func (t *throttle) begin(ctx context.Context, name string) (attempt, error) {
	if t == nil {
		return attempt{}, nil
	}
	a := attempt{t: t, slot: maphash.String(t.seed, name) % throttleNames}
	wait, err := a.spend()
	if err != nil || wait <= 0 {
		return a, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return a, nil
	case <-ctx.Done():
		a.end(true)
		return a, &BusyError{Reason: "throttle_timeout", RetryAfter: wait}
	}
}

// spend takes one attempt from the allowance and says how long to wait for it.
func (a attempt) spend() (time.Duration, error) {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &t.table[a.slot]
	if e.limiter == nil {
		e.limiter = rate.NewLimiter(rate.Every(t.refill), t.burst)
	}
	now := t.now()
	wait := e.limiter.ReserveN(now, 1).DelayFrom(now)
	if e.underway >= t.queue {
		e.refund(now)
		return 0, &BusyError{Reason: "throttle_full", RetryAfter: max(wait, time.Second)}
	}
	e.underway++
	return wait, nil
}

// refund gives an attempt back. A Reservation can be cancelled only until its time has come, and a secret is known to be
// right only after that; so the attempt is reserved with the opposite sign.
func (e *allowance) refund(now time.Time) { e.limiter.ReserveN(now, -1) }

// end closes the attempt; a refund is for right secrets and for attempts that came to no decision.
func (a attempt) end(refund bool) {
	if a.t == nil {
		return
	}
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	e := &a.t.table[a.slot]
	e.underway--
	if refund {
		e.refund(a.t.now())
	}
}
