// Package resource tells clients where they get tokens for this service: OAuth 2.0 Protected Resource Metadata (RFC
// 9728).
//
// # Contract
//
// [Server] serves one document for the whole API, and one for [MCP] if agents are served: a client compares the member
// resource with the URL that it has called, to the letter, so one document cannot stand for both. [Server.Metadata] is
// the URL that a challenge names. There are no documents, and challenges name none, without a public URL or while there
// is no authorization server.
//
// Nothing here depends on what a request says about its host: whoever could choose it would send clients, and their
// secrets, to an authorization server of their own.
//
// # Concurrency
//
// A Server is safe for concurrent use.
package resource

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// WellKnown is the path of the document of the whole API; other documents are below it (RFC 9728 section 3.1).
	WellKnown = "/.well-known/oauth-protected-resource"
	// MCP is the path of the server for agents.
	MCP = "/mcp"
)

// Config is what the documents say.
type Config struct {
	PublicURL     string          // where clients reach the service, without a slash at the end; empty: nothing is published
	Issuers       func() []string // URLs of authorization servers, the preferred one first: many clients ask no other
	Scopes        []string        // that clients should ask for; empty: clients ask for what they are registered for
	Documentation string          // URL of a page for people; empty: none
	MCP           bool            // whether there is a document for [MCP]
}

// Identifiers returns the resources of a service with this public URL, by which tokens may name it (RFC 8707): none if
// there is no public URL.
func Identifiers(publicURL string) []string {
	if publicURL == "" {
		return nil
	}
	return []string{publicURL, publicURL + MCP}
}

// Server serves the documents. Its zero value serves none.
type Server struct {
	Config
	site, path string // of the public URL: scheme and host, and what follows
}

// New makes a server. The public URL has been checked: it is http or https, and has neither query nor fragment.
func New(c Config) (*Server, error) {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("resource: the public URL: %w", err)
	}
	return &Server{Config: c, site: u.Scheme + "://" + u.Host, path: u.EscapedPath()}, nil
}

// document has the members of RFC 9728 section 2.
type document struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Scopes               []string `json:"scopes_supported,omitempty"`
	Name                 string   `json:"resource_name"`
	Documentation        string   `json:"resource_documentation,omitempty"`
}

// Metadata returns the URL of the document for a path of the API; empty: there is none.
func (s *Server) Metadata(path string) string {
	if s.PublicURL == "" || len(s.Issuers()) == 0 {
		return ""
	}
	return s.site + WellKnown + s.path + s.below(path)
}

// below returns what the resource that a path of the API belongs to has behind the public URL.
func (s *Server) below(path string) string {
	if s.MCP && path == MCP {
		return MCP
	}
	return ""
}

// Scope returns what a challenge names of a scope that is missing. Clients ask for the scope of a challenge, and token
// services refuse those that a client is not registered for, so without [Config.Scopes] a challenge that leads to the
// document names none.
func (s *Server) Scope(path, scope string) string {
	if len(s.Scopes) == 0 && s.Metadata(path) != "" {
		return ""
	}
	return scope
}

// ServeHTTP answers GET and HEAD for [WellKnown] and what is below it. No token is needed: the documents are for
// clients that have none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.EscapedPath(), WellKnown+s.path)
	if !ok || name != s.below(name) || s.Metadata(name) == "" {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(document{
		Resource: s.PublicURL + name, AuthorizationServers: s.Issuers(), BearerMethods: []string{"header"},
		Scopes: s.Scopes, Name: "Tidings events", Documentation: s.Documentation,
	})
	if err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Access-Control-Allow-Origin", "*") // it is the same for everybody
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
