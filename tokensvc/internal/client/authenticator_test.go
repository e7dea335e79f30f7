package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/randtest"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// store is a client.Store that can be changed, fail, and count.
type store struct {
	mu      sync.Mutex
	clients map[string]client.Client
	err     error
	queries int
}

func (s *store) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

func (s *store) ByClientID(_ context.Context, id string) (client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	if s.err != nil {
		return client.Client{}, s.err
	}
	c, ok := s.clients[id]
	if !ok {
		return client.Client{}, client.ErrNotFound
	}
	return c, nil
}

func (s *store) BySubject(_ context.Context, issuer string, subjects []string) (client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	for _, subject := range subjects {
		for _, c := range s.clients {
			if c.Bound.Issuer == issuer && c.Bound.Subject == subject {
				return c, s.err
			}
		}
	}
	return client.Client{}, client.ErrNotFound
}

func (s *store) put(c client.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.ClientID] = c
}

func newStore(t testing.TB, more ...client.Client) *store {
	t.Helper()
	s := &store{clients: map[string]client.Client{}}
	for _, c := range append(clienttest.Registrations(t), more...) {
		s.put(c)
	}
	return s
}

func plainText(t *testing.T) client.Client {
	t.Helper()
	return client.Client{ClientID: "noop", Secrets: []client.Secret{clienttest.Secret(t, "{noop}open")}}
}

func newAuthenticator(t testing.TB, c client.Config) *client.Authenticator {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = time.Hour // a busy machine may need many seconds for one compare under the race detector
	}
	a, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// outcome returns one word for an error.
func outcome(err error) string {
	var rejected *client.RejectedError
	var busy *client.BusyError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &rejected):
		return rejected.Reason
	case errors.As(err, &busy):
		return "busy"
	case errors.Is(err, client.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, client.ErrIssuerUnavailable):
		return "issuer unavailable"
	}
	return err.Error()
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 72)
	longHash, err := client.HashSecret(long, client.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	dashHash, err := client.HashSecret("-", client.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	ended := clienttest.Secret(t, clienttest.NextHash)
	ended.Until = time.Now().Add(-time.Minute)
	a := newAuthenticator(t, client.Config{Parallel: 2, Store: newStore(t,
		client.Client{ClientID: "long", Secrets: []client.Secret{clienttest.Secret(t, longHash)}},
		client.Client{ClientID: "dash", Secrets: []client.Secret{clienttest.Secret(t, dashHash)}},
		plainText(t),
		client.Client{ClientID: "ended", Secrets: []client.Secret{clienttest.Secret(t, clienttest.Hash), ended}},
	)})
	for _, tc := range []struct{ name, id, secret, want string }{
		{"right", "plain", "s3cret", "ok"},
		{"right with {bcrypt}", "prefixed", "s3cret", "ok"},
		{"second after its end", "ended", "s3cret-next", "wrong_secret"},
		{"first after the second's end", "ended", "s3cret", "ok"},
		{"longest", "long", long, "ok"},
		{"plain text", "noop", "open", "ok"},
		{"plain text, with the prefix", "noop", "{noop}open", "wrong_secret"},
		{"unknown", "nobody", "s3cret", "unknown_client"},
		{"unknown, with the stand-in's secret", "nobody", "-", "unknown_client"},
		{"other case of the id", "PLAIN", "s3cret", "unknown_client"},
		{"wrong", "plain", "S3cret", "wrong_secret"},
		{"the hash itself", "plain", clienttest.Hash, "wrong_secret"},
		{"empty, where the secret is what is compared for the time", "dash", "", "wrong_secret"},
		{"secret, NUL, secret", "plain", "s3cret\x00s3cret", "wrong_secret"},
		{"secret and NUL", "plain", "s3cret\x00", "wrong_secret"},
		{"tail after 72 bytes", "long", long + "y", "wrong_secret"},
		{"another client's", "plain", "open", "wrong_secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := a.Authenticate(t.Context(), client.Attempt{ClientID: tc.id, Secret: tc.secret})
			if got := outcome(err); got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			if (err == nil) != (c.ClientID == tc.id) {
				t.Errorf("client %q with error %v", c.ClientID, err)
			}
			if err != nil {
				return
			}
			if _, err := a.Authenticate(t.Context(), client.Attempt{ClientID: tc.id, Secret: tc.secret}); err != nil {
				t.Errorf("remembered: %v", err)
			}
		})
	}
}

// TestTwoReadings: an attempt whose text has two readings is right if one of them is, and is not right by the id of one
// and the secret of the other.
func TestTwoReadings(t *testing.T) {
	t.Parallel()
	hashed := func(secret string) client.Secret {
		t.Helper()
		hash, err := client.HashSecret(secret, client.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return clienttest.Secret(t, hash)
	}
	a := newAuthenticator(t, client.Config{Parallel: 2, Store: newStore(t, plainText(t),
		client.Client{ClientID: "plus", Secrets: []client.Secret{hashed("a+b")}},
		client.Client{ClientID: "x+y", Secrets: []client.Secret{hashed("one")}},
		client.Client{ClientID: "x y", Secrets: []client.Secret{hashed("two")}},
	)})
	for _, tc := range []struct{ name, id, secret, rawID, rawSecret, want, client string }{
		{"the first", "plain", "s3cret", "plain", "s3%63ret", "ok", "plain"},
		{"the raw one", "plus", "a b", "plus", "a+b", "ok", "plus"},
		{"the raw one, of another client", "x y", "one", "x+y", "one", "ok", "x+y"},
		{"the first, where both are clients", "x y", "two", "x+y", "two", "ok", "x y"},
		{"the raw one, of a client alone", "nobody", "one", "x+y", "one", "ok", "x+y"},
		{"plain text", "noop", "open", "noop", "op%65n", "ok", "noop"},
		{"plain text, raw", "noop", "?", "noop", "open", "ok", "noop"},
		{"neither", "plus", "a b", "plus", "a%20b", "wrong_secret", ""},
		{"no client", "nobody", "a b", "nobody", "a+b", "unknown_client", ""},
		{"neither a client", "no body", "x", "no+body", "x", "unknown_client", ""},
		{"one is a client", "no body", "x", "x+y", "x", "wrong_secret", ""},
		{"id and secret of different readings", "x y", "1", "x+y", "two", "wrong_secret", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			try := client.Attempt{ClientID: tc.id, Secret: tc.secret, RawID: tc.rawID, RawSecret: tc.rawSecret}
			c, err := a.Authenticate(t.Context(), try)
			if got := outcome(err); got != tc.want || c.ClientID != tc.client {
				t.Errorf("%s as %q, want %s as %q", got, c.ClientID, tc.want, tc.client)
			}
			if err != nil {
				return
			}
			if again, err := a.Authenticate(t.Context(), try); err != nil || again.ClientID != tc.client {
				t.Errorf("remembered: %q, %v", again.ClientID, err)
			}
		})
	}
}

// TestTwoReadingsCountOnce: an attempt with two readings counts once, for each id that it names, and takes as long as
// one with a single reading, whether the client exists or not.
func TestTwoReadingsCountOnce(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"noop", "nobody"} {
		synctest.Test(t, func(t *testing.T) {
			a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t)), FailureBurst: 3, FailureRefill: time.Minute, FailureQueue: 1})
			a.CompareTakes(time.Second)
			var got []time.Duration
			for i := range 5 {
				start := time.Now()
				try := client.Attempt{ClientID: id, Secret: fmt.Sprint("a b", i), RawID: id, RawSecret: fmt.Sprint("a+b", i)}
				if i == 1 {
					try.RawID, try.RawSecret = "", ""
				}
				if _, err := a.Authenticate(t.Context(), try); outcome(err) != "wrong_secret" && outcome(err) != "unknown_client" {
					t.Errorf("%s: %v", id, err)
				}
				got = append(got, time.Since(start).Round(30*time.Second))
			}
			if diff := cmp.Diff([]time.Duration{0, 0, 0, time.Minute, time.Minute}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", id, diff)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t)), Parallel: 1})
			a.CompareTakes(time.Second)
			start := time.Now()
			_, _ = a.Authenticate(t.Context(), client.Attempt{ClientID: id, Secret: "a b", RawID: id, RawSecret: "a+b"})
			if took := time.Since(start); took != time.Second {
				t.Errorf("%s: %v, want the time of one compare", id, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t), FailureBurst: 1, FailureRefill: time.Minute, FailureQueue: 1})
		a.CompareTakes(0)
		ids := a.Apart(2)
		_, _ = a.Authenticate(t.Context(), client.Attempt{ClientID: ids[0], Secret: "x", RawID: ids[1], RawSecret: "x"})
		start := time.Now()
		_, _ = a.Authenticate(t.Context(), client.Attempt{ClientID: ids[1], Secret: "y"})
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("the id of the second reading is not counted: %v", waited)
		}
	})
}

// TestTooLong: a refused secret that is too long for BCrypt says so.
func TestTooLong(t *testing.T) {
	t.Parallel()
	a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t))})
	long := strings.Repeat("x", 73)
	for _, tc := range []struct {
		id, secret, raw string
		says            bool
	}{
		{"plain", long, "", true},
		{"plain", long, long + "%", true},
		{"plain", long[1:], "", false},
		{"plain", "short", strings.Repeat("%41", 30), false},
		{"noop", long, "", false},
		{"nobody", long, "", false},
	} {
		_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: tc.id, Secret: tc.secret, RawID: tc.id, RawSecret: tc.raw})
		rejected, ok := errors.AsType[*client.RejectedError](err)
		if !ok || strings.Contains(rejected.Detail, "more than the 72 bytes") != tc.says || strings.Contains(err.Error(), "x") {
			t.Errorf("%s, %d and %d bytes: %v", tc.id, len(tc.secret), len(tc.raw), err)
		}
	}
}

// TestTwoSecrets: while a secret is being changed, both are accepted.
func TestTwoSecrets(t *testing.T) {
	t.Parallel()
	a := newAuthenticator(t, client.Config{Store: newStore(t)})
	for _, secret := range []string{"s3cret", "s3cret-next"} {
		if _, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "two", Secret: secret}); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
}

// TestStoreTrouble: an outage neither rejects nor accepts a secret, even one that is remembered.
func TestStoreTrouble(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a := newAuthenticator(t, client.Config{Store: s})
	try := client.Attempt{ClientID: "plain", Secret: "s3cret"}
	var got []string
	for _, err := range []error{nil, errors.New("connection refused"), nil} {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		_, err := a.Authenticate(t.Context(), try)
		got = append(got, outcome(err))
	}
	if diff := cmp.Diff([]string{"ok", "unavailable", "ok"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChangesTakeEffectAtOnce: a remembered secret is forgotten when the stored one changes.
func TestChangesTakeEffectAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a := newAuthenticator(t, client.Config{Store: s})
	reg := s.clients["plain"]
	check := func(step, secret, want string) {
		t.Helper()
		_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "plain", Secret: secret})
		if got := outcome(err); got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	check("first secret", "s3cret", "ok")
	reg.Secrets = []client.Secret{clienttest.Secret(t, clienttest.NextHash)}
	s.put(reg)
	check("old secret after the change", "s3cret", "wrong_secret")
	check("new secret", "s3cret-next", "ok")
	delete(s.clients, "plain")
	check("removed client", "s3cret-next", "unknown_client")
}

// TestSharedCompare: instances of a client that start together share one compare, so that none is refused.
func TestSharedCompare(t *testing.T) {
	t.Parallel()
	a := newAuthenticator(t, client.Config{Store: newStore(t), Parallel: 1, FailureBurst: 1, FailureRefill: time.Hour, FailureQueue: 1})
	var wg sync.WaitGroup
	var accepted atomic.Int32
	for range 64 {
		wg.Go(func() {
			if _, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "plain", Secret: "s3cret"}); err != nil {
				t.Error(err)
				return
			}
			accepted.Add(1)
		})
	}
	wg.Wait()
	if got := accepted.Load(); got != 64 {
		t.Errorf("%d of 64 accepted", got)
	}
}

// TestImpatience: a client that gives up and asks again joins the compare under way, and is answered when it ends.
func TestImpatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t), Parallel: 1})
		a.CompareTakes(time.Second)
		start := time.Now()
		soon, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		_, err := a.Authenticate(soon, client.Attempt{ClientID: "nobody", Secret: "guess"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		_, err = a.Authenticate(t.Context(), client.Attempt{ClientID: "nobody", Secret: "guess"})
		if got, want := (answer{outcome(err), time.Since(start)}), (answer{"unknown_client", time.Second}); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestRightSecretsCostNothing: an attempt with the right secret is refunded, one with a wrong secret is not.
func TestRightSecretsCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t), FailureBurst: 1, FailureRefill: time.Hour, FailureQueue: 1, Timeout: 2 * time.Hour})
		a.CompareTakes(0)
		var got []answer
		for _, secret := range []string{"s3cret", "s3cret-next", "guess", "another"} {
			start := time.Now()
			_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "two", Secret: secret})
			got = append(got, answer{outcome(err), time.Since(start)})
		}
		want := []answer{{"ok", 0}, {"ok", 0}, {"wrong_secret", 0}, {"wrong_secret", time.Hour}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// answer is what a client can observe: the outcome and when it came.
type answer struct {
	Outcome string
	After   time.Duration
}

// TestThrottling guesses secrets one after the other, and then many at once. Registered and unknown ids are treated
// alike, and a remembered secret is never delayed. With fake time, only waiting takes time.
func TestThrottling(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"noop", "nobody"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t)), FailureBurst: 2, FailureRefill: time.Second, FailureQueue: 2})
				a.CompareTakes(0)
				guess := func(secret string) answer {
					start := time.Now()
					_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: id, Secret: secret})
					said := strings.Replace(outcome(err), "unknown_client", "wrong_secret", 1) // clients see no difference
					return answer{said, time.Since(start)}
				}
				if id == "noop" {
					if got := guess("open"); got != (answer{"ok", 0}) {
						t.Fatal(got)
					}
				}
				var got []answer
				for _, secret := range []string{"1", "2", "3", "4"} {
					got = append(got, guess(secret))
				}
				want := []answer{{"wrong_secret", 0}, {"wrong_secret", 0}, {"wrong_secret", time.Second}, {"wrong_secret", time.Second}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("one after the other (-want +got):\n%s", diff)
				}

				results := make(chan answer, 3)
				for _, secret := range []string{"5", "6", "7"} {
					go func() { results <- guess(secret) }()
					synctest.Wait()
				}
				if id == "noop" {
					if got := guess("open"); got != (answer{"ok", 0}) {
						t.Errorf("remembered secret while others guess: %v", got)
					}
				}
				want = []answer{{"busy", 0}, {"wrong_secret", time.Second}, {"wrong_secret", 2 * time.Second}}
				got = []answer{<-results, <-results, <-results}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("at once (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestSourceThrottling: one address that guesses many ids is slowed down, other addresses are not.
func TestSourceThrottling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t), FailureBurst: 1, FailureRefill: 16 * time.Second, FailureQueue: 1})
		a.CompareTakes(0)
		names := a.Apart(22)
		ids, here, elsewhere := names[2:], names[0], names[1]
		guess := func(source string, i int) time.Duration {
			start := time.Now()
			_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: ids[i], Secret: "x", Source: source})
			if outcome(err) != "unknown_client" {
				t.Error(err)
			}
			return time.Since(start)
		}
		var got []time.Duration
		for i := range 18 {
			got = append(got, guess(here, i))
		}
		if diff := cmp.Diff(append(make([]time.Duration, 16), time.Second, time.Second), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if wait := guess(elsewhere, 18); wait != 0 {
			t.Errorf("another address waits %v", wait)
		}
		if wait := guess("", 19); wait != 0 {
			t.Errorf("an address that is not counted waits %v", wait)
		}
	})
}

// TestFairness: compares run one at a time, and guesses for one client and for many unknown ids wait. The first compare
// of another client then does not wait for all of them.
func TestFairness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t)), Parallel: 1})
		a.CompareTakes(time.Second)
		var done atomic.Int32
		var wg sync.WaitGroup
		guess := func(id, secret string) {
			wg.Go(func() {
				_, _ = a.Authenticate(t.Context(), client.Attempt{ClientID: id, Secret: secret})
				done.Add(1)
			})
		}
		release := a.HoldGate()
		for i := range 8 {
			guess("noop", fmt.Sprint("guess", i))
			guess(fmt.Sprint("id", i), "guess")
		}
		synctest.Wait()
		wg.Go(func() {
			if _, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "two", Secret: "s3cret"}); err != nil {
				t.Error(err)
			}
			if before := done.Load(); before > 3 {
				t.Errorf("%d guesses were judged before a good client's first compare", before)
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
	})
}

// TestLineHidesRegistrations: under any load, a wrong secret for a registered client gets the same answer at the same
// time as an unknown id, and so do all other attempts.
func TestLineHidesRegistrations(t *testing.T) {
	t.Parallel()
	const compare = 60 * time.Millisecond
	for _, parallel := range []int{1, 2, 3} {
		for _, guesses := range []int{0, 1, 2, 3, 9} {
			for _, probes := range []int{1, 2, 5, -1, -2, -5} { // negative: with two readings
				var seen [][]answer
				for _, id := range []string{"noop", "nobody"} {
					synctest.Test(t, func(t *testing.T) {
						a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t)), Parallel: parallel, Timeout: time.Second})
						a.CompareTakes(compare)
						seen = append(seen, observe(t, a, id, guesses, probes))
					})
				}
				if diff := cmp.Diff(seen[1], seen[0]); diff != "" {
					t.Errorf("%d at a time, %d guesses, %d probes (-unknown +registered):\n%s", parallel, guesses, probes, diff)
				}
			}
		}
	}
}

// TestLineHidesCostlyRegistrations is the same for hashes whose costs differ: what a probe costs depends on its id, and
// neither its own time nor that of others on whether the id is registered.
func TestLineHidesCostlyRegistrations(t *testing.T) {
	t.Parallel()
	for _, works := range [][]int{{1, 16, 1}, {16, 1, 16}, {1, 1, 17}, {2, 16, 1}, {17, 17, 17}} { // of guesses before, the probes, and guesses after
		for _, parallel := range []int{1, 2} {
			for probes := range 4 {
				var seen [][]time.Duration
				for _, client := range []string{"registered", ""} {
					synctest.Test(t, func(t *testing.T) { seen = append(seen, passGate(parallel, probes, client, works)) })
				}
				if diff := cmp.Diff(seen[1], seen[0]); diff != "" {
					t.Errorf("works %v, %d at a time, %d probes (-unknown +registered):\n%s", works, parallel, probes, diff)
				}
			}
		}
	}
}

// passGate returns when each attempt has left a gate: guesses of unknown ids before and after probes of one client.
func passGate(parallel, probes int, name string, works []int) []time.Duration {
	g, start := client.NewGate(parallel), time.Now()
	var wg sync.WaitGroup
	took := make([]time.Duration, 6+probes)
	next := 0
	attempts := func(n int, name string, work int) {
		for range n {
			i := next
			next++
			wg.Go(func() {
				_, _ = g.Run(context.Background(), name, work, func() int {
					time.Sleep(time.Duration(work) * time.Second)
					return -1
				})
				took[i] = time.Since(start)
			})
			synctest.Wait()
		}
	}
	attempts(3, "", works[0])
	attempts(probes, name, works[1])
	attempts(3, "", works[2])
	wg.Wait()
	time.Sleep(time.Hour) // the last seats are given back
	return took
}

// TestUnknownIDsCostWhatOthersDo: unknown ids cost what registered ones do, each always the same, and one expensive
// hash makes few of them expensive.
func TestUnknownIDsCostWhatOthersDo(t *testing.T) {
	t.Parallel()
	a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t))})
	if work := a.Work("nobody"); work != 1 {
		t.Errorf("without a registration a failure costs %d", work)
	}
	const registered, unknown = 400, 10_000
	for i := range registered {
		a.Seen(fmt.Sprint("client", i), 1+15*(i%100/99)) // 4 of cost 14
	}
	before := map[string]int{}
	works := map[int]int{}
	for i := range unknown {
		id := fmt.Sprint("unknown", i)
		before[id] = a.Work(id)
		works[before[id]]++
	}
	if works[1]+works[16] != unknown || works[16] == 0 || works[16] > unknown/20 { // about a hundred are expected
		t.Errorf("unknown ids cost %v", works)
	}
	for i := range registered {
		if work := a.Work(fmt.Sprint("client", i)); work != 1+15*(i%100/99) {
			t.Errorf("a registered id costs %d", work)
		}
	}
	a.Seen("client with two secrets", 2)
	changed := 0
	for id, work := range before {
		if a.Work(id) != work {
			changed++
		}
	}
	if changed > unknown/20 {
		t.Errorf("a new registration changes what %d of %d unknown ids cost", changed, unknown)
	}
}

// TestFailuresCostTheirOwn: a wrong secret costs the compares of its client and no more, whatever hashes others have,
// and an id without hashes costs what stands in for it.
func TestFailuresCostTheirOwn(t *testing.T) {
	t.Parallel()
	a := newAuthenticator(t, client.Config{Store: newStore(t, plainText(t))})
	var mu sync.Mutex
	burnt := 0
	a.Burns(func(units int) {
		mu.Lock()
		defer mu.Unlock()
		burnt += units
	})
	for i := range 200 {
		a.Seen(fmt.Sprint("cheap", i), 1)
	}
	a.Seen("expensive", 16)
	fails := func(id string) int {
		burnt = 0
		if _, err := a.Authenticate(t.Context(), client.Attempt{ClientID: id, Secret: "wrong"}); outcome(err) != "wrong_secret" && outcome(err) != "unknown_client" {
			t.Fatalf("%s: %v", id, err)
		}
		return burnt
	}
	if work := fails("two"); work != 0 {
		t.Errorf("a client with hashes costs %d more than its own", work)
	}
	for _, id := range []string{"noop", "nobody", "expensive"} {
		if work := fails(id); work != a.Work(id) {
			t.Errorf("%s costs %d, want %d", id, work, a.Work(id))
		}
	}
	all := 0
	for i := range 100 {
		all += fails(fmt.Sprint("unknown", i))
	}
	if all > 100+15*20 {
		t.Errorf("100 unknown ids cost %d", all)
	}
}

// observe sends guesses of unknown ids before and after probes of one id, and returns when each of them was answered.
// So many probes below zero have two readings.
func observe(t *testing.T, a *client.Authenticator, id string, guesses, probes int) []answer {
	t.Helper()
	raw := ""
	if probes < 0 {
		probes, raw = -probes, "raw"
	}
	start := time.Now()
	var wg sync.WaitGroup
	got := make([]answer, 2*guesses+probes)
	next := 0
	try := func(id, secret, raw string) {
		mine := &got[next]
		next++
		wg.Go(func() {
			_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: id, Secret: secret, RawID: id, RawSecret: raw})
			said := strings.Replace(outcome(err), "unknown_client", "wrong_secret", 1) // clients see no difference
			*mine = answer{said, time.Since(start)}
		})
		synctest.Wait()
	}
	for i := range guesses {
		try(fmt.Sprint("before", i), "guess", "")
	}
	for i := range probes {
		try(id, fmt.Sprint("guess", i), raw)
	}
	time.Sleep(100 * time.Millisecond)
	for i := range guesses {
		try(fmt.Sprint("after", i), "guess", "")
	}
	wg.Wait()
	return got
}

// TestFullLine: when too many attempts wait, some are refused, at once or at their timeout.
func TestFullLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthenticator(t, client.Config{Store: newStore(t), Parallel: 1, Waiting: 8, Timeout: 9500 * time.Millisecond})
		a.CompareTakes(time.Second)
		outcomes := make(chan string, 32)
		for i := range 16 {
			go func() {
				_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: fmt.Sprint("id", i), Secret: "guess"})
				outcomes <- outcome(err)
			}()
			synctest.Wait()
		}
		var got []string
		for range 16 {
			got = append(got, <-outcomes)
		}
		slices.Sort(got)
		// One begins at once, and one more every two seconds until the timeout. 8 of the other 15 may wait.
		want := append(slices.Repeat([]string{"busy"}, 7+4), slices.Repeat([]string{"unknown_client"}, 5)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestPlacesAreGivenBack: all seats are free in the end, whether attempts match, fail or time out, and in which queue
// they wait.
func TestPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	first := randtest.Seed(t)
	for round := range uint64(200) {
		seed := first + round
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			parallel := 1 + random.IntN(3)
			g := client.NewGate(parallel)
			var wg sync.WaitGroup
			for range 30 {
				name := []string{"", "", "a", "b"}[random.IntN(4)]
				arrives, patience, compare := random.IntN(20), 1+random.IntN(30), 1+random.IntN(3)
				match := random.IntN(2) - 1
				wg.Go(func() {
					time.Sleep(time.Duration(arrives) * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(patience)*time.Second)
					defer cancel()
					_, _ = g.Run(ctx, name, compare, func() int {
						time.Sleep(time.Duration(compare) * time.Second)
						return match
					})
				})
			}
			wg.Wait()
			time.Sleep(time.Minute) // a seat may still be kept empty
			synctest.Wait()
			if free := g.Free(); free != parallel {
				t.Errorf("seed %d: %d of %d places are free", seed, free, parallel)
			}
		})
	}
}
