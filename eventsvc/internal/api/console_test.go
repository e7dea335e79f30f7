package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/console"
)

// TestConsole: the files of the console need no token, and everything beside them does.
// Browsers find the page, other clients find what they always did.
func TestConsole(t *testing.T) {
	t.Parallel()
	page, err := console.New(console.Config{EventsPath: "/apis/events.k8s.io/v1"})
	if err != nil {
		t.Fatal(err)
	}
	w := apitest.New(t, func(c *api.Config) { c.Console = page })
	off := apitest.New(t)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	for _, tt := range []struct {
		name                  string
		world                 *apitest.World
		method, path, accept  string
		token                 bool
		code                  int
		location, contentType string
	}{
		{"a browser", w, "GET", "/", browser, false, 302, "/console/", ""},
		{"a browser with a token", w, "GET", "/", browser, true, 302, "/console/", ""},
		{"curl", w, "GET", "/", "*/*", true, 200, "", "application/json"},
		{"curl without a token", w, "GET", "/", "*/*", false, 401, "", "application/json"},
		{"a client that says nothing", w, "GET", "/", "", true, 200, "", "application/json"},
		{"a client that takes pages too", w, "GET", "/", "application/json, text/html", true, 200, "", "application/json"},
		{"a client that wants no pages", w, "GET", "/", "text/html;q=0, */*", true, 200, "", "application/json"},
		{"a write", w, "POST", "/", browser, false, 401, "", "application/json"},
		{"a browser, without a console", off, "GET", "/", browser, false, 401, "", "application/json"},

		{"the page", w, "GET", "/console/", browser, false, 200, "", "text/html; charset=utf-8"},
		{"the page, for curl", w, "GET", "/console/", "*/*", false, 200, "", "text/html; charset=utf-8"},
		{"its header", w, "HEAD", "/console/", browser, false, 200, "", "text/html; charset=utf-8"},
		{"its folder", w, "GET", "/console", browser, false, 302, "/console/", "text/html; charset=utf-8"},
		{"no file", w, "GET", "/console/none", browser, false, 404, "", "text/plain; charset=utf-8"},
		{"a write to the page", w, "POST", "/console/", browser, false, 405, "", "text/plain; charset=utf-8"},
		{"a name that only begins alike", w, "GET", "/consoles", browser, false, 401, "", "application/json"},
		{"out of the folder", w, "GET", "/console/../apis", browser, false, 404, "", "text/plain; charset=utf-8"},
		{"out of the folder, encoded", w, "GET", "/console/%2e%2e%2fapis", browser, false, 404, "", "text/plain; charset=utf-8"},
		{"the page, without a console", off, "GET", "/console/", browser, false, 401, "", "application/json"},
		{"the page, without a console but with a token", off, "GET", "/console/", browser, true, 404, "", "text/plain; charset=utf-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil)
			if tt.accept != "" {
				r.Header.Set("Accept", tt.accept)
			}
			if tt.token {
				r.Header.Set("Authorization", "Bearer good")
			}
			rec := httptest.NewRecorder()
			tt.world.Handler().ServeHTTP(rec, r)
			h := rec.Header()
			if rec.Code != tt.code || h.Get("Location") != tt.location || h.Get("Content-Type") != tt.contentType {
				t.Errorf("%d, Location %q, Content-Type %q: %s", rec.Code, h.Get("Location"), h.Get("Content-Type"), rec.Body)
			}
			if h.Get("Audit-Id") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%v lacks what every answer has", h)
			}
			if scripts := strings.Contains(h.Get("Content-Security-Policy"), "script-src"); scripts != (tt.code == http.StatusOK && strings.HasPrefix(tt.contentType, "text/html")) {
				t.Errorf("Content-Security-Policy: %s", h.Get("Content-Security-Policy"))
			}
			if tt.path == "/" && tt.world == w && tt.method == http.MethodGet && h.Get("Vary") != "Accept" {
				t.Errorf("Vary: %s", h.Get("Vary"))
			}
		})
	}
	var index metav1.RootPaths
	if err := json.Unmarshal(w.Do("GET", "/", "").Must(200).Body, &index); err != nil || len(index.Paths) < 10 {
		t.Errorf("%v, %v", index, err)
	}
}
