// Package console serves the web page that shows a person what happened.
//
// # Contract
//
// [New] returns a handler for the files of static, which are part of the program, below
// [Folder]. The page gets everything else from the API of the server that serves it, with
// the token of the person who looks; the files themselves are the same for everybody and
// need no token. It learns what the server is, and where people sign in, from config.json,
// which [Console.SetSignIn] makes again.
//
// The page loads one script and one style sheet, which are put together of the files in static when the service
// starts, and fonts. Each has its content in its name and never changes, so a browser that has it does not ask again.
// The page itself names them, and has the configuration too: browsers ask each time whether it has changed (ETag, RFC
// 9110 section 8.8.3), so a new version of the service never meets files of an old one.
//
// Every file is compressed once: the files of the page when the service starts, the files of
// the manual when they are first asked for.
//
// The folder help has the manual, which make manual renders before a build. A program that
// was built without it says so there.
//
// No answer loads or runs anything from elsewhere: a Content-Security-Policy forbids
// inline scripts and styles, frames and forms, and texts that become markup (Trusted
// Types). Requests may go to the server itself and to the endpoints of tokens. Because the
// policy follows them, it is part of the name of the page's content: a browser that asks whether
// its page has changed keeps the policy that it had if the answer is no.
//
// # Concurrency
//
// The handler is safe for concurrent use.
//
// # What it does not know
//
// Events, tokens and the API: the scripts in static do. In static/js, app.js has the state, requests and permanent
// links, views has a file for each view, and parts what views are made of. Of those in lib, address.js keeps the state
// in the address, oidc.js signs people in, client.js fetches the tokens of a client, session.js keeps the token, in
// the memory of the tab, and lasting.js has package session keep what gets the next one.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidings.example/shared/httpserver"
)

// Folder is where the console is. Its page is at Folder with a slash behind it.
const Folder = "/console"

// Config is what the page is told about its server, as config.json.
type Config struct {
	Version    string `json:"version"`    // of the service
	EventsPath string `json:"eventsPath"` // of the group of events, such as /apis/events.k8s.io/v1
	Issuer     string `json:"issuer"`     // of the tokens that are accepted
	TokenURL   string `json:"tokenURL"`   // where a client id and secret become a token; empty: nowhere

	SignIn   []SignIn `json:"signIn"`   // where people sign in
	Sessions bool     `json:"sessions"` // whether the server keeps them signed in: package session

	// From and To are the range that the page begins with, as its address has them; empty: the last day.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// SignIn is an OpenID provider where people sign in. The page sends them there, and gets tokens from it.
type SignIn struct {
	Issuer     string            `json:"issuer"`
	Name       string            `json:"name"` // for people
	ClientID   string            `json:"clientID"`
	Scopes     []string          `json:"scopes"`
	Token      string            `json:"token"`      // the one that is sent to the server: access or id
	Parameters map[string]string `json:"parameters"` // more of the authorization request

	AuthorizationEndpoint string `json:"authorizationEndpoint"`
	TokenEndpoint         string `json:"tokenEndpoint"`
	EndSessionEndpoint    string `json:"endSessionEndpoint"` // empty: people cannot sign out there
	RevocationEndpoint    string `json:"revocationEndpoint"` // empty: refresh tokens are not given back
	IssRequired           bool   `json:"issRequired"`        // its answers name it (RFC 9207)

	Accepts Accepts `json:"accepts"`

	Unavailable string `json:"unavailable"` // why nobody can sign in there at present, for everybody to read; empty: they can
}

// Accepts is what the server asks of the tokens of a provider, by which the page says why one was refused.
type Accepts struct {
	Bytes     int      `json:"bytes"`     // of the longest token
	Audiences []string `json:"audiences"` // empty: any
	Claims    []string `json:"claims"`    // claims that are texts or lists of texts
	Life      int64    `json:"life"`      // in seconds, from iat to exp
	ClockSkew int64    `json:"clockSkew"` // in seconds, by which the clocks may differ
}

//go:embed static
var embedded embed.FS

// styles are the style sheets, in the order in which they are read.
var styles = []string{"css/base.css", "css/frame.css", "css/plots.css", "css/table.css", "css/views.css"}

const manual = "help"

// mediaTypes are the media types of the files, by extension.
var mediaTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// file is one file in the forms in which it is sent.
type file struct {
	mediaType string
	plain     form
	small     func() form // compressed, when it is first asked for; nil: never
	lasting   bool        // its content is in its name
}

// form is the content of a file, and the name of this content.
type form struct {
	content []byte
	name    string
}

// New returns a handler for [Folder] and everything below it. It answers GET and HEAD.
func New(c Config) (*Console, error) {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		return nil, err
	}
	s := &Console{fixed: c, files: map[string]func() (*file, error){}}
	contents, err := s.read(static)
	if err != nil {
		return nil, err
	}
	if err := s.assemble(contents); err != nil {
		return nil, err
	}
	if err := s.SetSignIn(c.SignIn); err != nil {
		return nil, err
	}
	s.files[Folder+"/config.json"] = func() (*file, error) { return s.current.Load().config, nil }
	s.files[Folder+"/"] = func() (*file, error) { return s.current.Load().page, nil }
	s.files[Folder+"/index.html"] = s.files[Folder+"/"]
	s.files[Folder+"/"+manual+"/"] = s.files[Folder+"/"+manual+"/index.html"]
	return s, nil
}

// assemble makes what the page loads, and the page but for its configuration.
func (s *Console) assemble(contents map[string][]byte) error {
	var names []string // pairs of what sources call a file, and how it is served
	served := func(name string) string {
		sum := sha256.Sum256(contents[name])
		return fmt.Sprintf("%s-%x%s", strings.TrimSuffix(name, path.Ext(name)), sum[:8], path.Ext(name))
	}
	add := func(name string) error {
		f, err := newFile(name, contents[name])
		if err != nil {
			return err
		}
		f.lasting = true
		s.files[Folder+"/"+served(name)] = func() (*file, error) { return f, nil }
		names = append(names, `"`+name+`"`, `"`+served(name)+`"`)
		return nil
	}
	for name, content := range contents {
		switch path.Ext(name) {
		case ".js", ".css", ".html":
			continue
		}
		if err := add(name); err != nil {
			return err
		}
		f, err := newFile(name, content) // also by its own name, for the manual
		if err != nil {
			return err
		}
		s.files[Folder+"/"+name] = func() (*file, error) { return f, nil }
	}
	script, err := bundleModules("js/main.js", contents)
	if err != nil {
		return err
	}
	contents["app.js"] = []byte(strings.NewReplacer(names...).Replace(string(script)))
	contents["app.css"] = bundleStyles(styles, contents, served)
	for _, name := range []string{"app.js", "app.css"} {
		if err := add(name); err != nil {
			return err
		}
	}
	s.page = strings.NewReplacer(names...).Replace(string(contents["index.html"]))
	return nil
}

// SetSignIn tells pages that are loaded from now on where people sign in. If it returns an error, which names the
// endpoint that cannot be used, nothing has changed.
func (s *Console) SetSignIn(providers []SignIn) error {
	c := s.fixed
	c.SignIn = append([]SignIn{}, providers...) // a list in JSON also if there is none
	policy, err := c.contentPolicy()
	if err != nil {
		return err
	}
	content, err := json.Marshal(c)
	if err != nil {
		return err
	}
	page, err := newFile("index.html", []byte(strings.Replace(s.page, configPlace, html.EscapeString(string(content)), 1)))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(policy))
	s.current.Store(&settings{policy: policy, tag: fmt.Sprintf("%x", sum[:8]), page: page, config: &file{mediaType: mediaTypes[".json"], plain: newForm(content)}})
	return nil
}

// settings are what follows the providers.
type settings struct {
	policy string // Content-Security-Policy
	tag    string // its name
	page   *file  // index.html
	config *file  // config.json
}

// configPlace is the place in index.html where the configuration is, so that the page does not have to ask for it.
const configPlace = "CONFIG"

// contentPolicy is the Content-Security-Policy (W3C CSP level 3, and Trusted Types).
func (c *Config) contentPolicy() (string, error) {
	requests := []string{"'self'"}
	endpoints := []string{c.TokenURL}
	for _, p := range c.SignIn {
		endpoints = append(endpoints, p.TokenEndpoint, p.RevocationEndpoint)
	}
	for _, endpoint := range endpoints {
		if endpoint == "" {
			continue
		}
		u, err := url.Parse(endpoint)
		// A Content-Security-Policy would read these characters as its own.
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(u.Host, ";,'") {
			return "", fmt.Errorf("console: the token endpoint %q is no URL", endpoint)
		}
		if origin := u.Scheme + "://" + u.Host; !slices.Contains(requests, origin) {
			requests = append(requests, origin)
		}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src " + strings.Join(requests, " ") +
		"; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'", nil
}

// read returns the content of every file by its path, except for the manual: its files are
// made when they are asked for.
func (s *Console) read(files fs.FS) (map[string][]byte, error) {
	contents := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasPrefix(name, manual+"/") {
			s.files[Folder+"/"+name] = sync.OnceValues(func() (*file, error) { return readFile(files, name) })
			return nil
		}
		contents[name], err = fs.ReadFile(files, name)
		return err
	})
	return contents, err
}

func readFile(files fs.FS, name string) (*file, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	return newFile(name, content)
}

// newFile makes the forms of a file. PNG and fonts are compressed already.
func newFile(name string, content []byte) (*file, error) {
	f := &file{mediaType: mediaTypes[path.Ext(name)], plain: newForm(content)}
	switch f.mediaType {
	case "":
		return nil, fmt.Errorf("console: %s has an extension without a media type", name)
	case mediaTypes[".png"], mediaTypes[".woff2"]:
		return f, nil
	}
	f.small = sync.OnceValue(func() form {
		var b bytes.Buffer // into which nothing fails to be written
		zip, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = zip.Write(content)
		_ = zip.Close()
		return newForm(b.Bytes())
	})
	return f, nil
}

func newForm(content []byte) form {
	return form{content, fmt.Sprintf("%x", sha256.Sum256(content))}
}

// Console serves the page.
type Console struct {
	fixed   Config                           // but for SignIn
	page    string                           // index.html without its configuration
	files   map[string]func() (*file, error) // by the path of a request
	current atomic.Pointer[settings]
}

// ServeHTTP answers with a file.
func (s *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == Folder {
		http.Redirect(w, r, Folder+"/", http.StatusFound)
		return
	}
	open := s.files[r.URL.Path]
	if open == nil {
		if s.files[Folder+"/"+manual+"/"] == nil && strings.HasPrefix(r.URL.Path, Folder+"/"+manual+"/") {
			http.Error(w, "404 this program was built without the manual: make build includes it", http.StatusNotFound)
			return
		}
		http.NotFound(w, r)
		return
	}
	f, err := open()
	if err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Cache-Control", "no-cache")
	if f.lasting {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", f.mediaType)
	now := s.current.Load()
	h.Set("Content-Security-Policy", now.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	sent := f.plain
	if f.small != nil {
		h.Set("Vary", "Accept-Encoding")
		if httpserver.AcceptsGzip(r.Header) {
			h.Set("Content-Encoding", "gzip")
			sent = f.small()
		}
	}
	h.Set("ETag", `"`+sent.name+"-"+now.tag+`"`)
	h.Set("Content-Length", strconv.Itoa(len(sent.content)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(sent.content))
}
