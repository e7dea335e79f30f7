package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/console"
	"tidings.example/shared/waittest"
)

// TestConsole: the page is told where tokens come from, and its address is logged.
func TestConsole(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	issuers := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(issuers, fmt.Appendf(nil, "- issuer: other\n  jwksURL: %s/jwks\n", i.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string // token endpoint
	}{
		{"one issuer", nil, i.URL + "/oauth2/token"},
		{"an issuer whose path ends with a slash", []string{"--issuer=" + i.URL + "/", "--jwks-url=" + i.URL + "/jwks"}, i.URL + "/oauth2/token"},
		{"an issuer that is no URL", []string{"--issuer=opaque", "--jwks-url=" + i.URL + "/jwks"}, ""},
		{"several issuers", []string{"--issuers-file=" + issuers}, ""},
		{"several issuers, one of them named", []string{"--issuers-file=" + issuers, "--console-token-url=https://login.example/token"}, "https://login.example/token"},
		{"none", []string{"--console-token-url=none"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, t.TempDir(), i, tt.args...)
			code, body := get(t, p.url("--listen-http")+"/console/config.json")
			var c console.Config
			if err := json.Unmarshal(body, &c); err != nil || code != http.StatusOK {
				t.Fatalf("%d: %s", code, body)
			}
			if c.TokenURL != tt.want || c.EventsPath != "/apis/events.k8s.io/v1" || c.Version == "" {
				t.Errorf("%+v", c)
			}
			if err := p.stop(); err != nil { // which writes the log
				t.Error(err)
			}
			log, err := os.ReadFile(p.log)
			if line := `"msg":"console","url":"` + p.url("--listen-http") + `/console/"`; err != nil || !strings.Contains(string(log), line) {
				t.Errorf("%v, the address is not in\n%s", err, log)
			}
		})
	}
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		p := launch(t, t.TempDir(), i, "--no-console")
		if code, body := get(t, p.url("--listen-http")+"/console/"); code != http.StatusUnauthorized {
			t.Errorf("%d: %s", code, body)
		}
	})
}

// get asks without a token, and follows no redirect.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// TestConsoleFollowsIssuers: the page and its policy follow the issuers file while the service runs, and a mistake in a
// block changes nothing.
func TestConsoleFollowsIssuers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	provider := httptest.NewServer(nil)
	t.Cleanup(provider.Close)
	provider.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":"https://login.example/auth","token_endpoint":"https://tokens.example/token"}`,
			provider.URL, i.URL+"/jwks")
	})
	file := writeFile(t, "issuers.yaml", "[]")
	p := launch(t, t.TempDir(), i, "--issuers-file="+file)
	page := func() (policy string, c console.Config) {
		resp, err := http.Get(p.url("--listen-http") + "/console/config.json")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
			t.Fatal(err)
		}
		return resp.Header.Get("Content-Security-Policy"), c
	}
	if policy, c := page(); strings.Contains(policy, "tokens.example") || len(c.SignIn) != 0 {
		t.Errorf("%s, %+v", policy, c)
	}
	good := fmt.Sprintf("- {issuer: %q, console: {clientID: console, name: Corp}}\n", provider.URL)
	replaceFile(t, file, good)
	waittest.Until(t, "the page knows the provider", func() bool {
		policy, c := page()
		return len(c.SignIn) == 1 && c.SignIn[0].Name == "Corp" && c.SignIn[0].TokenEndpoint == "https://tokens.example/token" && strings.Contains(policy, " https://tokens.example;")
	})
	replaceFile(t, file, strings.Replace(good, "clientID: console, ", "", 1))
	waittest.Until(t, "the mistake is counted", func() bool { return p.metric(t, "issuers_file_good") == "0" })
	if policy, c := page(); len(c.SignIn) != 1 || !strings.Contains(policy, " https://tokens.example;") {
		t.Errorf("%s, %+v", policy, c)
	}
	replaceFile(t, file, "[]")
	waittest.Until(t, "the provider is gone", func() bool {
		policy, c := page()
		return len(c.SignIn) == 0 && !strings.Contains(policy, "tokens.example")
	})
}

// TestSignInWithoutConsole: the log says that nobody can sign in to a page that is not served.
func TestSignInWithoutConsole(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := launch(t, t.TempDir(), i, "--no-console", "--issuers-file="+writeFile(t, "issuers.yaml", "- {issuer: 'https://login.example', jwksURL: '"+i.URL+"/jwks', console: {clientID: c}}"))
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(p.log)
	if err != nil || strings.Count(string(log), "the block console of the issuer has no effect") != 1 {
		t.Errorf("%v\n%s", err, log)
	}
}
