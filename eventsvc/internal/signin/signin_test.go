package signin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/signin"
	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// provider is an issuer with metadata.
type provider struct {
	*httptest.Server
	broken atomic.Bool
	asked  atomic.Int32
}

// newProvider answers every path but the metadata with a page, as providers that are single-page applications do. Its
// metadata waits for hold, if that is not nil.
func newProvider(t *testing.T, hold <-chan struct{}) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		if r.URL.Path != "/.well-known/openid-configuration" || p.broken.Load() {
			_, _ = fmt.Fprint(w, "<!doctype html>")
			return
		}
		p.asked.Add(1)
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"end_session_endpoint":%q,"revocation_endpoint":"javascript:alert(1)",
"authorization_response_iss_parameter_supported":true}`, p.URL, p.URL+"/auth?tenant=a", p.URL+"/token", p.URL+"/end")
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) entry(name string) trust.Issuer {
	return trust.Issuer{Issuer: p.URL, Audiences: []string{"api"}, Console: &trust.SignIn{ClientID: "console", Name: name, Scopes: []string{"openid"}, Token: "id", Parameters: map[string]string{"a": "b"}}}
}

// bench is a running finder.
type bench struct {
	*signin.Finder
	mu      sync.Mutex
	issuers []trust.Issuer
	told    chan []console.SignIn
	log     strings.Builder
}

func start(t *testing.T, issuers ...trust.Issuer) *bench {
	t.Helper()
	b := &bench{issuers: issuers, told: make(chan []console.SignIn, 1000)}
	b.Finder = signin.New(signin.Config{
		Issuers: func() []trust.Issuer {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.issuers
		},
		ClockSkew: time.Minute,
		Found:     func(all []console.SignIn) error { b.told <- all; return nil },
		Log:       slog.New(slog.NewTextHandler(&b.log, nil)),
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = b.Run(ctx) })
	t.Cleanup(func() { stop(); waittest.Join(t, &running); t.Log(b.log.String()) })
	return b
}

// set changes the entries.
func (b *bench) set(issuers ...trust.Issuer) {
	b.mu.Lock()
	b.issuers = issuers
	b.mu.Unlock()
	b.Recheck()
}

// until returns the first providers that are as a test wants them.
func (b *bench) until(t *testing.T, what string, is func([]console.SignIn) bool) []console.SignIn {
	t.Helper()
	var all []console.SignIn
	waittest.Until(t, what, func() bool {
		select {
		case all = <-b.told:
			return is(all)
		default:
			return false
		}
	})
	return all
}

func one(all []console.SignIn, name string, available bool) bool {
	return len(all) == 1 && all[0].Name == name && (all[0].Unavailable == "") == available
}

// TestFinder goes through the life of entries: a provider is found, renamed without being asked again, joined by
// another, and gone.
func TestFinder(t *testing.T) {
	t.Parallel()
	p, other := newProvider(t, nil), newProvider(t, nil)
	b := start(t, trust.Issuer{Issuer: "https://tokens.example"}, p.entry("A"))
	all := b.until(t, "the provider before it has answered", func(all []console.SignIn) bool { return one(all, "A", false) })
	if !strings.Contains(all[0].Unavailable, "not read its metadata yet") {
		t.Error(all[0].Unavailable)
	}
	all = b.until(t, "its endpoints", func(all []console.SignIn) bool { return one(all, "A", true) })
	if got := all[0]; got.AuthorizationEndpoint != p.URL+"/auth?tenant=a" || got.TokenEndpoint != p.URL+"/token" || got.EndSessionEndpoint != p.URL+"/end" ||
		got.RevocationEndpoint != "" || !got.IssRequired || got.Issuer != p.URL || got.ClientID != "console" || got.Token != "id" || got.Parameters["a"] != "b" {
		t.Errorf("%+v", got)
	}
	if got, want := all[0].Accepts, (console.Accepts{Bytes: bearer.MaxToken, Audiences: []string{"api"}, Life: 3600, ClockSkew: 60}); !cmp.Equal(got, want) {
		t.Errorf("accepts %+v, want %+v", got, want)
	}
	b.set(p.entry("B"))
	b.until(t, "its new name at once", func(all []console.SignIn) bool { return one(all, "B", true) })
	if n := p.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	b.set(other.entry("C"), p.entry("B"))
	b.until(t, "both in their order", func(all []console.SignIn) bool {
		return len(all) == 2 && all[0].Name == "C" && all[1].Name == "B" && all[0].Unavailable+all[1].Unavailable == ""
	})
	b.set()
	b.until(t, "none", func(all []console.SignIn) bool { return len(all) == 0 })
}

// TestUnavailable: a provider that does not answer, or with something else, delays no other. It is asked again until it
// does, and what everybody can read about it names no address.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow, broken, good := newProvider(t, hold), newProvider(t, nil), newProvider(t, nil)
	broken.broken.Store(true)
	b := start(t, slow.entry("slow"), broken.entry("broken"), good.entry("good"))
	all := b.until(t, "the good one beside the others", func(all []console.SignIn) bool {
		return all[2].Unavailable == "" && strings.Contains(all[1].Unavailable, "cannot read its metadata")
	})
	if !strings.Contains(all[0].Unavailable, "yet") || strings.Contains(all[1].Unavailable, "127.0.0.1") || all[1].TokenEndpoint != "" {
		t.Errorf("%+v", all)
	}
	broken.broken.Store(false)
	close(hold)
	b.until(t, "all", func(all []console.SignIn) bool { return all[0].Unavailable+all[1].Unavailable+all[2].Unavailable == "" })
}
