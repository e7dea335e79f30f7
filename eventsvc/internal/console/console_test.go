package console_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/event"
)

var config = console.Config{
	Version: "v1", EventsPath: "/apis/events.k8s.io/v1",
	Issuer: "https://issuer.example/realm", TokenURL: "https://issuer.example:9443/realm/oauth2/token",
	SignIn: []console.SignIn{},
}

// do sends a request. Headers are pairs of name and value.
func do(t *testing.T, c console.Config, method, path string, headers ...string) *http.Response {
	t.Helper()
	open := func() (*console.Console, error) { return console.New(c) }
	if cmp.Equal(c, config) {
		open = usual
	}
	h, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

// usual returns the console of config, which is made once.
var usual = sync.OnceValues(func() (*console.Console, error) { return console.New(config) })

// body returns what an answer says, decompressed.
func body(t *testing.T, a *http.Response) string {
	t.Helper()
	r := io.Reader(a.Body)
	if a.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sources returns the files of the console by their path in static.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files := os.DirFS("static")
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, name)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFiles: every file is served, in both forms, with headers that bind the browser.
func TestFiles(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{
		"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
			"connect-src 'self' https://issuer.example:9443; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; " +
			"require-trusted-types-for 'script'; trusted-types 'none'",
	}
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
	}
	for name, content := range sources(t) {
		if ext := path.Ext(name); (ext == ".js" || ext == ".css") && !strings.HasPrefix(name, "help/") {
			if got := do(t, config, "GET", "/console/"+name); got.StatusCode != 404 {
				t.Errorf("%s is served besides what it is a part of: %d", name, got.StatusCode)
			}
			continue
		}
		for _, encoding := range []string{"", "gzip"} {
			got := do(t, config, "GET", "/console/"+name, "Accept-Encoding", encoding)
			if got.StatusCode != 200 || got.Header.Get("Content-Type") != types[path.Ext(name)] {
				t.Errorf("%s: %d, %s", name, got.StatusCode, got.Header.Get("Content-Type"))
			}
			for header, value := range wanted {
				if got.Header.Get(header) != value {
					t.Errorf("%s: %s: %s", name, header, got.Header.Get(header))
				}
			}
			small := encoding == "gzip" && path.Ext(name) != ".png" && path.Ext(name) != ".woff2"
			if zipped := got.Header.Get("Content-Encoding") == "gzip"; zipped != small {
				t.Errorf("%s, asked for %q: compressed: %t", name, encoding, zipped)
			}
			if text := body(t, got); name != "index.html" && text != content {
				t.Errorf("%s: %s", name, cmp.Diff(content, text))
			}
		}
	}
}

// assets are what the page loads, by the name that it asks for.
func assets(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	wanted := []string{body(t, do(t, config, "GET", "/console/"))}
	for len(wanted) > 0 {
		for _, m := range regexp.MustCompile(`"([\w/-]+-[0-9a-f]{16}\.\w+)"`).FindAllStringSubmatch(wanted[0], -1) {
			if _, known := all[m[1]]; known {
				continue
			}
			got := do(t, config, "GET", "/console/"+m[1], "Accept-Encoding", "gzip")
			if got.StatusCode != 200 || got.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
				t.Errorf("%s: %d, %s", m[1], got.StatusCode, got.Header.Get("Cache-Control"))
			}
			all[m[1]] = body(t, got)
			wanted = append(wanted, all[m[1]])
		}
		wanted = wanted[1:]
	}
	return all
}

// TestAssets: the page loads one script, one style sheet, fonts and an icon, which have every module and all rules,
// and whose names change with their content.
func TestAssets(t *testing.T) {
	t.Parallel()
	kinds := map[string][]string{}
	for name := range assets(t) {
		kinds[path.Ext(name)] = append(kinds[path.Ext(name)], name)
	}
	if len(kinds[".js"]) != 1 || len(kinds[".css"]) != 1 || len(kinds[".woff2"]) != 3 || len(kinds[".svg"]) != 1 || len(kinds) != 4 {
		t.Fatalf("%v", kinds)
	}
	script, style := assets(t)[kinds[".js"][0]], assets(t)[kinds[".css"][0]]
	for name, content := range sources(t) {
		switch {
		case strings.HasPrefix(name, "help/"):
		case path.Ext(name) == ".js" && strings.Count(script, `modules["`+name+`"] = `) != 1:
			t.Errorf("the script does not have %s once", name)
		case path.Ext(name) == ".css" && !strings.Contains(style, content[len(content)/2:]):
			t.Errorf("the style sheet does not have all of %s", name)
		}
	}
	if left := regexp.MustCompile(`(?m)^(import|export)\b.*`).FindString(script); left != "" {
		t.Errorf("the script has a form that modules of the console do not use: %s", left)
	}
	if node, err := exec.LookPath("node"); err == nil {
		file := filepath.Join(t.TempDir(), "app.mjs")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), node, "--check", file).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestConditional: a browser that has the file gets only that it is still the same
// (RFC 9110 section 13.1.2), for each form.
func TestConditional(t *testing.T) {
	t.Parallel()
	tags := map[string]bool{}
	for _, encoding := range []string{"", "gzip", "br, GZIP;q=0.5"} {
		first := do(t, config, "GET", "/console/", "Accept-Encoding", encoding)
		tag := first.Header.Get("ETag")
		if !regexp.MustCompile(`^"[0-9a-f]{64}-[0-9a-f]{16}"$`).MatchString(tag) || first.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: ETag %s, Vary %s", encoding, tag, first.Header.Get("Vary"))
		}
		tags[tag] = true
		again := do(t, config, "GET", "/console/", "Accept-Encoding", encoding, "If-None-Match", `"other", `+tag)
		if text := body(t, again); again.StatusCode != 304 || text != "" || again.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %d %s %v", encoding, again.StatusCode, text, again.Header)
		}
	}
	if len(tags) != 2 {
		t.Errorf("two forms have the tags %v", tags)
	}
	other := config
	other.Version = "v2"
	if a, b := do(t, config, "GET", "/console/config.json"), do(t, other, "GET", "/console/config.json"); a.Header.Get("ETag") == b.Header.Get("ETag") {
		t.Error("another configuration has the same tag")
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method, path string
		code               int
		header, value      string
	}{
		{"the page", "GET", "/console/", 200, "Content-Type", "text/html; charset=utf-8"},
		{"the folder without its slash", "GET", "/console", 302, "Location", "/console/"},
		{"another file", "GET", "/console/none.js", 404, "Content-Type", "text/plain; charset=utf-8"},
		{"a folder", "GET", "/console/js/", 404, "", ""},
		{"a way out", "GET", "/console/../console.go", 404, "", ""},
		{"a write", "POST", "/console/", 405, "Allow", "GET, HEAD"},
		{"a deletion of nothing", "DELETE", "/console/none.js", 405, "Allow", "GET, HEAD"},
		{"gzip refused", "HEAD", "/console/", 200, "Content-Encoding", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := do(t, config, tt.method, tt.path, "Accept-Encoding", "gzip;q=0")
			if got.StatusCode != tt.code || got.Header.Get(tt.header) != tt.value {
				t.Errorf("%d, %s: %s", got.StatusCode, tt.header, got.Header.Get(tt.header))
			}
		})
	}
	head, get := do(t, config, "HEAD", "/console/"), do(t, config, "GET", "/console/")
	if body(t, head) != "" || head.Header.Get("Content-Length") != get.Header.Get("Content-Length") {
		t.Error(head.Header)
	}
}

// TestManual: the manual is served if it was rendered before the build. If not, the answer says how to get it.
func TestManual(t *testing.T) {
	t.Parallel()
	got := do(t, config, "GET", "/console/help/")
	if _, err := os.Stat("static/help/index.html"); err == nil {
		if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("rendered: %d, %s", got.StatusCode, got.Header.Get("Content-Type"))
		}
	} else if text := body(t, got); got.StatusCode != 404 || !strings.Contains(text, "make build") {
		t.Errorf("not rendered: %d, %s", got.StatusCode, text)
	}
}

// TestConfig: the page learns what the server is, and may ask for tokens only where it is
// told.
func TestConfig(t *testing.T) {
	t.Parallel()
	got := do(t, config, "GET", "/console/config.json")
	var parsed console.Config
	if err := json.Unmarshal([]byte(body(t, got)), &parsed); err != nil || !cmp.Equal(parsed, config) || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v, %v, %s", parsed, err, got.Header.Get("Content-Type"))
	}
	none := config
	none.TokenURL = ""
	if policy := do(t, none, "GET", "/console/").Header.Get("Content-Security-Policy"); !strings.Contains(policy, "connect-src 'self';") {
		t.Error(policy)
	}
	for _, bad := range []string{"issuer.example/token", "https://issuer.example;script-src/token", "https://%zz/"} {
		none.TokenURL = bad
		if _, err := console.New(none); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestSignIn: pages that are loaded after providers have changed learn of them, and may ask their endpoints for
// tokens. The content of the page is the same, but its name is not: a browser keeps the headers that it has with a
// 304, so this must not be the answer while the policy is another one.
func TestSignIn(t *testing.T) {
	t.Parallel()
	h, err := console.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, headers ...string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Result()
	}
	before := ask("/console/")
	if text := body(t, ask("/console/config.json")); !strings.Contains(text, `"signIn":[]`) {
		t.Error(text)
	}
	a := console.SignIn{
		Issuer: "https://a.example", Name: "A", ClientID: "console", Scopes: []string{"openid"}, Token: "access",
		AuthorizationEndpoint: "https://a.example/auth", TokenEndpoint: "https://tokens.a.example/token", RevocationEndpoint: "https://a.example:444/revoke",
	}
	b := console.SignIn{Issuer: "https://b.example", TokenEndpoint: "https://issuer.example:9443/token"}
	if err := h.SetSignIn([]console.SignIn{a, b, {Issuer: "https://c.example", Unavailable: "not yet"}}); err != nil {
		t.Fatal(err)
	}
	after := ask("/console/", "If-None-Match", before.Header.Get("ETag"))
	if policy := after.Header.Get("Content-Security-Policy"); after.StatusCode != 200 || !strings.Contains(policy, "connect-src 'self' https://issuer.example:9443 https://tokens.a.example https://a.example:444;") {
		t.Errorf("%d, %s", after.StatusCode, policy)
	}
	if again := ask("/console/", "If-None-Match", after.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("the same page again: %d", again.StatusCode)
	}
	var parsed console.Config
	if err := json.Unmarshal([]byte(body(t, ask("/console/config.json"))), &parsed); err != nil || len(parsed.SignIn) != 3 || !cmp.Equal(parsed.SignIn[0], a) || parsed.TokenURL != config.TokenURL {
		t.Errorf("%v, %+v", err, parsed)
	}
	for _, endpoint := range []string{"https://a.example;script-src 'unsafe-inline'/", "//a.example/token", "https://a,b/"} {
		if err := h.SetSignIn([]console.SignIn{{TokenEndpoint: endpoint}}); err == nil {
			t.Errorf("%s is accepted", endpoint)
		}
		if now := ask("/console/").Header; now.Get("ETag") != after.Header.Get("ETag") {
			t.Errorf("%s has changed something", endpoint)
		}
	}
}

// TestModules runs the tests of the scripts that need no page, in the language that they are written in.
func TestModules(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "true" { // where a skipped test would not be noticed
		t.Skipf("%v: install node to run this test", err)
	}
	tests, err := filepath.Glob("testdata/js/*.test.mjs")
	if err != nil || len(tests) < 5 {
		t.Fatalf("%d tests, %v", len(tests), err)
	}
	if out, err := exec.CommandContext(t.Context(), node, append([]string{"--test"}, tests...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSize: what a browser loads stays small. The pages of help are loaded one by one.
func TestSize(t *testing.T) {
	t.Parallel()
	const limit = 150_000
	total := compressed(t, body(t, do(t, config, "GET", "/console/")))
	for _, content := range assets(t) {
		total += min(len(content), compressed(t, content))
	}
	for name, content := range sources(t) {
		if lines := strings.Count(content, "\n"); path.Ext(name) == ".js" && !strings.HasPrefix(name, "help/") && lines > 300 {
			t.Errorf("%s has %d lines: a module has one responsibility, and at most 300", name, lines)
		}
	}
	if total >= limit {
		t.Errorf("%d bytes compressed, which is not below %d", total, limit)
	}
	t.Logf("%d bytes compressed", total)
}

func compressed(t *testing.T, content string) int {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// TestSources: nothing in the sources turns text into markup or code, and no token is
// written where it outlives the tab. The policy in the headers forbids most of it again.
func TestSources(t *testing.T) {
	t.Parallel()
	forbidden := map[string]*regexp.Regexp{
		".js": regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|createContextualFragment|srcdoc|` +
			`document\.write|document\.cookie|\beval\(|new Function\(|setAttribute\("(style|on)`),
		".html": regexp.MustCompile(`(?i)<style|<[^>]*\s(style|on[a-z]+)=|<script(>|\s+(type="module"\s*)?>)|javascript:|(src|href)="https?://[^"]*\.(js|css|svg|png)"`),
		".css":  regexp.MustCompile(`(?i)@import|url\(\s*["']?(https?:|//|data:)`),
		".svg":  regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=|href=`),
	}
	for name, content := range sources(t) {
		if p := forbidden[path.Ext(name)]; p != nil {
			for _, found := range p.FindAllString(content, -1) {
				t.Errorf("%s has %q", name, found)
			}
		}
		if strings.Contains(content, "Storage") && regexp.MustCompile(`(?i)token|secret`).MatchString(content) && path.Ext(name) == ".js" {
			t.Errorf("%s writes to the browser's storage and knows of tokens", name)
		}
	}
}

// TestDimensions: the search box and the facets have the dimensions of the server, in its order, and a field for each.
func TestDimensions(t *testing.T) {
	t.Parallel()
	grammar := sources(t)["js/lib/grammar.js"]
	list := regexp.MustCompile(`(?m)^export const dimensions = (\[.*\]);$`).FindStringSubmatch(grammar)
	var dimensions []string
	if list == nil || json.Unmarshal([]byte(list[1]), &dimensions) != nil {
		t.Fatal("grammar.js has no list of dimensions")
	}
	if diff := cmp.Diff(event.DimensionNames, dimensions); diff != "" {
		t.Errorf("(-server +console)\n%s", diff)
	}
	for _, d := range dimensions {
		if !strings.Contains(grammar, "\n  "+d+": {") {
			t.Errorf("%s is no field of the search box", d)
		}
	}
}
