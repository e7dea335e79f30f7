package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
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
	FailureQueue  int           // different secrets of one id that are compared or wait at the same time; further ones are busy (429)

	Assertions Assertions

	Registry prometheus.Registerer // may be nil

	Parallel int           // BCrypt compares at the same time; default: half the cores, at least one
	Waiting  int           // attempts waiting for a compare; default 1024
	Timeout  time.Duration // of one attempt, including the time that it waits; default 10 s
	Now      func() time.Time
}

// Attempt is what a client sent to authenticate.
type Attempt struct {
	ClientID, Secret string
	RawID, RawSecret string // the other reading of the same text; empty: it has one
	Source           string // address whose failures are counted; empty: not counted
}

// reading is one reading of an attempt, with the registration of its id.
type reading struct {
	id, secret string
	reg        Client
	known      bool
	secrets    []Secret // to compare with; an unknown client has none
	work       int      // of a failure: that of the secrets, or what stands in for it
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
	Detail string // more about an assertion or a secret, in one of a few fixed texts; may be empty
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
	costs   *costs
	burn    func(units int)

	kinds   clientkey.Kinds // of the keys of clients
	replays *replays

	compares prometheus.Histogram
}

// maxProofs is the largest number of remembered secrets: about 1 MiB.
const maxProofs = 1 << 14

// sourceFactor is how many more attempts a source address has than a client id, because many clients can share an
// address.
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
		burn: burn, costs: newCosts(), replays: newReplays(maxReplays),
	}
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
// *[BusyError], wraps [ErrUnavailable], or is the error of ctx.
func (a *Authenticator) Authenticate(ctx context.Context, try Attempt) (Client, error) {
	readings, err := a.read(ctx, try)
	if err != nil {
		return Client{}, err
	}
	var keys []proof
	for _, r := range readings {
		own := a.proofs.all(r.id, r.secrets, r.secret)
		if a.remembered(own, r.secrets, r.secret) && r.known {
			return r.reg, nil
		}
		keys = append(keys, own...)
	}
	matched, err := a.flights.do(ctx, flightKey(keys), func(ctx context.Context) (int, error) {
		return a.compare(ctx, readings, try.Source)
	})
	if err != nil {
		return Client{}, err
	}
	return readings[matched].reg, nil
}

// read looks up the clients of the readings of an attempt. It asks for every id, whether the first is registered or
// not.
func (a *Authenticator) read(ctx context.Context, try Attempt) ([]reading, error) {
	readings := []reading{{id: try.ClientID, secret: try.Secret}}
	if try.RawSecret != "" {
		readings = append(readings, reading{id: try.RawID, secret: try.RawSecret})
	}
	for i := range readings {
		r := &readings[i]
		if i > 0 && r.id == readings[0].id {
			secret := r.secret
			*r = readings[0]
			r.secret = secret
			continue
		}
		var err error
		if r.reg, err = a.lookup(ctx, r.id); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		r.known, r.secrets = err == nil, r.reg.valid(a.c.Now())
		if r.work = totalWork(r.secrets); r.work > 0 {
			a.costs.see(r.id, r.work)
		} else {
			r.work = a.costs.of(r.id)
		}
	}
	return readings, nil
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

// flightKey returns the same key for attempts with the same ids, the same submitted secrets and the same stored
// secrets, which have the same outcome.
func flightKey(keys []proof) string {
	var key []byte
	for _, k := range keys {
		key = append(key, k[:]...)
	}
	return string(key)
}

// compare throttles the attempt, waits for a seat and compares. It returns the reading that matches. What a failure
// costs depends on the ids alone, in the same way whether they are registered or not: see [costs].
func (a *Authenticator) compare(ctx context.Context, readings []reading, source string) (matched int, err error) {
	var begun []attempt
	work := 0
	end := func(refund bool) {
		for _, b := range begun {
			b.end(refund)
		}
	}
	name, known := "", false
	for i, r := range readings {
		work = max(work, r.work) // they are compared at the same time
		if r.known && !known {
			name, known = r.id, true
		}
		if i > 0 && r.id == readings[0].id {
			continue // the readings of an attempt count once
		}
		byID, err := a.ids.begin(ctx, r.id)
		if err != nil {
			end(true)
			return 0, err
		}
		begun = append(begun, byID)
	}
	bySource, err := a.beginSource(ctx, source)
	if err != nil {
		end(true)
		return 0, err
	}
	begun = append(begun, bySource)
	matched, err = a.gate.run(ctx, name, work, func() int {
		defer func(began time.Time) { a.compares.Observe(time.Since(began).Seconds()) }(time.Now())
		return a.matchAny(readings)
	})
	end(matched >= 0 || err != nil)
	switch {
	case err != nil:
		return 0, err
	case !known:
		return 0, &RejectedError{Reason: ReasonUnknown}
	case matched < 0:
		return 0, &RejectedError{Reason: ReasonSecret, Detail: tooLong(readings)}
	}
	return matched, nil
}

func (a *Authenticator) beginSource(ctx context.Context, source string) (attempt, error) {
	if source == "" {
		return attempt{}, nil
	}
	return a.sources.begin(ctx, source)
}

// matchAny returns the first reading that matches, or -1. They are compared at the same time: the gate hides which
// clients are registered only if every attempt is in its seat for as long as others.
func (a *Authenticator) matchAny(readings []reading) int {
	matched := make([]bool, len(readings))
	var others sync.WaitGroup
	for i := range readings[1:] {
		others.Go(func() { matched[1+i] = a.match(readings[1+i]) })
	}
	matched[0] = a.match(readings[0])
	others.Wait()
	return slices.Index(matched, true)
}

// match compares a reading with the stored secrets one by one, and remembers the submitted secret if one matches. If
// there is none to compare with, it does the work that stands in for it.
func (a *Authenticator) match(r reading) bool {
	for _, s := range r.secrets {
		if !s.Plain() && s.matchesHash(r.secret) {
			a.proofs.add(a.proofs.of(r.id, s, r.secret))
			return true
		}
	}
	a.burn(r.work - totalWork(r.secrets))
	return false
}

// tooLong says so if no reading of a secret is short enough for the BCrypt hash that is stored.
func tooLong(readings []reading) string {
	hashed := false
	for _, r := range readings {
		if len(r.secret) <= maxSecret {
			return ""
		}
		hashed = hashed || slices.ContainsFunc(r.secrets, func(s Secret) bool { return !s.Plain() })
	}
	if !hashed {
		return ""
	}
	return "the secret has more than the 72 bytes that BCrypt compares"
}

// lookup returns a registration. Errors are those of storeError.
func (a *Authenticator) lookup(ctx context.Context, clientID string) (Client, error) {
	reg, err := a.c.Store.ByClientID(ctx, clientID)
	return reg, storeError(ctx, err)
}

// storeError returns an error that wraps [ErrNotFound] or [ErrUnavailable], or the error of ctx.
func storeError(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		return err
	case ctx.Err() != nil:
		return ctx.Err() // not an error of the store
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// metrics returns the metrics of attempts and of remembered secrets.
func (a *Authenticator) metrics() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		a.compares,
		gauge("tokensvc_attempts_waiting", "Attempts that wait for a BCrypt compare.", a.gate.length),
		gauge("tokensvc_secrets_remembered", "Secrets that need no BCrypt compare any more.", a.proofs.count),
		gauge("tokensvc_assertions_remembered", "Assertions that have been used and have not expired.", a.replays.length),
	}
}
