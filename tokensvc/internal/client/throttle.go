package client

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// throttle slows guessing down. Every name (a client id or a source address) has an allowance of attempts that refills
// with time. A right secret returns its attempt. An attempt without allowance waits for it, and is refused only if too
// many wait under the same name. No name is ever locked out.
//
// The table has a fixed size and is indexed by a keyed hash. So registered and unknown ids are treated alike, the table
// cannot overflow, and an attacker cannot choose names that collide.
type throttle struct {
	burst  int           // attempts that may be spent at once
	refill time.Duration // time for one more attempt
	queue  int           // attempts per name at the same time
	now    func() time.Time

	seed  maphash.Seed
	mu    sync.Mutex
	table []allowance
}

// allowance counts the attempts of the names with one hash. The zero value is a full allowance.
type allowance struct {
	limiter  *rate.Limiter // its tokens are negative while attempts wait
	underway int
}

const throttleNames = 1 << 14

func newThrottle(burst int, refill time.Duration, queue int, now func() time.Time) *throttle {
	return &throttle{
		burst: burst, refill: refill, queue: queue, now: now,
		seed: maphash.MakeSeed(), table: make([]allowance, throttleNames),
	}
}

// attempt is an attempt that has begun; the caller must call end.
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

// spend takes one attempt from the allowance and returns how long to wait for it.
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

// refund returns an attempt to the allowance. A Reservation cannot be cancelled after its time has come, which is
// before the secret is compared, so refund reserves -1.
func (e *allowance) refund(now time.Time) { e.limiter.ReserveN(now, -1) }

// end ends the attempt. It is refunded if the secret was right, or if the attempt was not decided.
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
