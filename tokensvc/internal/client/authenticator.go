package client

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/tokensvc/internal/clientkey"
)

// Config are the settings of an [Authenticator]. Only Store is required.
type Config struct {
	Store Store

	// Throttling of failures, per client id and per source address. FailureRefill <= 0 disables it.
	FailureBurst  int           // wrong secrets in a row before attempts have to wait
	FailureRefill time.Duration // one more attempt per this time
	FailureQueue  int           // attempts per id at the same time; further ones are busy (429)

	Assertions Assertions

	Registry prometheus.Registerer // may be nil

	Parallel int           // BCrypt compares at the same time; default: half the cores, at least one
	Waiting  int           // attempts waiting for a compare; default 1024
	Timeout  time.Duration // of one attempt, including the time that it waits; default 10 s
	Now      func() time.Time
}

// Attempt is what a client sent to authenticate.
type Attempt struct {
	ClientID string
	Secret   string
	Source   string // address whose failures are counted; empty: not counted
}

// ErrUnavailable reports that registrations cannot be read at present.
var ErrUnavailable = errors.New("client registrations cannot be read")

// The reasons of a [RejectedError].
const (
	ReasonUnknown   = "unknown_client"
	ReasonSecret    = "wrong_secret"
	ReasonAssertion = "wrong_assertion"
)

// RejectedError refuses an attempt. The reason is for logs and metrics and must not be told to the client.
type RejectedError struct {
	Reason string // one of the Reason constants
	Detail string // what is wrong with an assertion, in one of a few fixed texts
}

// Error returns a text with the reason.
func (e *RejectedError) Error() string {
	if e.Detail == "" {
		return "client authentication failed: " + e.Reason
	}
	return "client authentication failed: " + e.Reason + ": " + e.Detail
}

// BusyError reports that an attempt was not examined because too many are waiting.
type BusyError struct {
	Reason     string // gate_full, gate_timeout, throttle_full, throttle_timeout, replays_full
	RetryAfter time.Duration
}

// Error returns a text with the reason.
func (e *BusyError) Error() string { return "too many attempts are waiting: " + e.Reason }

// Authenticator authenticates clients by their secrets or assertions. It is safe for concurrent use.
type Authenticator struct {
	c       Config
	proofs  *proofs
	gate    *gate
	ids     *throttle
	sources *throttle
	flights flights
	budget  atomic.Int64 // work of a failure: the largest work of a registration that was seen
	burn    func(units int)

	kinds   clientkey.Kinds // of the keys of clients
	replays *replays

	compares prometheus.Histogram
}

// maxProofs is the largest number of remembered secrets: about 1 MiB.
const maxProofs = 1 << 14

// sourceFactor is how many more attempts a source address has than a client id, because many clients can share an address.
const sourceFactor = 16

// New returns an Authenticator.
func New(c Config) (*Authenticator, error) {
	if c.Store == nil {
		return nil, errors.New("client: Config.Store is required")
	}
	c.Parallel = cmp.Or(c.Parallel, max(1, runtime.GOMAXPROCS(0)/2))
	c.Waiting = cmp.Or(c.Waiting, 1024)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &Authenticator{
		c: c, proofs: newProofs(maxProofs), gate: newGate(c.Parallel, c.Waiting), flights: flights{timeout: c.Timeout},
		burn: burn, replays: newReplays(maxReplays),
	}
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

// Authenticate returns the registration of the client if the secret is right. An error is a *[RejectedError], a
// *[BusyError], wraps [ErrUnavailable], or is that of ctx.
func (a *Authenticator) Authenticate(ctx context.Context, try Attempt) (Client, error) {
	reg, err := a.lookup(ctx, try.ClientID)
	known := err == nil
	if !known && !errors.Is(err, ErrNotFound) {
		return Client{}, err
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

// valid returns the secrets to compare with; an unknown client has none. It raises the budget of failures to the work of
// these secrets.
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

// remembered reports whether a secret is right without BCrypt: it was confirmed before, or is stored as plain text.
func (a *Authenticator) remembered(keys []proof, secrets []Secret, secret string) bool {
	return slices.ContainsFunc(keys, a.proofs.has) ||
		slices.ContainsFunc(secrets, func(s Secret) bool { return s.matchesPlain(secret) })
}

// flightKey returns the same key for attempts with the same id, the same submitted secret and the same stored secrets,
// which have the same outcome.
func flightKey(keys []proof) string {
	var key []byte
	for _, k := range keys {
		key = append(key, k[:]...)
	}
	return string(key)
}

// compare throttles the attempt, waits for a seat and compares. Every failure costs the same work.
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
	name := ""
	if known {
		name = try.ClientID
	}
	matched, err := a.gate.run(ctx, name, func() bool {
		defer func(began time.Time) { a.compares.Observe(time.Since(began).Seconds()) }(time.Now())
		return a.match(secrets, try)
	})
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

func (a *Authenticator) beginSource(ctx context.Context, source string) (attempt, error) {
	if source == "" {
		return attempt{}, nil
	}
	return a.sources.begin(ctx, source)
}

// match compares with the stored secrets one by one, and remembers the submitted secret if one matches. If none does, it
// spends the rest of the budget.
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
