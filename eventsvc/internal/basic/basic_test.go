package basic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tidings.example/eventsvc/internal/basic"
	"tidings.example/shared/bearer"
	"tidings.example/shared/tokenclient"
)

// endpoint is a token endpoint, and the verifier of its tokens. It knows one client.
type endpoint struct {
	*basic.Trader
	registry *prometheus.Registry
	log      bytes.Buffer

	asked  atomic.Int32
	mu     sync.Mutex
	secret string
	key    string        // that signs the tokens, and that is published
	answer string        // STATUS BODY instead of a token or a refusal; empty: none
	takes  time.Duration // until the answer
	life   time.Duration
	source string // X-Forwarded-For of the last request
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{secret: "s3cret", key: "k1", life: 5 * time.Minute, registry: prometheus.NewRegistry()}
	client := tokenclient.HTTP(nil)
	client.Transport = e
	e.Trader = basic.New(basic.Config{
		TokenURL: "https://tokens.example/oauth2/token", Client: client, Verify: e.verify,
		Log: slog.New(slog.NewTextHandler(&e.log, nil)), Registry: e.registry,
	})
	return e
}

func (e *endpoint) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// RoundTrip answers as tokensvc does.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	answer, takes := e.answer, e.takes
	e.source = r.Header.Get("X-Forwarded-For")
	switch {
	case answer != "":
	case form.Get("client_id") == "grafana" && form.Get("client_secret") == e.secret:
		answer = fmt.Sprintf(`200 {"access_token":"%s.%d","token_type":"Bearer","expires_in":%d}`, e.key, time.Now().Add(e.life).Unix(), int(e.life.Seconds()))
	default:
		answer = `401 {"error":"invalid_client"}`
	}
	e.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	status, text, _ := strings.Cut(answer, " ")
	code, _ := strconv.Atoi(status)
	return &http.Response{
		StatusCode: code, Status: status, Request: r, Body: io.NopCloser(strings.NewReader(text)),
		Header: http.Header{"Retry-After": {"7"}, "Location": {"https://elsewhere.example/"}},
	}, nil
}

// verify accepts tokens of the published key until they expire.
func (e *endpoint) verify(_ context.Context, token string) (*bearer.Caller, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, text, _ := strings.Cut(token, ".")
	unix, _ := strconv.ParseInt(text, 10, 64)
	switch expires := time.Unix(unix, 0); {
	case key != e.key:
		return nil, &bearer.Error{Reason: "unknown key", Status: 401, Code: "invalid_token"}
	case !time.Now().Before(expires):
		return nil, &bearer.Error{Reason: "expired", Status: 401, Code: "invalid_token"}
	default:
		return &bearer.Caller{ClientID: "grafana", Expires: expires}, nil
	}
}

// outcome is the status of the answer to a request.
func (e *endpoint) outcome(t *testing.T, id, secret string) int {
	t.Helper()
	caller, err := e.Verify(t.Context(), id, secret, "192.0.2.1")
	if later, ok := errors.AsType[*basic.BusyError](err); ok {
		return later.Status
	}
	if refused, ok := errors.AsType[*bearer.Error](err); ok {
		return refused.Status
	}
	if err != nil || caller == nil || caller.ClientID != "grafana" {
		t.Errorf("%+v, %v", caller, err)
	}
	return 200
}

// expect fails unless the request is answered with a status, after so many trades in all.
func (e *endpoint) expect(t *testing.T, what, id, secret string, status, asked int) {
	t.Helper()
	if got := e.outcome(t, id, secret); got != status || int(e.asked.Load()) != asked {
		t.Errorf("%s: %d after %d trades, want %d after %d", what, got, e.asked.Load(), status, asked)
	}
}

func (e *endpoint) counted(outcome string) int {
	return int(testutil.ToFloat64(e.trades().WithLabelValues(outcome)))
}

func (e *endpoint) trades() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_basic_trades_total", Help: "Requests to the token endpoint for clients that send a user and a password, by outcome.",
	}, []string{"outcome"})
	already := prometheus.AlreadyRegisteredError{}
	if err := e.registry.Register(c); errors.As(err, &already) {
		return already.ExistingCollector.(*prometheus.CounterVec)
	}
	return c
}

// TestKept: a token is used for five minutes or until 30 seconds before it expires, and then another is asked for.
func TestKept(t *testing.T) {
	t.Parallel()
	for life, use := range map[time.Duration]time.Duration{
		time.Hour: 5 * time.Minute, 5 * time.Minute: 4*time.Minute + 30*time.Second, 40 * time.Second: 20 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEndpoint(t)
			e.life = life
			e.expect(t, "first", "grafana", "s3cret", 200, 1)
			time.Sleep(use - time.Second)
			e.expect(t, "at the end of its use", "grafana", "s3cret", 200, 1)
			time.Sleep(time.Second)
			e.expect(t, "after it", "grafana", "s3cret", 200, 2)
			if e.source != "192.0.2.1" || e.counted("ok") != 2 {
				t.Errorf("asked for %s, %d counted", e.source, e.counted("ok"))
			}
		})
	}
}

// TestCredentials: they reach the endpoint as they are. What cannot be any is refused without a trade.
func TestCredentials(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	for i, secret := range []string{"a b", "+%:ü", "%2B", "日本", "a:b&c=d", strings.Repeat("x", 1<<10)} {
		e.set(func() { e.secret = secret })
		e.expect(t, secret, "grafana", secret, 200, i+1)
	}
	for what, c := range map[string][2]string{
		"no id": {"", "x"}, "no secret": {"grafana", ""}, "long id": {strings.Repeat("x", 1<<10+1), "x"}, "long secret": {"grafana", strings.Repeat("x", 1<<10+1)},
		"newline": {"grafana", "a\nb"}, "NUL": {"graf\x00ana", "x"}, "C1": {"grafana", "\u0085"}, "no UTF-8": {"grafana", "\xff"},
	} {
		e.expect(t, what, c[0], c[1], 401, 6)
	}
	if text := e.log.String(); text != "" {
		t.Errorf("logged: %s", text)
	}
}

// TestShared: a thousand requests at once are one trade.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		e.takes = time.Second
		var clients sync.WaitGroup
		for range 1000 {
			clients.Go(func() {
				if got := e.outcome(t, "grafana", "s3cret"); got != 200 {
					t.Errorf("%d", got)
				}
			})
		}
		clients.Wait()
		if n := e.asked.Load(); n != 1 {
			t.Errorf("%d trades", n)
		}
	})
}

// TestPatience: a client that goes away ends its own wait; the others go on waiting.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		e.takes = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
		}()
		var other sync.WaitGroup
		other.Go(func() {
			time.Sleep(10 * time.Millisecond)
			e.expect(t, "another", "grafana", "s3cret", 200, 1)
		})
		if _, err := e.Verify(ctx, "grafana", "s3cret", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		other.Wait()
	})
}

// TestChanged: a secret that was changed is refused within five minutes, the new one is good at once, and a key that is
// withdrawn is so at once.
func TestChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		e.life = time.Hour
		e.expect(t, "first", "grafana", "s3cret", 200, 1)
		e.set(func() { e.secret = "new" })
		e.expect(t, "new secret", "grafana", "new", 200, 2)
		time.Sleep(5 * time.Minute)
		e.expect(t, "old secret", "grafana", "s3cret", 401, 3)
		e.expect(t, "old secret, remembered", "grafana", "s3cret", 401, 3)
		e.expect(t, "new secret", "grafana", "new", 200, 4)
		e.set(func() { e.key = "k2" })
		e.expect(t, "another key, so another token", "grafana", "new", 200, 5)
		e.expect(t, "another key", "grafana", "new", 200, 5)
	})
}

// TestNotAccepted: tokens that are refused here are no way to make trades without end, and the log says why they are
// refused.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		e.answer = `200 {"access_token":"other.9999999999","token_type":"Bearer"}`
		_, err := e.Verify(t.Context(), "grafana", "s3cret", "")
		if refused, ok := errors.AsType[*bearer.Error](err); !ok || refused.Status != 401 || refused.Reason != "Basic: traded token: unknown key" {
			t.Errorf("%v", err)
		}
		e.expect(t, "again", "grafana", "s3cret", 401, 1)
		time.Sleep(10 * time.Second)
		e.expect(t, "later", "grafana", "s3cret", 401, 2)
		if !strings.Contains(e.log.String(), "unknown key") || e.counted("not-accepted") != 2 {
			t.Errorf("log: %s", e.log.String())
		}
	})
}

// TestEndpointFails: an answer that says nothing about the credentials refuses nobody: who has a token goes on with it
// to its end, who has none is told when to come again.
func TestEndpointFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  string
		takes   time.Duration
		status  int
		retry   time.Duration
		outcome string
	}{
		"busy":      {"429 {}", 0, 429, 7 * time.Second, "throttled"},
		"broken":    {"500 oops", 0, 503, 5 * time.Second, "unavailable"},
		"a page":    {"200 <html>sign in</html>", 0, 503, 5 * time.Second, "unavailable"},
		"redirects": {"302 ", 0, 503, 5 * time.Second, "unavailable"},
		"not found": {"404 page not found", 0, 503, 5 * time.Second, "unavailable"},
		"other":     {`400 {"error":"unsupported_grant_type"}`, 0, 503, 5 * time.Second, "unavailable"},
		"slow":      {"", time.Hour, 503, 5 * time.Second, "unavailable"},
		"large":     {"200 " + strings.Repeat("x", 1<<20), 0, 503, 5 * time.Second, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(t)
				e.life = 10 * time.Minute
				e.expect(t, "first", "grafana", "s3cret", 200, 1)
				e.set(func() { e.answer, e.takes = c.answer, c.takes })
				began := time.Now()
				_, err := e.Verify(t.Context(), "other", "s3cret", "")
				if later, ok := errors.AsType[*basic.BusyError](err); !ok || later.Status != c.status || later.RetryAfter != c.retry || time.Since(began) > 6*time.Second {
					t.Errorf("new: %#v after %s", err, time.Since(began))
				}
				time.Sleep(5 * time.Minute)
				began = time.Now()
				for range 3 {
					e.expect(t, "with a token", "grafana", "s3cret", 200, 3)
				}
				if waited := time.Since(began); waited > time.Second {
					t.Errorf("with a token: after %s", waited)
				}
				time.Sleep(5 * time.Minute)
				if got := e.outcome(t, "grafana", "s3cret"); got != c.status {
					t.Errorf("after the end of the token: %d", got)
				}
				e.set(func() { e.answer, e.takes = "", 0 })
				time.Sleep(10 * time.Second)
				if got := e.outcome(t, "grafana", "s3cret"); got != 200 {
					t.Errorf("when the endpoint is well again: %d", got)
				}
				if e.counted(c.outcome) < 3 || !strings.Contains(e.log.String(), "gives no token") == (c.status == 503) {
					t.Errorf("%d counted, log: %s", e.counted(c.outcome), e.log.String())
				}
				if text := e.log.String(); strings.Contains(text, "s3cret") || strings.Contains(text, "grafana") || strings.Contains(text, "other") {
					t.Errorf("credentials in the log: %s", text)
				}
			})
		})
	}
}

// TestGuesses: whoever guesses the secret of a client has to wait after five guesses, from his address, and the client
// does not.
func TestGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		e.life = time.Hour
		e.expect(t, "the client", "grafana", "s3cret", 200, 1)
		for i := range 5 {
			e.expect(t, "guess", "grafana", fmt.Sprint(i), 401, i+2)
			e.expect(t, "the same guess", "grafana", fmt.Sprint(i), 401, i+2)
		}
		e.expect(t, "sixth guess", "grafana", "6", 429, 6)
		e.expect(t, "another id", "other", "6", 401, 7)
		time.Sleep(5 * time.Minute)
		for i := range 5 {
			e.expect(t, "guess", "grafana", fmt.Sprint(i), 401, i+8)
		}
		e.expect(t, "sixth guess", "grafana", "6", 429, 12)
		e.expect(t, "the client, for another token", "grafana", "s3cret", 200, 13)
		if _, err := e.Verify(t.Context(), "grafana", "7", "192.0.2.2"); e.asked.Load() != 14 {
			t.Errorf("from another address: %v", err)
		}
		time.Sleep(10 * time.Second)
		e.expect(t, "after a while", "grafana", "8", 401, 15)
	})
}

// TestFlood: a flood of wrong ids makes at most 50 trades a second. Who has a token is served at once, who is new
// within five seconds, also from the address that the flood comes from, and another address takes turns with it.
func TestFlood(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"192.0.2.1", "192.0.2.2"} {
		synctest.Test(t, func(t *testing.T) {
			e := newEndpoint(t)
			e.takes = 100 * time.Millisecond
			e.expect(t, "with a token", "grafana", "s3cret", 200, 1)
			began := time.Now()
			var flood sync.WaitGroup
			var next atomic.Int32
			for range 100 {
				flood.Go(func() {
					for n := next.Add(1); n <= 10_000; n = next.Add(1) {
						if _, err := e.Verify(t.Context(), fmt.Sprint("wrong", n), "x", "192.0.2.1"); err == nil {
							t.Error("let in")
						}
						if time.Since(began) > time.Minute {
							return
						}
					}
				})
			}
			time.Sleep(10 * time.Second)
			at := time.Now()
			if got := e.outcome(t, "grafana", "s3cret"); got != 200 || time.Since(at) > 0 {
				t.Errorf("with a token: %d after %s", got, time.Since(at))
			}
			e.set(func() { e.secret = "new" })
			at = time.Now()
			_, err := e.Verify(t.Context(), "grafana", "new", source)
			most := 5 * time.Second
			if source != "192.0.2.1" {
				most = 500 * time.Millisecond
			}
			if took := time.Since(at); err != nil || took > most {
				t.Errorf("new, from %s: %v after %s", source, err, took)
			}
			flood.Wait()
			if n, most := int(e.asked.Load()), int(time.Since(began).Seconds()*50)+8+1; n > most || n < most/2 {
				t.Errorf("%d trades, at most %d", n, most)
			}
		})
	}
}

// TestQueueBounded: those that would have to wait for longer than five seconds are told to come again at once.
func TestQueueBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		var flood sync.WaitGroup
		var busy, refused atomic.Int32
		began := time.Now()
		for i := range 10_000 {
			flood.Go(func() {
				switch got := e.outcome(t, fmt.Sprint("wrong", i), "x"); got {
				case 401:
					refused.Add(1)
				case 503:
					busy.Add(1)
				default:
					t.Errorf("%d", got)
				}
			})
		}
		flood.Wait()
		if refused.Load() > 300 || busy.Load()+refused.Load() != 10_000 || time.Since(began) > 5*time.Second {
			t.Errorf("%d refused, %d busy, after %s", refused.Load(), busy.Load(), time.Since(began))
		}
	})
}
