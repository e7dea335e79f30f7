package bearer_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func issuerKeys(t *testing.T, issuer string, source bearer.KeySource) (*bearer.IssuerKeys, error) {
	t.Helper()
	return bearer.NewIssuerKeys(issuer, source, bearer.JWKSConfig{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// TestKeySource: sources of keys that cannot be used are refused with the name of the setting.
func TestKeySource(t *testing.T) {
	t.Parallel()
	good := file(t, "jwks.json", document(entry("key-1", testKeys()[0], "")))
	for name, tc := range map[string]struct {
		issuer string
		source bearer.KeySource
		want   string // empty: good
	}{
		"a file":                    {"any name", bearer.KeySource{JWKSFile: good}, ""},
		"a URL":                     {"any name", bearer.KeySource{JWKSURL: "https://issuer.example/jwks"}, ""},
		"metadata":                  {"https://issuer.example", bearer.KeySource{}, ""},
		"nothing":                   {"any name", bearer.KeySource{}, "set jwksURL or jwksFile"},
		"no such file":              {"x", bearer.KeySource{JWKSFile: good + "x"}, "jwksFile: open"},
		"a file without keys":       {"x", bearer.KeySource{JWKSFile: file(t, "x", "{}")}, "jwksFile"},
		"a file of other keys":      {"x", bearer.KeySource{JWKSFile: good, Algorithms: []string{"ES256"}}, "no usable key"},
		"a file that is too large":  {"x", bearer.KeySource{JWKSFile: file(t, "x", strings.Repeat(" ", 600<<10))}, "more than"},
		"a file and a URL":          {"x", bearer.KeySource{JWKSFile: good, JWKSURL: "https://issuer.example"}, "from a file or from a URL"},
		"a file and a token":        {"x", bearer.KeySource{JWKSFile: good, TokenFile: good}, "from a file or from a URL"},
		"no URL":                    {"x", bearer.KeySource{JWKSURL: "issuer.example/jwks"}, "jwksURL"},
		"plain HTTP":                {"x", bearer.KeySource{JWKSURL: "http://issuer.example/jwks"}, "plain HTTP to another machine"},
		"authorities and HTTP":      {"x", bearer.KeySource{JWKSURL: "http://127.0.0.1/jwks", CAFile: good}, "caFile has no effect"},
		"a token over HTTP":         {"x", bearer.KeySource{JWKSURL: "http://127.0.0.1/jwks", TokenFile: good}, "bearerTokenFile would be sent"},
		"no such authorities":       {"x", bearer.KeySource{JWKSURL: "https://issuer.example", CAFile: good + "x"}, "caFile: stat"},
		"authorities without PEM":   {"x", bearer.KeySource{JWKSURL: "https://issuer.example", CAFile: good}, "no certificate in PEM"},
		"an algorithm with secrets": {"x", bearer.KeySource{JWKSFile: good, Algorithms: []string{"HS256"}}, `algorithms: the algorithm "HS256"`},
	} {
		_, err := issuerKeys(t, tc.issuer, tc.source)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestTokenForKeys: keys that are published to callers with a token only, as those of a Kubernetes cluster may be. The
// token is read again when it is replaced, and never sent elsewhere.
func TestTokenForKeys(t *testing.T) {
	t.Parallel()
	var wanted atomic.Pointer[string]
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked, with the header %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case r.Header.Get("Authorization") != "Bearer "+*wanted.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			fmt.Fprint(w, document(entry("key-1", testKeys()[0], "")))
		}
	}))
	t.Cleanup(cluster.Close)
	ca := file(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})))
	token := file(t, "token", "first\n")
	use := func(text string) { wanted.Store(&text) }
	source := bearer.KeySource{JWKSURL: cluster.URL + "/openid/v1/jwks", CAFile: ca, TokenFile: token}
	for _, step := range []struct {
		file, wanted string
		good         bool
	}{
		{"first\n", "first", true}, {"first", "second", false}, {"second", "second", true}, {"", "", false}, {"a b", "a b", false},
	} {
		write(t, token, step.file)
		use(step.wanted)
		k, err := issuerKeys(t, "cluster", source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Key(t.Context(), "key-1", bearer.RS256); (err == nil) != step.good {
			t.Errorf("token %q where %q is wanted: %v", step.file, step.wanted, err)
		}
	}
	source.JWKSURL = cluster.URL + "/redirect"
	k, err := issuerKeys(t, "cluster", source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Key(t.Context(), "key-1", bearer.RS256); err == nil {
		t.Error("a redirect to another host was followed")
	}
}

// failures counts the lines of a log that are errors.
type failures struct{ atomic.Int64 }

func (f *failures) Write(line []byte) (int, error) {
	f.Add(int64(strings.Count(string(line), "level=ERROR")))
	return len(line), nil
}

// TestKeysInFile: a file of keys is read again when it changes. While it is bad or gone, the last keys stay in use.
func TestKeysInFile(t *testing.T) {
	t.Parallel()
	path := file(t, "jwks.json", document(entry("key-1", testKeys()[0], "")))
	var bad failures
	k, err := bearer.NewIssuerKeys("cluster", bearer.KeySource{JWKSFile: path}, bearer.JWKSConfig{Log: slog.New(slog.NewTextHandler(&bad, nil))})
	if err != nil || k.Ready(t.Context()) != nil {
		t.Fatalf("%v, %v", err, k.Ready(t.Context()))
	}
	go func() { _ = k.Run(t.Context()) }()
	has := func(kid string) bool {
		_, err := k.Key(t.Context(), kid, bearer.RS256)
		if err != nil && !errors.Is(err, bearer.ErrUnknownKey) {
			t.Error(err)
		}
		return err == nil
	}
	if !has("key-1") || has("key-2") {
		t.Error("not exactly the keys of the file")
	}
	before := must(k.Key(t.Context(), "key-1", bearer.RS256))
	write(t, path, document(entry("key-1", testKeys()[0], ""), entry("key-2", testKeys()[1], "")))
	waittest.Until(t, "a new key is used", func() bool { return has("key-2") })
	if must(k.Key(t.Context(), "key-1", bearer.RS256)) != before {
		t.Error("an old key has become another object")
	}
	write(t, path, "{")
	waittest.Until(t, "the damaged file is read", func() bool { return bad.Load() == 1 })
	if !has("key-1") || !has("key-2") {
		t.Error("the keys of a damaged file were dropped")
	}
	write(t, path, document(entry("key-2", testKeys()[1], "")))
	waittest.Until(t, "a key is withdrawn", func() bool { return !has("key-1") })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the file is missed", func() bool { return bad.Load() == 2 })
	if !has("key-2") {
		t.Error("the keys of a file that is gone were dropped")
	}
}

// TestFirstRequestWaitsForTheIssuer: a request that comes before the issuer has said where its keys are waits for the
// answer. When the issuer fails, the request is refused.
func TestFirstRequestWaitsForTheIssuer(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"it answers": true, "it fails": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var keys atomic.Pointer[bearer.IssuerKeys]
			var waited atomic.Bool
			var issuer *httptest.Server
			issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasPrefix(r.URL.Path, "/.well-known/") {
					fmt.Fprint(w, document(entry("key-1", testKeys()[0], "")))
					return
				}
				for !waited.Load() && r.Context().Err() == nil {
					waited.Store(keys.Load().Waiting() > 0)
				}
				if !good {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer.URL, issuer.URL+"/keys")
			}))
			t.Cleanup(issuer.Close)
			k, err := issuerKeys(t, issuer.URL, bearer.KeySource{})
			if err != nil {
				t.Fatal(err)
			}
			keys.Store(k)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = k.Run(ctx) }()
			if _, err := k.Key(ctx, "key-1", bearer.RS256); (err == nil) != good {
				t.Errorf("the first request: %v", err)
			}
			if !waited.Load() {
				t.Error("it has not waited")
			}
		})
	}
}
