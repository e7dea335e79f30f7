// Package basic lets in machines that can send a user and a password, but cannot renew a token: it trades both, as
// client id and secret, for a token at the token endpoint.
//
// # Contract
//
// [Trader.Verify] returns the caller of a client id and secret. A traded token is kept for minutes, so a client costs
// the endpoint one request in that time, and it is verified again for every request: a key or an issuer that is
// withdrawn is so at once. A secret that was changed is refused within five minutes. While the endpoint fails, a kept
// token is used to its end.
//
// The secret is never kept. What is kept is found by a keyed hash of id and secret, whose key lives as long as the
// process.
//
// # Errors
//
// A refusal is a *[bearer.Error]. A [BusyError] says nothing about the credentials: the client should try again later.
// Neither contains an id or a secret.
//
// # Bounds
//
// Whoever guesses makes a bounded number of requests to the endpoint and locks nobody out: queue.go says how many
// trades are made at once and in which order, guesses.go who has to wait after refused secrets. All that is remembered
// has a bounded number of entries.
//
// # Concurrency
//
// A Trader is safe for concurrent use. Attempts with the same id and secret share one trade.
package basic

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"

	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
	"tidings.example/shared/tokenclient"
)

const (
	maxCredential = 1 << 10          // bytes of an id, and of a secret
	entries       = 1024             // of each kind that is remembered
	maxUse        = 5 * time.Minute  // of a token, from its trade
	margin        = 30 * time.Second // by which a token is renewed before it expires, or half of its life if that is less
	answerTime    = 5 * time.Second  // of the endpoint
	patience      = time.Second      // how long a client with a good token waits for the next one
	holdOff       = 5 * time.Second  // between attempts to renew a good token while the endpoint fails
)

// Config is what a trader is made of.
type Config struct {
	TokenURL string
	Client   *http.Client // of package tokenclient, which follows no redirects
	Verify   func(ctx context.Context, token string) (*bearer.Caller, error)
	Log      *slog.Logger
	Registry prometheus.Registerer // for eventsvc_basic_trades_total; may be nil
}

// BusyError means that the credentials could not be checked now.
type BusyError struct {
	Reason     string
	Status     int // 429 if this client asked too much, 503 otherwise
	RetryAfter time.Duration
}

// Error returns the reason.
func (e *BusyError) Error() string { return e.Reason }

// sum stands for an id and a secret, or an id and a source.
type sum [sha256.Size]byte

// grant is a token that was traded. It does not change.
type grant struct {
	token  string
	traded time.Time
	renew  time.Time // when the next one is asked for
}

// refusal is remembered until a time.
type refusal struct {
	err   error
	until time.Time
}

// attempt is what a trade is about.
type attempt struct {
	key        sum    // of id and secret
	guesser    sum    // of id and subscriber
	subscriber string // whom the address belongs to, see [httpserver.Subscriber]
	request    tokenclient.Request
}

// Trader trades credentials.
type Trader struct {
	c       Config
	key     []byte // of the sums
	grants  *lru.Cache
	refused *lru.Cache
	guessed *lru.Cache // by id and source, the times of refusals
	queue   *queue
	flights singleflight.Group
	trades  *prometheus.CounterVec
}

// The outcomes of a trade.
const (
	outcomeOK          = "ok"
	outcomeRefused     = "refused"      // by the endpoint
	outcomeNotAccepted = "not-accepted" // the token is refused here
	outcomeThrottled   = "throttled"    // the endpoint asks to wait
	outcomeUnavailable = "unavailable"  // no answer that says anything about the credentials
)

// New makes a trader.
func New(c Config) *Trader {
	t := &Trader{
		c: c, key: make([]byte, sha256.Size), queue: newQueue(),
		grants: lru.New(entries), refused: lru.New(entries), guessed: lru.New(entries),
		trades: service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_basic_trades_total", Help: "Requests to the token endpoint for clients that send a user and a password, by outcome.",
		}, []string{"outcome"})),
	}
	_, _ = rand.Read(t.key) // never fails
	for _, outcome := range []string{outcomeOK, outcomeRefused, outcomeNotAccepted, outcomeThrottled, outcomeUnavailable} {
		t.trades.WithLabelValues(outcome)
	}
	return t
}

var (
	errMalformed = &bearer.Error{Reason: "Basic: user or password empty, too long or malformed", Status: http.StatusUnauthorized}
	errRefused   = &bearer.Error{Reason: "Basic: refused by the token endpoint", Status: http.StatusUnauthorized}
)

// Verify returns the caller of an id and a secret, which are taken as they are (RFC 7617 section 2). Source is the
// address that they come from.
//
// A refusal is remembered for ten seconds. After five different secrets of an id from one source were refused in that
// time, more are not tried, except for a secret that was good within the last hour: so nobody can lock out a client
// that is at work.
func (t *Trader) Verify(ctx context.Context, id, secret, source string) (*bearer.Caller, error) {
	if !wellFormed(id) || !wellFormed(secret) {
		return nil, errMalformed
	}
	key, now := t.sum(id, secret), time.Now()
	known, _ := t.grants.Get(key)
	g, _ := known.(*grant)
	var caller *bearer.Caller // of a token that is still good
	if g != nil {
		var err error
		if caller, err = t.c.Verify(ctx, g.token); err == nil && now.Before(g.renew) || err != nil && unavailable(err) {
			return caller, err
		}
	}
	if r, ok := t.refused.Get(key); ok && now.Before(r.(refusal).until) {
		return nil, r.(refusal).err
	}
	subscriber := httpserver.Subscriber(source)
	a := attempt{
		key: key, guesser: t.sum(id, subscriber), subscriber: subscriber,
		request: tokenclient.Request{TokenURL: t.c.TokenURL, ClientID: id, Secret: secret, Source: "its password", Setting: "--basic-token-url", ForwardedFor: source},
	}
	if t.guessing(a.guesser, g, now) {
		return nil, errGuessed
	}
	return t.renew(ctx, a, g, caller)
}

// wellFormed reports whether a text can be an id or a secret.
func wellFormed(text string) bool {
	return text != "" && len(text) <= maxCredential && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// unavailable reports whether an error of a verifier says nothing about the token.
func unavailable(err error) bool {
	refused, ok := errors.AsType[*bearer.Error](err)
	return !ok || refused.Status != http.StatusUnauthorized
}

func (t *Trader) sum(first, second string) (s sum) {
	h := hmac.New(sha256.New, t.key)
	_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(first)))) //nolint:gosec // at most 1024
	_, _ = h.Write([]byte(first))
	_, _ = h.Write([]byte(second))
	h.Sum(s[:0])
	return s
}

// renew trades, or waits for a trade of the same credentials. If that fails or takes long, the caller of a token that
// is still good is let in; without one it is nil.
func (t *Trader) renew(ctx context.Context, a attempt, g *grant, caller *bearer.Caller) (*bearer.Caller, error) {
	done := t.flights.DoChan(string(a.key[:]), func() (any, error) {
		return t.trade(context.WithoutCancel(ctx), a) // others may wait for it
	})
	var late <-chan time.Time
	if caller != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case r := <-done:
		if r.Err == nil {
			return r.Val.(*bearer.Caller), nil
		}
		if caller == nil || !unavailable(r.Err) {
			return nil, r.Err
		}
	case <-late:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if now, _ := t.grants.Get(a.key); now == any(g) { // otherwise there is a newer one by now
		t.grants.Add(a.key, &grant{token: g.token, traded: g.traded, renew: time.Now().Add(holdOff)})
	}
	return caller, nil
}

// trade asks the endpoint for a token and remembers the outcome.
func (t *Trader) trade(ctx context.Context, a attempt) (*bearer.Caller, error) {
	leave, err := t.queue.enter(ctx, a.subscriber)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	asked := time.Now()
	token, err := a.request.Fetch(ctx, t.c.Client)
	if err != nil {
		return nil, t.failed(a, err)
	}
	caller, err := t.c.Verify(ctx, token.AccessToken)
	switch {
	case err == nil:
	case unavailable(err):
		t.trades.WithLabelValues(outcomeUnavailable).Inc()
		return nil, err
	default:
		t.trades.WithLabelValues(outcomeNotAccepted).Inc()
		t.c.Log.Warn("a token of --basic-token-url is not accepted here", "url", t.c.TokenURL, "reason", err)
		err = &bearer.Error{Reason: "Basic: traded token: " + err.Error(), Status: http.StatusUnauthorized}
		t.refused.Add(a.key, refusal{err, time.Now().Add(refusedFor)})
		return nil, err
	}
	t.trades.WithLabelValues(outcomeOK).Inc()
	life := caller.Expires.Sub(asked)
	t.grants.Add(a.key, &grant{token: token.AccessToken, traded: asked, renew: asked.Add(min(max(life-margin, life/2), maxUse))})
	return caller, nil
}

// failed turns an error of the endpoint into the answer to the client.
func (t *Trader) failed(a attempt, err error) error {
	if refused, ok := errors.AsType[*tokenclient.RefusedError](err); ok && (refused.Code == "invalid_client" || refused.Code == "unauthorized_client") {
		t.trades.WithLabelValues(outcomeRefused).Inc()
		now := time.Now()
		t.grants.Remove(a.key)
		t.refused.Add(a.key, refusal{errRefused, now.Add(refusedFor)})
		t.noteGuess(a.guesser, now)
		return errRefused
	}
	if later, ok := errors.AsType[*tokenclient.UnavailableError](err); ok && later.Status == http.StatusTooManyRequests {
		t.trades.WithLabelValues(outcomeThrottled).Inc()
		return &BusyError{Reason: "the token endpoint asks to wait", Status: later.Status, RetryAfter: max(later.RetryAfter, time.Second)}
	}
	t.trades.WithLabelValues(outcomeUnavailable).Inc()
	t.c.Log.Warn("the endpoint of --basic-token-url gives no token", "url", t.c.TokenURL, "error", fmt.Sprintf("%.500s", err))
	return &BusyError{Reason: "the token endpoint does not answer as it should", Status: http.StatusServiceUnavailable, RetryAfter: holdOff}
}
