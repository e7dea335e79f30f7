package bearer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/service"
)

const (
	defaultMaxStale = 24 * time.Hour

	longestAge   = 5 * time.Minute // between background fetches; the issuer's max-age may shorten it to shortestAge
	shortestAge  = 15 * time.Second
	firstRetry   = 250 * time.Millisecond // after a failed background fetch; doubled up to longestRetry
	longestRetry = 5 * time.Second

	minRefresh  = time.Second      // from any fetch to the next that a request causes
	maxMissing  = 1024             // keys remembered as unknown
	missingLife = 30 * time.Second // how long a key is remembered as unknown
	maxWaiters  = 64               // requests that wait for one fetch; others are answered from the current set, or 503
)

// JWKSConfig says where an issuer's keys come from and how they are kept.
type JWKSConfig struct {
	URL            string        // of the JWK set: https, or http where CheckAddress allows it; required
	Client         *http.Client  // nil: the default one
	AllowHTTPHosts []string      // hosts beside this machine that may be asked over plain HTTP
	Algorithms     []string      // the keys are used with these; empty: RS256
	MaxStale       time.Duration // how long the last good set is used when the issuer does not answer; 0: 24 h
	Log            *slog.Logger  // nil: nothing is logged
	Registry       prometheus.Registerer
	Now            func() time.Time // nil: time.Now
}

// JWKS is the published key set of one issuer. [JWKS.Run] keeps it fresh. A token with an unknown key id causes another
// fetch, but at most one a second, however many such tokens arrive. It is safe for concurrent use.
//
//	no set: 503 → fetched: fresh → after max-age: again … → issuer away: last good set → after MaxStale: 503
type JWKS struct {
	JWKSConfig
	client  *http.Client
	current atomic.Pointer[keySet]
	waiters chan struct{} // bounds the requests that wait for a fetch

	mu       sync.Mutex
	fetching chan struct{} // closed when the fetch under way is done; nil when there is none
	tried    time.Time     // start of the last fetch
	missing  map[keyName]time.Time
	retired  bool // counts nothing any more

	fetches *prometheus.CounterVec
	newest  *prometheus.GaugeVec
}

// keyName is what a token says about its key. The zero value is no key's.
type keyName struct{ kid, alg string }

type keySet struct {
	keys     keysByID
	document []byte
	fetched  time.Time
	maxAge   time.Duration
}

// NewJWKS returns a [JWKS] without keys: [JWKS.Run], or the first call of [JWKS.Key], fetches them.
func NewJWKS(c JWKSConfig) (*JWKS, error) {
	if err := CheckAddress(c.URL, c.AllowHTTPHosts); err != nil {
		return nil, fmt.Errorf("JWKS: %w", err)
	}
	c.MaxStale = cmp.Or(c.MaxStale, defaultMaxStale)
	if err := checkAlgorithms(c.Algorithms); err != nil {
		return nil, fmt.Errorf("JWKS: %w", err)
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{RS256}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &JWKS{
		JWKSConfig: c,
		client:     sameHostClient(c.Client),
		waiters:    make(chan struct{}, maxWaiters),
		missing:    map[keyName]time.Time{},
		fetches: service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jwks_fetches_total", Help: "Fetches of the issuer's keys, by result.",
		}, []string{"url", "result"})),
		newest: service.Register(c.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jwks_last_success_timestamp_seconds", Help: "When the issuer's keys were last fetched.",
		}, []string{"url"})),
	}, nil
}

// Ready returns an error while there is no usable key set.
func (k *JWKS) Ready(context.Context) error {
	set := k.current.Load()
	if set == nil {
		return fmt.Errorf("no keys from %s yet", k.URL)
	}
	if age := k.Now().Sub(set.fetched); age > k.MaxStale {
		return fmt.Errorf("the keys from %s are %s old", k.URL, age.Round(time.Second))
	}
	return nil
}

// state describes, for the log, what a failed fetch means for tokens.
func (k *JWKS) state() string {
	if err := k.Ready(context.Background()); err != nil {
		return err.Error()
	}
	return "the last good set stays in use"
}

// Key implements [KeySet]. The set is fetched again where it lacks the key, which may be new, is too old, or was never
// there. begin limits these fetches.
func (k *JWKS) Key(ctx context.Context, kid, alg string) (Key, error) {
	name := keyName{kid, alg}
	key, err := k.lookup(name)
	if err == nil {
		return key, nil
	}
	k.refresh(ctx, name)
	return k.lookup(name)
}

// lookup finds a key in the current set without fetching.
func (k *JWKS) lookup(name keyName) (Key, error) {
	if err := k.Ready(context.Background()); err != nil {
		return nil, err
	}
	return k.current.Load().keys.find(name.kid, name.alg)
}

// store makes keys the current set.
func (k *JWKS) store(keys keysByID, document []byte, maxAge time.Duration) {
	now := k.Now()
	if maxAge == 0 {
		maxAge = longestAge
	}
	kept, before, count := 0, 0, keys.count()
	if old := k.current.Load(); old != nil {
		kept, before = keepUnchanged(keys, old.keys), old.keys.count()
	}
	k.current.Store(&keySet{keys: keys, document: document, fetched: now, maxAge: min(max(maxAge, shortestAge), longestAge)})
	if kept == count && kept == before {
		return
	}
	k.mu.Lock()
	clear(k.missing)
	k.mu.Unlock()
	k.Log.Info("keys fetched", "url", k.URL, "keys", count, "new", count-kept, "withdrawn", before-kept)
}

// Run fetches the keys at once, and again whenever their max-age has passed, until ctx ends. A failed fetch is logged
// and retried, and the current set stays in use. Run always returns nil.
func (k *JWKS) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		wait := k.untilOld()
		if wait <= 0 {
			if done, first := k.begin(keyName{}); first && k.fetch(ctx, done) == nil {
				retry = firstRetry
				continue
			}
			wait, retry = jitter(retry), min(2*retry, longestRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// untilOld returns the time until the next fetch. It is random within a fifth of the max-age, so that services that
// were started together do not fetch together.
func (k *JWKS) untilOld() time.Duration {
	set := k.current.Load()
	if set == nil {
		return 0
	}
	return jitter(set.maxAge) - k.Now().Sub(set.fetched)
}

// jitter returns a random duration between four fifths of d and d.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/5+1)
}

// refresh fetches a set that lacks a key, is too old or was never there, or waits for the fetch that is under way. It
// reports no error: the caller looks into the current set afterwards.
func (k *JWKS) refresh(ctx context.Context, name keyName) {
	select {
	case k.waiters <- struct{}{}:
		defer func() { <-k.waiters }()
	default:
		return
	}
	switch done, first := k.begin(name); {
	case first:
		// Other requests wait for this fetch, so it goes on when the client of this request leaves.
		if k.fetch(context.WithoutCancel(ctx), done) == nil {
			k.noteMissing(name)
		}
	case done != nil:
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// begin returns the channel of the fetch under way. If there is none, it starts one, and the caller must call fetch
// (first is true). It starts none and returns nil for a key that is known to be missing, and for every key within
// minRefresh of the last fetch. The zero name stands for a background fetch, which is not limited.
func (k *JWKS) begin(name keyName) (done chan struct{}, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	switch since, missing := k.missing[name]; {
	case k.fetching != nil:
		return k.fetching, false
	case missing && now.Sub(since) < missingLife, name != keyName{} && now.Sub(k.tried) < minRefresh:
		return nil, false
	}
	k.fetching, k.tried = make(chan struct{}), now
	return k.fetching, true
}

// noteMissing remembers a key that was not in the set that was fetched for it, so that it causes no fetch for
// missingLife. All such keys are forgotten when there are too many, and when the set changes.
func (k *JWKS) noteMissing(name keyName) {
	if _, err := k.lookup(name); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.missing) >= maxMissing {
		clear(k.missing)
	}
	k.missing[name] = k.Now()
}

// fetch does the fetch that begin started, and ends the waiting of others for it.
func (k *JWKS) fetch(ctx context.Context, done chan struct{}) error {
	defer func() {
		k.mu.Lock()
		k.fetching = nil
		k.mu.Unlock()
		close(done)
	}()
	body, maxAge, err := get(ctx, k.client, k.URL)
	var keys keysByID
	if err == nil {
		keys, err = parseKeys(body, k.Algorithms, k.Log)
	}
	if err != nil {
		k.count("failed")
		k.Log.Warn("keys not fetched", "url", k.URL, "error", err, "state", k.state())
		return err
	}
	k.store(keys, body, maxAge)
	k.count("ok")
	return nil
}
