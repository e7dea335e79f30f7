package oauth_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/httpserver"
)

// TestEveryAnswerIsHardened: no answer can be shown as a web page, names the program, or reveals internals.
func TestEveryAnswerIsHardened(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	const demo = "grant_type=client_credentials&client_id=demo&client_secret=s3cret"
	for _, c := range []struct {
		method, path, body string
		code               int
	}{
		{"POST", "/oauth2/token", demo, 200},
		{"POST", "/oauth2/token", strings.Replace(demo, "s3cret", "wrong", 1), 401},
		{"POST", "/oauth2/token", strings.Replace(demo, "client_credentials", "%3Cscript%3E", 1), 400},
		{"POST", "/oauth2/token", strings.Replace(demo, "demo", "outage", 1), 503},
		{"POST", "/oauth2/token", strings.Replace(demo, "demo", "panic-2f7a91c4", 1), 500},
		{"GET", "/oauth2/token", "", 405},
		{"OPTIONS", "/oauth2/token", "", 405},
		{"GET", "/oauth2/jwks", "", 200},
		{"GET", "/.well-known/oauth-authorization-server", "", 200},
		{"GET", "/%3Cscript%3E", "", 401},
		{"GET", "/oauth2/client", "", 401},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.method == "POST" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		httpserver.Access(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), s).ServeHTTP(w, r) // as the program has it
		what := c.method + " " + c.path + " " + c.body
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d: %s", what, w.Code, c.code, w.Body)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Server": "", "X-Powered-By": "",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", what, name, got, want)
			}
		}
		if kind := w.Header().Get("Content-Type"); w.Body.Len() > 0 && c.code != 500 && !strings.Contains(kind, "json") {
			t.Errorf("%s: Content-Type %q", what, kind)
		}
		for _, inside := range []string{"goroutine", ".go:", "panic", "a mistake in the program", "no database", "s3cret", "<script>"} {
			if strings.Contains(w.Body.String(), inside) {
				t.Errorf("%s: the answer has %q: %s", what, inside, w.Body)
			}
		}
	}
}
