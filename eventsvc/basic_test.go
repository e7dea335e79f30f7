package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// trading is an issuer with a token endpoint for one client.
type trading struct {
	*issuer
	endpoint *httptest.Server
	mu       sync.Mutex
	asked    int
	source   string
	change   func(claims map[string]any)
}

const traded = "S3cret +%:ü of grafana"

func newTrading(t *testing.T) *trading {
	t.Helper()
	e := &trading{issuer: newIssuer(t)}
	e.endpoint = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.asked++
		e.source = r.Header.Get("X-Forwarded-For")
		if r.Method != http.MethodPost || r.URL.RawQuery != "" || r.Header.Get("Authorization") != "" || r.FormValue("client_id") != "grafana" || r.FormValue("client_secret") != traded {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token_type": "Bearer", "expires_in": 300, "access_token": e.token(t, e.change)})
	}))
	t.Cleanup(e.endpoint.Close)
	return e
}

// ask sends a user and a password from behind a proxy, and returns the status.
func (p *process) ask(path, user, password, forwarded string) int {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url("--listen-http")+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("X-Forwarded-For", forwarded)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

const labels = "/loki/api/v1/labels"

// TestBasic: a client that sends its id and secret costs the token endpoint one request. Neither a secret nor an id
// that was refused is in the log, in the audit log or in the metrics.
func TestBasic(t *testing.T) {
	t.Parallel()
	e := newTrading(t)
	dir := t.TempDir()
	p := start(t, dir, e.issuer, "--basic-token-url="+e.endpoint.URL+"/oauth2/token", "--audit=metadata")
	for range 3 {
		if code := p.ask(labels, "grafana", traded, "203.0.113.7"); code != http.StatusOK {
			t.Fatalf("%d", code)
		}
	}
	if code := p.ask(labels, "grafana", "wrong-S3cret", ""); code != http.StatusUnauthorized {
		t.Errorf("wrong secret: %d", code)
	}
	if code := p.ask(labels, "mistyped-S3cret", "x", ""); code != http.StatusUnauthorized {
		t.Errorf("a secret as id: %d", code)
	}
	if code := p.ask(labels, "any", e.token(t, nil), ""); code != http.StatusOK {
		t.Errorf("a token as password: %d", code)
	}
	if code := p.ask(eventsPath, "grafana", traded, ""); code != http.StatusUnauthorized {
		t.Errorf("a path of Kubernetes: %d", code)
	}
	if e.asked != 3 || e.source != "127.0.0.1" {
		t.Errorf("asked %d times, for %s", e.asked, e.source)
	}
	for outcome, want := range map[string]string{"ok": "1", "refused": "2", "unavailable": "0"} {
		if got := p.metric(t, `eventsvc_basic_trades_total{outcome="`+outcome+`"}`); got != want {
			t.Errorf("%s trades %s, want %s", got, outcome, want)
		}
	}
	resp, err := http.Get(p.url("--listen-admin") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{"metrics": string(metrics)}
	for name, file := range map[string]string{"log": p.log, "audit": filepath.Join(dir, "audit.log")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said[name] = string(text)
	}
	for name, text := range said {
		for _, secret := range []string{"S3cret", url.QueryEscape(traded), "Z3JhZmFuYTp", "eyJ"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains %q: %s", name, secret, text)
			}
		}
	}
	if !strings.Contains(said["audit"], `"client":"demo","auth":"basic"`) || !strings.Contains(said["log"], "Basic: refused by the token endpoint") {
		t.Errorf("audit:\n%s\nlog:\n%s", said["audit"], said["log"])
	}
}

// TestBasicNotAccepted: the log names the rule that a traded token breaks.
func TestBasicNotAccepted(t *testing.T) {
	t.Parallel()
	e := newTrading(t)
	e.change = func(claims map[string]any) { claims["aud"] = "elsewhere" }
	p := start(t, t.TempDir(), e.issuer, "--basic-token-url="+e.endpoint.URL, "--audience=eventsvc")
	if code := p.ask(labels, "grafana", traded, ""); code != http.StatusUnauthorized {
		t.Errorf("%d", code)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(p.log); err != nil || strings.Count(string(text), "other audience") < 2 {
		t.Errorf("%v: %s", err, text)
	}
}

// TestBasicSource: X-Forwarded-For is believed from a trusted proxy only. The token endpoint gets the address that was
// found.
func TestBasicSource(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]string{"": "127.0.0.1", "10.0.0.0/8": "127.0.0.1", "127.0.0.1": "203.0.113.7", "127.0.0.0/8,10.0.0.0/8": "203.0.113.7"} {
		e := newTrading(t)
		args := []string{"--basic-token-url=" + e.endpoint.URL}
		if proxies != "" {
			args = append(args, "--trusted-proxy="+proxies)
		}
		p := start(t, t.TempDir(), e.issuer, args...)
		if code := p.ask(labels, "grafana", traded, "198.51.100.1, 203.0.113.7"); code != http.StatusOK || e.source != want {
			t.Errorf("%q: %d, for %s, want %s", proxies, code, e.source, want)
		}
	}
}

// TestBasicLockout: whoever guesses from one address makes a client wait at no other, and not where the client is at
// work.
func TestBasicLockout(t *testing.T) {
	t.Parallel()
	e := newTrading(t)
	p := start(t, t.TempDir(), e.issuer, "--basic-token-url="+e.endpoint.URL, "--trusted-proxy=127.0.0.1")
	var last int
	for n := range 8 {
		last = p.ask(labels, "grafana", fmt.Sprint("guess", n), "203.0.113.66")
	}
	if last != http.StatusTooManyRequests || e.asked != 5 {
		t.Errorf("%d after %d trades", last, e.asked)
	}
	if code := p.ask(labels, "grafana", traded, "203.0.113.7"); code != http.StatusOK {
		t.Errorf("the client: %d", code)
	}
	if code := p.ask(labels, "grafana", traded, "203.0.113.66"); code != http.StatusOK {
		t.Errorf("the client from the address of the guesses: %d", code)
	}
	if got := p.metric(t, `eventsvc_requests_refused_total{limit="basic"}`); got != "3" {
		t.Errorf("%s refusals counted", got)
	}
}
