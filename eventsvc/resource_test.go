package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tidings.example/shared/waittest"
)

// documented returns the member authorization_servers of a document; nil: there is no document.
func (p *process) documented(path string) (servers []string) {
	p.t.Helper()
	resp, err := http.Get(p.url("--listen-http") + "/.well-known/oauth-protected-resource" + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	var document struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
	}
	if err := json.Unmarshal(body, &document); err != nil || document.Resource != "https://events.example"+path {
		p.t.Errorf("%s: %v: %s", path, err, body)
	}
	return document.Servers
}

// TestDiscovery: clients without a token are led to the issuers that may be named, as the issuers file has them now.
// Tokens for the advertised resources are accepted beside those for --audience.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	first, second := newIssuer(t), newIssuer(t)
	entry := func(more string) string {
		return fmt.Sprintf("- {issuer: %q, jwksURL: %q, audiences: [them]%s}\n", second.URL, second.URL+"/jwks", more)
	}
	issuers := writeFile(t, "issuers.yaml", entry(""))
	policy := writeFile(t, "policy.yaml", "bindings: [{role: 'events:read', subjects: [{issuer: '*', scope: 'events:read'}]}]")
	p := start(t, t.TempDir(), first, "--public-url=https://events.example/", "--audience=us", "--issuers-file="+issuers, "--policy-file="+policy)
	for _, path := range []string{"", "/mcp"} {
		if got := p.documented(path); !slices.Equal(got, []string{first.URL}) {
			t.Errorf("%q: %v", path, got)
		}
	}

	token := func(i *issuer, audience string) string {
		return i.token(t, func(claims map[string]any) { claims["aud"] = audience })
	}
	const root = `resource_metadata="https://events.example/.well-known/oauth-protected-resource"`
	for _, c := range []struct {
		name          string
		authorization map[string][]string
		challenge     string
		code          int
	}{
		{"no token", nil, "Bearer " + root, 401},
		{"bad token", bearing("a.b.c"), `Bearer error="invalid_token", ` + root, 401},
		{"empty token", bearing(""), `Bearer error="invalid_request", error_description="empty token", ` + root, 401},
		{"another audience", bearing(token(first, "them")), `Bearer error="invalid_token", ` + root, 401},
		{"no scope", bearing(token(first, "us")), `Bearer error="insufficient_scope", ` + root, 403},
		{"for the public URL", bearing(token(first, "https://events.example")), `Bearer error="insufficient_scope", ` + root, 403},
		{"for /mcp", bearing(token(first, "https://events.example/mcp")), `Bearer error="insufficient_scope", ` + root, 403},
		{"for the public URL, of an issuer that is not advertised", bearing(token(second, "https://events.example")), `Bearer error="invalid_token", ` + root, 401},
	} {
		code, text, header := p.get(c.authorization, "")
		if got := header.Get("WWW-Authenticate"); code != c.code || got != c.challenge {
			t.Errorf("%s: %d %s: %s", c.name, code, got, text)
		}
	}

	replaceFile(t, issuers, entry(", advertise: true"))
	waittest.Until(t, "the second issuer is named", func() bool { return slices.Equal(p.documented("/mcp"), []string{first.URL, second.URL}) })
	if code, text, _ := p.get(bearing(token(second, "https://events.example/mcp")), ""); code != http.StatusForbidden {
		t.Errorf("for the resource, of an issuer that is advertised: %d %s", code, text)
	}
	replaceFile(t, issuers, entry(""))
	waittest.Until(t, "the second issuer is no longer named", func() bool { return slices.Equal(p.documented(""), []string{first.URL}) })
}

// TestScopesAdvertised: with --resource-scopes, documents and challenges name scopes.
func TestScopesAdvertised(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	policy := writeFile(t, "policy.yaml", "bindings: [{role: 'events:read', subjects: [{scope: 'events:read'}]}]")
	p := start(t, t.TempDir(), i, "--public-url=https://events.example", "--resource-scopes=events:read,events:write", "--policy-file="+policy)
	if code, _, header := p.get(bearing(p.token), ""); code != http.StatusForbidden || !strings.HasPrefix(header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="events:read", resource_metadata="`) {
		t.Errorf("%d %s", code, header.Get("WWW-Authenticate"))
	}
	for _, path := range []string{"", "/mcp"} {
		resp, err := http.Get(p.url("--listen-http") + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(body), `"scopes_supported":["events:read","events:write"]`) {
			t.Errorf("%q: %v %s", path, err, body)
		}
	}
}

// TestPublicURL: without --public-url, a listener on a loopback address that clients can name is the public URL;
// another is none.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "localhost:80": "http://localhost:80", "[::1]:8080": "http://[::1]:8080",
		"127.0.0.1:0": "", ":8080": "", "0.0.0.0:8080": "", "10.0.0.1:8080": "", "": "",
	} {
		s := serve{ListenHTTP: listen}
		if err := s.checkPublicURL(); err != nil || s.PublicURL != want {
			t.Errorf("%s: %q, %v", listen, s.PublicURL, err)
		}
	}
}
