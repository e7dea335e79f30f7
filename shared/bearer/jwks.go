package bearer

import (
	"context"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	defaultMinRefresh = time.Second
	defaultMaxAge     = 5 * time.Minute
	defaultMaxStale   = 24 * time.Hour

	shortestAge  = 15 * time.Second       // between background fetches, however short the issuer's max-age is
	firstRetry   = 250 * time.Millisecond // after a failed background fetch; doubled up to longestRetry
	longestRetry = 5 * time.Second

	maxMissing  = 1024             // key ids remembered as unknown
	missingLife = 30 * time.Second // how long they are
	maxWaiters  = 64               // requests that wait for one fetch; others are answered from what is there
)

// JWKSConfig says where an issuer's keys come from and how they are kept.
type JWKSConfig struct {
	URL            string        // of the JWK set: https, or http where checkAddress allows it; required
	Client         *http.Client  // nil: the default one
	AllowHTTPHosts []string      // hosts beside this machine that may be asked over plain HTTP
	MinRefresh     time.Duration // least time between fetches caused by unknown key ids; 0: 1 s
	MaxAge         time.Duration // longest time between background fetches; the issuer's max-age may shorten it; 0: 5 min
	MaxStale       time.Duration // how long the last good set is used when the issuer does not answer; 0: 24 h
	Timeout        time.Duration // of one fetch; 0: 5 s
	MaxBytes       int64         // of the document; 0: 512 KiB
	Log            *slog.Logger  // nil: nothing is logged
	Registry       prometheus.Registerer
	Now            func() time.Time // nil: time.Now
}

// JWKS is the published key set of one issuer. [JWKS.Run] keeps it fresh; a token with an unknown key id makes it look
// again, at most once per MinRefresh however many such tokens come. It is safe for concurrent use.
//
//	no set ──fetch──► fresh ──max-age──► refetched … ──issuer away──► last good set ──MaxStale──► unavailable (503)
type JWKS struct {
	JWKSConfig
	source  source
	current atomic.Pointer[keySet]
	waiters chan struct{} // bounds the requests that wait for a fetch

	mu       sync.Mutex
	fetching chan struct{} // closed when the fetch under way is done; nil when there is none
	tried    time.Time     // start of the last fetch
	missing  map[string]time.Time

	fetches *prometheus.CounterVec
	newest  *prometheus.GaugeVec
}

type keySet struct {
	keys    map[string]*rsa.PublicKey
	fetched time.Time
	maxAge  time.Duration
}

// NewJWKS makes a [JWKS]. Nothing is fetched yet.
func NewJWKS(c JWKSConfig) (*JWKS, error) {
	if err := checkAddress(c.URL, c.AllowHTTPHosts); err != nil {
		return nil, fmt.Errorf("JWKS: %w", err)
	}
	for setting, fallback := range map[*time.Duration]time.Duration{
		&c.MinRefresh: defaultMinRefresh, &c.MaxAge: defaultMaxAge, &c.MaxStale: defaultMaxStale,
	} {
		if *setting <= 0 {
			*setting = fallback
		}
	}
	c.MaxAge = max(c.MaxAge, c.MinRefresh)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &JWKS{
		JWKSConfig: c,
		source:     newSource(c.Client, c.Timeout, c.MaxBytes),
		waiters:    make(chan struct{}, maxWaiters),
		missing:    map[string]time.Time{},
		fetches: registered(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jwks_fetches_total", Help: "Fetches of the issuer's keys, by result.",
		}, []string{"url", "result"})),
		newest: registered(c.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jwks_last_success_timestamp_seconds", Help: "When the issuer's keys were last fetched.",
		}, []string{"url"})),
	}, nil
}

// Ready is an error while there is no usable key set.
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

// state says for the log what a failed fetch means.
func (k *JWKS) state() string {
	if err := k.Ready(context.Background()); err != nil {
		return err.Error()
	}
	return "the last good set stays in use"
}

// Key finds a key. An id that is not there may be new: the set is fetched once more, unless that was done a moment ago.
func (k *JWKS) Key(ctx context.Context, kid string) (*rsa.PublicKey, error) {
	key, err := k.lookup(kid)
	if err == nil {
		return key, nil
	}
	k.refresh(ctx, kid)
	return k.lookup(kid)
}

// lookup looks into the set that is there.
func (k *JWKS) lookup(kid string) (*rsa.PublicKey, error) {
	set := k.current.Load()
	if set == nil || k.Now().Sub(set.fetched) > k.MaxStale {
		return nil, k.Ready(context.Background())
	}
	if key := set.keys[kid]; key != nil {
		return key, nil
	}
	return nil, ErrUnknownKey
}

// refresh fetches the set because of an unknown id, or waits for the fetch that is under way. It does not fail: what
// counts is the set that is there afterwards.
func (k *JWKS) refresh(ctx context.Context, kid string) {
	select {
	case k.waiters <- struct{}{}:
		defer func() { <-k.waiters }()
	default:
		return
	}
	done, first := k.begin(kid)
	if first {
		// Others wait for this fetch, so the leaving of the one whose request caused it must not end it.
		if k.fetch(context.WithoutCancel(ctx), done) == nil {
			k.noteMissing(kid)
		}
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// alreadyDone is what begin returns where nothing is to be waited for.
func alreadyDone() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// begin joins the fetch under way, or starts one that the caller then has to carry out. Neither happens for an id that is
// known to be missing, or within MinRefresh of the last fetch. An empty id stands for a fetch that is due.
func (k *JWKS) begin(kid string) (done chan struct{}, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	switch since, missing := k.missing[kid]; {
	case k.fetching != nil:
		return k.fetching, false
	case missing && now.Sub(since) < missingLife, kid != "" && now.Sub(k.tried) < k.MinRefresh:
		return alreadyDone(), false
	}
	k.fetching, k.tried = make(chan struct{}), now
	return k.fetching, true
}

// noteMissing notes an id that a set fetched on its behalf does not have, so that it causes no further fetch for a while.
// The notes are thrown away when they become too many and when another set comes.
func (k *JWKS) noteMissing(kid string) {
	if _, err := k.lookup(kid); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.missing) >= maxMissing {
		clear(k.missing)
	}
	k.missing[kid] = k.Now()
}

// fetch carries out the fetch that begin started.
func (k *JWKS) fetch(ctx context.Context, done chan struct{}) error {
	defer func() {
		k.mu.Lock()
		k.fetching = nil
		k.mu.Unlock()
		close(done)
	}()
	body, maxAge, err := k.source.get(ctx, k.URL)
	var keys map[string]*rsa.PublicKey
	if err == nil {
		keys, err = parseKeys(body, k.Log)
	}
	if err != nil {
		k.fetches.WithLabelValues(k.URL, "failed").Inc()
		k.Log.Warn("keys not fetched", "url", k.URL, "error", err, "state", k.state())
		return err
	}
	k.fetches.WithLabelValues(k.URL, "ok").Inc()
	k.store(keys, maxAge)
	return nil
}

// store makes keys the current set. Keys that stay keep their identity, which makes a remembered token cheap to check.
func (k *JWKS) store(keys map[string]*rsa.PublicKey, maxAge time.Duration) {
	now := k.Now()
	if maxAge == 0 || maxAge > k.MaxAge {
		maxAge = k.MaxAge
	}
	kept, before := 0, 0
	if old := k.current.Load(); old != nil {
		before = len(old.keys)
		for kid, key := range keys {
			if known := old.keys[kid]; known != nil && known.Equal(key) {
				keys[kid] = known
				kept++
			}
		}
	}
	k.current.Store(&keySet{keys: keys, fetched: now, maxAge: max(maxAge, min(shortestAge, k.MaxAge))})
	k.newest.WithLabelValues(k.URL).Set(float64(now.Unix()))
	if kept == len(keys) && kept == before {
		return
	}
	k.mu.Lock()
	clear(k.missing)
	k.mu.Unlock()
	k.Log.Info("keys fetched", "url", k.URL, "keys", len(keys), "new", len(keys)-kept, "withdrawn", before-kept)
}

// Run fetches the keys now and then again whenever they have become old, until ctx ends. Failures are tried again and
// are no error: the service goes on with what it has.
func (k *JWKS) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		wait := k.untilOld()
		if wait <= 0 {
			if done, first := k.begin(""); first && k.fetch(ctx, done) == nil {
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

// untilOld is the time until the set has to be fetched again, a little shorter each time so that services that were
// started together do not ask together.
func (k *JWKS) untilOld() time.Duration {
	set := k.current.Load()
	if set == nil {
		return 0
	}
	return jitter(set.maxAge) - k.Now().Sub(set.fetched)
}

// jitter is between four fifths of d and d.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/5+1)
}
