package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says how attempts are judged. Only Store is required.
type Config struct {
	Store Store

	// Throttling of failures, per client id and per source address. FailureRefill <= 0 turns it off.
	FailureBurst  int           // wrong secrets in a row before attempts have to wait
	FailureRefill time.Duration // one more attempt per this time
	FailureQueue  int           // attempts waiting per id before 429

	Registry prometheus.Registerer // may be nil

	Parallel int           // BCrypt compares at a time; default: half the cores, at least one
	Waiting  int           // attempts waiting for a compare; default 1024
	Timeout  time.Duration // for one attempt with all waiting; default 10 s
	Now      func() time.Time
}

// Attempt is what a client sent to authenticate.
type Attempt struct {
	ClientID string
	Secret   string
	Source   string // address that failures are counted under; empty: not counted
}

// ErrUnavailable says that the store could not be asked.
var ErrUnavailable = errors.New("client registrations cannot be read")

// Why an attempt is rejected.
const (
	ReasonUnknown = "unknown_client"
	ReasonSecret  = "wrong_secret"
)

// RejectedError says that the attempt is refused. The reason is for the operator, never for the client.
type RejectedError struct {
	Reason string // ReasonUnknown or ReasonSecret
}

// Error names the reason.
func (e *RejectedError) Error() string { return "client authentication failed: " + e.Reason }

// BusyError says that the attempt was not judged because too many are waiting.
type BusyError struct {
	Reason     string // gate_full, gate_timeout, throttle_full, throttle_timeout
	RetryAfter time.Duration
}

// Error names the reason.
func (e *BusyError) Error() string { return "too many attempts are waiting: " + e.Reason }

// Authenticator judges attempts.
type Authenticator struct {
	c       Config
	proofs  *proofs
	gate    *gate
	ids     *throttle
	sources *throttle
	flights flights
	budget  atomic.Int64 // work that every failure costs: that of the dearest registration seen
	burn    func(units int)

	compares prometheus.Histogram
}

// maxProofs bounds the remembered secrets, about 1 MiB.
const maxProofs = 1 << 14

// sourceFactor is how much more a source address may try than a client id: many clients can share an address.
const sourceFactor = 16

// New returns an Authenticator.
func New(c Config) (*Authenticator, error) {
	if c.Store == nil {
		return nil, errors.New("client: Config.Store is required")
	}
	c.Parallel = orDefault(c.Parallel, max(1, runtime.GOMAXPROCS(0)/2))
	c.Waiting = orDefault(c.Waiting, 1024)
	c.Timeout = orDefault(c.Timeout, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &Authenticator{c: c, proofs: newProofs(maxProofs), gate: newGate(c.Parallel, c.Waiting), flights: flights{timeout: c.Timeout}, burn: burn}
	a.budget.Store(1)
	a.compares = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tokensvc_secret_compare_seconds", Help: "Time to compare one submitted secret by BCrypt, without waiting.",
		Buckets: []float64{.025, .05, .1, .2, .4, .8, 1.6},
	})
	if c.FailureRefill > 0 {
		a.ids = newThrottle(c.FailureBurst, c.FailureRefill, c.FailureQueue, c.Now)
		a.sources = newThrottle(sourceFactor*c.FailureBurst, c.FailureRefill/sourceFactor, sourceFactor*c.FailureQueue, c.Now)
	}
	if c.Registry != nil {
		c.Registry.MustRegister(a.metrics()...)
	}
	return a, nil
}

func orDefault[T int | time.Duration](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// Authenticate returns the client whose id and secret these are. Errors are *RejectedError, *BusyError, wrap
// ErrUnavailable, or are those of ctx.
func (a *Authenticator) Authenticate(ctx context.Context, try Attempt) (Client, error) {
	reg, err := a.c.Store.ByClientID(ctx, try.ClientID)
	known := err == nil
	if !known && !errors.Is(err, ErrNotFound) {
		if ctx.Err() != nil {
			return Client{}, ctx.Err() // the store is not to blame
		}
		return Client{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	secrets := a.valid(reg)
	keys := a.proofs.all(try.ClientID, secrets, try.Secret)
	if a.remembered(keys, secrets, try.Secret) && known {
		return reg, nil
	}
	err = a.flights.do(ctx, flightKey(keys), func(ctx context.Context) error {
		return a.compare(ctx, try, secrets, known)
	})
	if err != nil {
		return Client{}, err
	}
	return reg, nil
}

// valid returns the secrets to compare with, none for an unknown client, and keeps the work that failures have to cost
// up to date.
func (a *Authenticator) valid(reg Client) []Secret {
	secrets := reg.valid(a.c.Now())
	work := int64(totalWork(secrets))
	for seen := a.budget.Load(); work > seen && !a.budget.CompareAndSwap(seen, work); seen = a.budget.Load() {
	}
	return secrets
}

func totalWork(secrets []Secret) int {
	work := 0
	for _, s := range secrets {
		work += s.work()
	}
	return work
}

// remembered reports whether the secret needs no BCrypt: it was confirmed before, or is stored as plain text.
func (a *Authenticator) remembered(keys []proof, secrets []Secret, secret string) bool {
	for _, k := range keys {
		if a.proofs.has(k) {
			return true
		}
	}
	return slices.ContainsFunc(secrets, func(s Secret) bool { return s.matchesPlain(secret) })
}

// flightKey is equal for attempts whose outcome must be equal: same id, same submitted and same stored secrets.
func flightKey(keys []proof) string {
	var key []byte
	for _, k := range keys {
		key = append(key, k[:]...)
	}
	return string(key)
}

// compare waits for its turn and compares; whatever fails costs the same.
func (a *Authenticator) compare(ctx context.Context, try Attempt, secrets []Secret, known bool) error {
	byID, err := a.ids.begin(ctx, try.ClientID)
	if err != nil {
		return err
	}
	bySource, err := a.beginSource(ctx, try.Source)
	if err != nil {
		byID.end(true)
		return err
	}
	matched, err := a.atGate(ctx, try, secrets, known)
	if err != nil {
		byID.end(true)
		bySource.end(true)
		return err
	}
	byID.end(matched && known)
	bySource.end(matched && known)
	switch {
	case !known:
		return &RejectedError{Reason: ReasonUnknown}
	case !matched:
		return &RejectedError{Reason: ReasonSecret}
	}
	return nil
}

// atGate compares when the gate lets it. Who fails early, in its client's turn, does the work once more when it would
// have been its time without a turn.
func (a *Authenticator) atGate(ctx context.Context, try Attempt, secrets []Secret, known bool) (matched bool, err error) {
	turn := ""
	if known {
		turn = try.ClientID
	}
	place, err := a.gate.enter(ctx, turn)
	if err != nil {
		return false, err
	}
	matched = a.timed(func() bool { return a.match(secrets, try) })
	if !matched && place.early {
		if err := a.gate.failed(ctx, place); err != nil {
			return false, err
		}
		a.timed(func() bool { return a.match(nil, try) })
	}
	a.gate.leave(place)
	return matched, nil
}

// timed measures a compare.
func (a *Authenticator) timed(compare func() bool) bool {
	begin := time.Now()
	defer func() { a.compares.Observe(time.Since(begin).Seconds()) }()
	return compare()
}

func (a *Authenticator) beginSource(ctx context.Context, source string) (attempt, error) {
	if source == "" {
		return attempt{}, nil
	}
	return a.sources.begin(ctx, source)
}

// match compares with one stored secret after the other and remembers the one that fits. When none does, it goes on
// until the budget is spent.
func (a *Authenticator) match(secrets []Secret, try Attempt) bool {
	for _, s := range secrets {
		if !s.Plain() && s.matchesHash(try.Secret) {
			a.proofs.add(a.proofs.of(try.ClientID, s, try.Secret))
			return true
		}
	}
	a.burn(int(a.budget.Load()) - totalWork(secrets))
	return false
}
