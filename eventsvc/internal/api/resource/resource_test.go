package resource_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/api/resource"
)

func newServer(t *testing.T, c resource.Config) *resource.Server {
	t.Helper()
	s, err := resource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s *resource.Server, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Host, r.Header["X-Forwarded-Host"] = "evil.example", []string{"evil.example"}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec
}

func tokens() []string { return []string{"https://tokens.example", "https://login.example"} }

// TestDocuments: a client finds the document of a resource where RFC 9728 puts it, and nowhere else. The document has
// the URL that the client called, whatever the request says about its host.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for public, documents := range map[string]map[string]string{
		"https://events.example": {
			"": "https://events.example", "/mcp": "https://events.example/mcp",
			"/": "", "/mcp/": "", "/loki": "", "/mcpx": "", "/mcp/mcp": "", "x": "",
		},
		"http://127.0.0.1:8080/base": {
			"/base": "http://127.0.0.1:8080/base", "/base/mcp": "http://127.0.0.1:8080/base/mcp",
			"": "", "/mcp": "", "/bas": "", "/base/": "",
		},
		"": {"": "", "/mcp": ""},
	} {
		s := newServer(t, resource.Config{PublicURL: public, Issuers: tokens, Documentation: public + "/console/help/", MCP: true})
		for path, want := range documents {
			rec := get(s, "GET", resource.WellKnown+path)
			if want == "" {
				if rec.Code != http.StatusNotFound {
					t.Errorf("%s, %s: %d", public, path, rec.Code)
				}
				continue
			}
			var got map[string]any
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s, %s: %d %v", public, path, rec.Code, err)
			}
			if diff := cmp.Diff(map[string]any{
				"resource": want, "authorization_servers": []any{"https://tokens.example", "https://login.example"},
				"bearer_methods_supported": []any{"header"}, "resource_name": "Tidings events", "resource_documentation": public + "/console/help/",
			}, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", public, path, diff)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*",
			} {
				if rec.Header().Get(name) != value {
					t.Errorf("%s: %q", name, rec.Header()[name])
				}
			}
		}
	}
}

// TestMethods: HEAD has the header of GET, the ETag saves the body, and nothing else is answered.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := newServer(t, resource.Config{PublicURL: "https://events.example", Issuers: tokens, MCP: true})
	whole := get(s, "GET", resource.WellKnown)
	etag := whole.Header().Get("ETag")
	if rec := get(s, "HEAD", resource.WellKnown); rec.Code != 200 || rec.Body.Len() > 0 || rec.Header().Get("Content-Length") != whole.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d %v", rec.Code, rec.Header())
	}
	if rec := get(s, "GET", resource.WellKnown, "If-None-Match", etag); rec.Code != http.StatusNotModified || rec.Body.Len() > 0 {
		t.Errorf("with %s: %d", etag, rec.Code)
	}
	if other := get(s, "GET", resource.WellKnown+"/mcp").Header().Get("ETag"); other == etag {
		t.Error("both documents have one ETag")
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if rec := get(s, method, resource.WellKnown); rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, rec.Code, rec.Header())
		}
	}
}

// TestIssuersFollowed: the documents have the issuers of now. While there is none, there are no documents, and no
// challenge names one.
func TestIssuersFollowed(t *testing.T) {
	t.Parallel()
	var issuers []string
	s := newServer(t, resource.Config{PublicURL: "https://events.example", Issuers: func() []string { return issuers }, MCP: true})
	if rec := get(s, "GET", resource.WellKnown); rec.Code != http.StatusNotFound || s.Metadata("/mcp") != "" || s.Scope("", "events") != "events" {
		t.Errorf("without an issuer: %d, %q, %q", rec.Code, s.Metadata("/mcp"), s.Scope("", "events"))
	}
	issuers = tokens()
	rec := get(s, "GET", resource.WellKnown)
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), issuers[1]) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for path, want := range map[string]string{
		"/mcp": "https://events.example/.well-known/oauth-protected-resource/mcp", "/api/v1/events": "https://events.example/.well-known/oauth-protected-resource",
	} {
		if got := s.Metadata(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestScopes: neither documents nor challenges have scopes unless a setting names some.
func TestScopes(t *testing.T) {
	t.Parallel()
	c := resource.Config{PublicURL: "https://events.example", Issuers: tokens}
	without := newServer(t, c)
	if body := get(without, "GET", resource.WellKnown).Body.String(); strings.Contains(body, "scopes_supported") || without.Scope("", "events") != "" {
		t.Errorf("%s, %q", body, without.Scope("", "events"))
	}
	c.Scopes = []string{"events"}
	with := newServer(t, c)
	if body := get(with, "GET", resource.WellKnown).Body.String(); !strings.Contains(body, `"scopes_supported":["events"]`) || with.Scope("", "events") != "events" {
		t.Errorf("%s, %q", body, with.Scope("", "events"))
	}
}

// TestWithoutMCP: where agents are not served, only the document of the whole API is there.
func TestWithoutMCP(t *testing.T) {
	t.Parallel()
	s := newServer(t, resource.Config{PublicURL: "https://events.example", Issuers: tokens})
	for path, want := range map[string]int{"": 200, "/mcp": 404} {
		if rec := get(s, "GET", resource.WellKnown+path); rec.Code != want {
			t.Errorf("%q: %d %s", path, rec.Code, rec.Body)
		}
	}
}
