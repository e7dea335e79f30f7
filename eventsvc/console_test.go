package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/console"
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
