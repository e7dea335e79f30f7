package access

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/policy"
)

// Rate bounds how many events are created.
type Rate struct {
	PerSecond float64 // 0: no limit
	Burst     int     // how many at once
}

// UnmarshalText reads RATE or RATE:BURST.
func (r *Rate) UnmarshalText(text []byte) error {
	perSecond, burst, withBurst := strings.Cut(string(text), ":")
	n, err := strconv.ParseFloat(perSecond, 64)
	many := int(math.Ceil(n))
	if err == nil && withBurst {
		many, err = strconv.Atoi(burst)
	}
	if err != nil || !(n >= 0 && n <= 1e9) || many < 1 && n > 0 {
		return fmt.Errorf("%q is no rate: write RATE or RATE:BURST, how many a second and how many at once, for instance 100 or 100:1000; 0: no limit", text)
	}
	*r = Rate{PerSecond: n, Burst: many}
	return nil
}

// String is the rate as it is written.
func (r Rate) String() string {
	if r.PerSecond == 0 {
		return "0"
	}
	return fmt.Sprintf("%g:%d", r.PerSecond, r.Burst)
}

// Rates are the rates of all clients together, of each client and in each namespace.
type Rates struct{ All, Client, Namespace Rate }

// maxBuckets bounds the memory of the rates of clients, and of namespaces.
const maxBuckets = 16384

// createRates are the rates that are set.
type createRates []*buckets

func newCreateRates(l Rates) createRates {
	var rates createRates
	for _, b := range []*buckets{
		{limit: "client-create-rate", rate: l.Client, key: func(client, _ string) string { return client }},
		{limit: "namespace-create-rate", rate: l.Namespace, key: func(_, namespace string) string { return namespace }},
		{limit: "create-rate", rate: l.All, key: func(_, _ string) string { return "" }},
	} {
		if b.rate.PerSecond > 0 {
			b.byKey, b.rest = map[string]*rate.Limiter{}, b.rate.limiter()
			rates = append(rates, b)
		}
	}
	return rates
}

// take counts one new event in. If one of the rates is used up, the event is counted in
// none, so that a client beyond its own rate takes nothing from the others.
func (r createRates) take(now time.Time, client, namespace string) error {
	var taken [3]*rate.Reservation
	for i, b := range r {
		taken[i] = b.take(now, b.key(client, namespace))
		wait := taken[i].DelayFrom(now)
		if wait == 0 {
			continue
		}
		for _, t := range taken[:i+1] {
			t.CancelAt(now)
		}
		return httpio.Beyond(b.limit, apierrors.NewTooManyRequests(
			"too many events are being created ("+b.limit+"), please try again", int(math.Ceil(wait.Seconds()))))
	}
	return nil
}

// buckets are the token buckets of one rate, at most maxBuckets. A full bucket is
// dropped when there is no room, because a new one is full too. While no bucket can be
// dropped, all keys without one share the bucket rest, so that a client gains nothing by
// using new names.
type buckets struct {
	limit string
	rate  Rate
	key   func(client, namespace string) string

	mu    sync.Mutex
	byKey map[string]*rate.Limiter
	rest  *rate.Limiter // of those without a bucket of their own
	swept time.Time
}

func (r Rate) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(r.PerSecond), max(1, r.Burst))
}

// take reserves a token, which may become available only later.
func (b *buckets) take(now time.Time, key string) *rate.Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(now, key).ReserveN(now, 1)
}

// of returns the bucket of a key.
func (b *buckets) of(now time.Time, key string) *rate.Limiter {
	if bucket, ok := b.byKey[key]; ok {
		return bucket
	}
	if len(b.byKey) >= maxBuckets && now.Sub(b.swept) >= time.Second {
		b.swept = now
		maps.DeleteFunc(b.byKey, func(_ string, bucket *rate.Limiter) bool { return bucket.TokensAt(now) >= float64(bucket.Burst()) })
	}
	if len(b.byKey) >= maxBuckets {
		return b.rest
	}
	bucket := b.rate.limiter()
	b.byKey[key] = bucket
	return bucket
}

// HasRates reports whether new events are counted at any rate.
func (g *Guard) HasRates() bool { return len(g.rates) > 0 }

// CountCreate counts a new event at the rates of its client and namespace. It returns a 429
// if a rate is exceeded.
func (g *Guard) CountCreate(c echo.Context, namespace string) error {
	if !g.HasRates() {
		return nil
	}
	return g.rates.take(g.now(), Client(c.Request()), namespace)
}

// MayCreate is for writes that may turn out to create: it returns what they are allowed
// to create, or an error if that is nothing or too many. It counts once, however often it is called.
func (g *Guard) MayCreate(c echo.Context, of schema.GroupResource) func() (Grant, error) {
	return sync.OnceValues(func() (Grant, error) {
		namespace := c.Param("namespace")
		may, err := g.Grant(c, of, policy.Create, namespace, c.Param("name"))
		if err != nil {
			return Grant{}, err
		}
		return may, g.CountCreate(c, namespace)
	})
}

// gauge is the metric of how many buckets there are.
func (r createRates) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_create_rate_buckets", Help: "Clients and namespaces whose rates of new events are kept.",
	}, func() float64 {
		n := 0
		for _, b := range r {
			b.mu.Lock()
			n += len(b.byKey)
			b.mu.Unlock()
		}
		return float64(n)
	})
}
