package bearer_test

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/bearer"
)

func b64(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

// entry is one key of a JWK set, with more members given as JSON.
func entry(kid string, key *rsa.PrivateKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":"AQAB"%s}`, kid, b64(key.N), more)
}

// isKey reports whether a key of a set is the RSA key.
func isKey(got bearer.Key, want *rsa.PublicKey) bool {
	key, ok := got.(*bearer.PublicKey)
	return ok && want.Equal(key.Public())
}

func document(entries ...string) string { return `{"keys":[` + strings.Join(entries, ",") + `]}` }

// fakeIssuer is a transport that answers in place of an issuer, so that tests can run with fake time.
type fakeIssuer struct {
	fetches atomic.Int32
	answer  func(*http.Request) (*http.Response, error)
}

func (f *fakeIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	f.fetches.Add(1)
	return f.answer(r)
}

func answer(code int, body string, header ...string) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func newJWKS(t testing.TB, transport http.RoundTripper, change func(*bearer.JWKSConfig)) *bearer.JWKS {
	t.Helper()
	c := bearer.JWKSConfig{URL: "https://issuer.example/jwks", Client: &http.Client{Transport: transport}}
	if change != nil {
		change(&c)
	}
	k, err := bearer.NewJWKS(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestJWKSEntries: bad entries are skipped, with a line in the log, and the good one beside them works.
func TestJWKSEntries(t *testing.T) {
	t.Parallel()
	key := testKeys()[0]
	number := func(n, e string) string { return fmt.Sprintf(`{"kty":"RSA","kid":"bad","n":%q,"e":%q}`, n, e) }
	even := new(big.Int).Sub(key.N, big.NewInt(1))
	small := new(big.Int).Rsh(key.N, 1024)
	small.SetBit(small, 0, 1)
	huge := new(big.Int).Lsh(key.N, 8192)
	huge.SetBit(huge, 0, 1)
	for name, bad := range map[string]string{
		"RSA-1024":                 number(b64(small), "AQAB"),
		"RSA-10240":                number(b64(huge), "AQAB"),
		"e is 1":                   number(b64(key.N), "AQ"),
		"e is even":                number(b64(key.N), "AQAA"),
		"e of 40 bits":             number(b64(key.N), "AQABAQE"),
		"e of 72 bits":             number(b64(key.N), "AQAAAAAAAQAB"),
		"e padded":                 number(b64(key.N), "AQAB===="),
		"n is 0":                   number("AA", "AQAB"),
		"n is empty":               number("", "AQAB"),
		"n is even":                number(b64(even), "AQAB"),
		"n padded":                 number(b64(key.N)+"==", "AQAB"),
		"kty oct":                  `{"kty":"oct","kid":"bad","k":"AAAA"}`,
		"kty unknown":              `{"kty":"LMS","kid":"bad"}`,
		"private key":              entry("bad", key, `,"d":"AQ"`),
		"EC key":                   `{"kty":"EC","kid":"bad","crv":"P-256","x":"AQ","y":"AQ"}`,
		"no kid":                   strings.Replace(entry("bad", key, ""), `"kid"`, `"Kid"`, 1),
		"kid a number":             strings.Replace(entry("bad", key, ""), `"bad"`, `7`, 1),
		"kid used twice":           entry("good", testKeys()[1], ""),
		"a name given twice":       entry("bad", key, `,"kid":"bad2"`),
		"not an object":            `"key"`,
		"alg RS512":                entry("bad", key, `,"alg":"RS512"`),
		"alg null":                 entry("bad", key, `,"alg":null`),
		"use enc":                  entry("bad", key, `,"use":"enc"`),
		"use of X.509 in SPIFFE":   entry("bad", key, `,"use":"x509-svid"`),
		"use a list":               entry("bad", key, `,"use":["sig"]`),
		"key_ops without verify":   entry("bad", key, `,"key_ops":["sign"]`),
		"key_ops of another shape": entry("bad", key, `,"key_ops":"verify"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
				return answer(200, document(entry("good", key, `,"use":"sig","alg":"RS256","key_ops":["verify"]`), bad))
			}}, func(c *bearer.JWKSConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			got, err := k.Key(t.Context(), "good", bearer.RS256)
			if err != nil || !isKey(got, &key.PublicKey) {
				t.Errorf("the good key: %v, %v", got, err)
			}
			for _, kid := range []string{"bad", "bad2", "7", ""} {
				if _, err := k.Key(t.Context(), kid, bearer.RS256); !errors.Is(err, bearer.ErrUnknownKey) {
					t.Errorf("the bad key %q: %v", kid, err)
				}
			}
			if !strings.Contains(log.String(), "skipped") {
				t.Errorf("nothing in the log: %s", &log)
			}
		})
	}
	t.Run("members that do not make the key", func(t *testing.T) {
		t.Parallel()
		const odd = `,"x5c":7,"x5t":["a"],"x5u":{},"key_ops":["verify","other"],"oth":"x"`
		k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			return answer(200, document(entry("good", key, odd)))
		}}, nil)
		if got, err := k.Key(t.Context(), "good", bearer.RS256); err != nil || !isKey(got, &key.PublicKey) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("the bundle of a SPIFFE trust domain", func(t *testing.T) {
		t.Parallel()
		k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			return answer(200, strings.Replace(document(entry("x509", key, `,"use":"x509-svid"`), entry("good", key, `,"use":"jwt-svid"`)),
				"{", `{"spiffe_sequence":7,"spiffe_refresh_hint":300,`, 1))
		}}, nil)
		if got, err := k.Key(t.Context(), "good", bearer.RS256); err != nil || !isKey(got, &key.PublicKey) {
			t.Errorf("the key of JWT-SVIDs: %v, %v", got, err)
		}
		if _, err := k.Key(t.Context(), "x509", bearer.RS256); !errors.Is(err, bearer.ErrUnknownKey) {
			t.Errorf("the key of X.509 certificates: %v", err)
		}
	})
	t.Run("no alg", func(t *testing.T) {
		t.Parallel()
		k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			return answer(200, document(entry("good", key, "")))
		}}, nil)
		if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
			t.Error(err)
		}
	})
}

// TestJWKSBadAnswers: whatever the issuer answers, the last good set stays.
func TestJWKSBadAnswers(t *testing.T) {
	t.Parallel()
	key := entry("good", testKeys()[0], "")
	for name, bad := range map[string]func(*http.Request) (*http.Response, error){
		"unreachable": func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		"slow": func(r *http.Request) (*http.Response, error) {
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(30 * time.Second):
				return answer(200, document(entry("new", testKeys()[1], "")))
			}
		},
		"large": func(*http.Request) (*http.Response, error) {
			return answer(200, document(entry("new", testKeys()[1], ""))+strings.Repeat(" ", 1<<20))
		},
		"HTML":        func(*http.Request) (*http.Response, error) { return answer(200, "<html>") },
		"500":         func(*http.Request) (*http.Response, error) { return answer(500, document(key)) },
		"no keys":     func(*http.Request) (*http.Response, error) { return answer(200, document()) },
		"keys null":   func(*http.Request) (*http.Response, error) { return answer(200, `{"keys":null}`) },
		"keys absent": func(*http.Request) (*http.Response, error) { return answer(200, `{}`) },
		"keys twice": func(*http.Request) (*http.Response, error) {
			return answer(200, `{"keys":[],`+document(entry("new", testKeys()[1], ""))[1:])
		},
		"too many keys": func(*http.Request) (*http.Response, error) {
			return answer(200, document(strings.Repeat(`{},`, 100)+entry("new", testKeys()[1], "")))
		},
		"redirect to another host": func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "issuer.example" {
				return answer(200, document(entry("new", testKeys()[1], "")))
			}
			return answer(302, "", "Location", "https://evil.example/jwks")
		},
		"redirect to plain HTTP": func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme != "https" {
				return answer(200, document(entry("new", testKeys()[1], "")))
			}
			return answer(302, "", "Location", "http://issuer.example/jwks")
		},
		"redirect for ever": func(r *http.Request) (*http.Response, error) {
			return answer(302, "", "Location", r.URL.String()+"x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				issuer := &fakeIssuer{answer: bad}
				k := newJWKS(t, issuer, nil)
				if _, err := k.Key(t.Context(), "good", bearer.RS256); err == nil || errors.Is(err, bearer.ErrUnknownKey) {
					t.Errorf("before there are keys: %v, want an error that is no refusal of the token", err)
				}
				if k.Ready(t.Context()) == nil {
					t.Error("ready without keys")
				}
				time.Sleep(time.Minute)
				issuer.answer = func(*http.Request) (*http.Response, error) { return answer(200, document(key)) }
				if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
					t.Errorf("after a good answer: %v", err)
				}
				issuer.answer = bad
				time.Sleep(23 * time.Hour)
				if _, err := k.Key(t.Context(), "new", bearer.RS256); !errors.Is(err, bearer.ErrUnknownKey) {
					t.Errorf("a key of the bad answer: %v", err)
				}
				if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil || k.Ready(t.Context()) != nil {
					t.Errorf("the last good set: %v, %v", err, k.Ready(t.Context()))
				}
				time.Sleep(2 * time.Hour)
				if _, err := k.Key(t.Context(), "good", bearer.RS256); err == nil || errors.Is(err, bearer.ErrUnknownKey) {
					t.Errorf("beyond the stale limit: %v", err)
				}
				if k.Ready(t.Context()) == nil {
					t.Error("ready with stale keys")
				}
			})
		})
	}
}

func TestJWKSRedirectOnTheSameHost(t *testing.T) {
	t.Parallel()
	k := newJWKS(t, &fakeIssuer{answer: func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/jwks" {
			return answer(302, "", "Location", "/keys")
		}
		return answer(200, document(entry("good", testKeys()[0], "")))
	}}, nil)
	if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
		t.Error(err)
	}
}

// TestUnavailableKeys: while there are no keys, or only stale ones, a token is answered with 503 and no challenge.
func TestUnavailableKeys(t *testing.T) {
	t.Parallel()
	k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) { return answer(500, "") }}, nil)
	v := newVerifier(t, func(c *bearer.Config) { c.Keys = k })
	_, err := v.Verify(t.Context(), token(good, claims()))
	var refusal *bearer.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusServiceUnavailable || bearer.Challenge(err, "") != "" {
		t.Errorf("%+v, challenge %q", refusal, bearer.Challenge(err, ""))
	}
}

// TestJWKSRotation: a new key is found, and a withdrawn one refused, with Run in the background as in a service.
func TestJWKSRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var published atomic.Pointer[string]
		publish := func(entries ...string) { d := document(entries...); published.Store(&d) }
		first, second := entry("key-1", testKeys()[0], ""), entry("key-2", testKeys()[1], "")
		publish(first)
		issuer := &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			return answer(200, *published.Load(), "Cache-Control", "public, max-age=60")
		}}
		k := newJWKS(t, issuer, nil)
		v := newVerifier(t, func(c *bearer.Config) { c.Keys = k })
		ended := make(chan error, 1)
		go func() { ended <- k.Run(ctx) }()
		synctest.Wait()

		old := token(good, claims())
		fresh := signed(testKeys()[1], kid(`"key-2"`), claims())
		verify := func(step, token string, good bool) {
			t.Helper()
			if _, err := v.Verify(t.Context(), token); (err == nil) != good {
				t.Errorf("%s: %v, want good = %v", step, err, good)
			}
		}
		verify("the first key", old, true)
		if n := issuer.fetches.Load(); n != 1 {
			t.Errorf("%d fetches after the start, want 1", n)
		}
		before := must(k.Key(t.Context(), "key-1", bearer.RS256))
		publish(first, second)
		time.Sleep(2 * time.Second)
		verify("the first token of a new key", fresh, true)
		if n := issuer.fetches.Load(); n != 2 {
			t.Errorf("%d fetches after a new key, want 2", n)
		}
		verify("the old key", old, true)
		if must(k.Key(t.Context(), "key-1", bearer.RS256)) != before {
			t.Error("a key that stays has become another object, which makes every remembered token slow")
		}
		publish(second)
		time.Sleep(62 * time.Second) // more than the issuer's max-age
		verify("the withdrawn key, of a token that is remembered", old, false)
		verify("the new key", fresh, true)
		if n := issuer.fetches.Load(); n > 5 {
			t.Errorf("%d fetches in about a minute", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestJWKSRunWaitsForTheIssuer: a service starts before its issuer, and notices it soon after it is up.
func TestJWKSRunWaitsForTheIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		up := time.Now().Add(time.Minute)
		issuer := &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			if time.Now().Before(up) {
				return nil, errors.New("connection refused")
			}
			return answer(200, document(entry("good", testKeys()[0], "")))
		}}
		k := newJWKS(t, issuer, nil)
		var running sync.WaitGroup
		running.Go(func() { _ = k.Run(ctx) })
		time.Sleep(59 * time.Second)
		if n := issuer.fetches.Load(); n < 10 || n > 30 {
			t.Errorf("%d attempts in a minute", n)
		}
		time.Sleep(7 * time.Second)
		if err := k.Ready(t.Context()); err != nil {
			t.Errorf("5 s after the issuer came up: %v", err)
		}
		stop()
		running.Wait()
	})
}

// TestJWKSUnknownKeys: 10,000 tokens with key ids of their own cause one fetch per interval, at once and in turn.
func TestJWKSUnknownKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		issuer := &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond) // so that all of a burst meet one fetch
			return answer(200, document(entry("good", testKeys()[0], "")))
		}}
		k := newJWKS(t, issuer, nil)
		if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		issuer.fetches.Store(0)
		var burst sync.WaitGroup
		for i := range 10_000 {
			burst.Go(func() {
				if _, err := k.Key(t.Context(), fmt.Sprint("bogus-", i), bearer.RS256); !errors.Is(err, bearer.ErrUnknownKey) {
					t.Errorf("bogus key: %v", err)
				}
				if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
					t.Errorf("good key: %v", err)
				}
			})
		}
		burst.Wait()
		if n := issuer.fetches.Load(); n != 1 {
			t.Errorf("%d fetches for a burst, want 1", n)
		}
		start := time.Now()
		for i := range 10_000 {
			time.Sleep(time.Millisecond)
			if _, err := k.Key(t.Context(), fmt.Sprint("in turn ", i), bearer.RS256); !errors.Is(err, bearer.ErrUnknownKey) {
				t.Errorf("bogus key: %v", err)
			}
		}
		if n, most := issuer.fetches.Load(), int32(1+time.Since(start)/time.Second); n > most {
			t.Errorf("%d fetches in %s, want at most %d", n, time.Since(start), most)
		}
	})
}

// TestJWKSRepeatedUnknownKey: one client with a token of another issuer does not cause a fetch per interval for ever.
func TestJWKSRepeatedUnknownKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		issuer := &fakeIssuer{answer: func(*http.Request) (*http.Response, error) {
			return answer(200, document(entry("good", testKeys()[0], "")))
		}}
		k := newJWKS(t, issuer, nil)
		for range 60 {
			_, _ = k.Key(t.Context(), "foreign", bearer.RS256)
			time.Sleep(2 * time.Second)
		}
		if n := issuer.fetches.Load(); n > 5 {
			t.Errorf("%d fetches in two minutes for one unknown key id", n)
		}
	})
}

// TestJWKSLeavingCaller: the request that caused a fetch goes away; those that wait with it are served.
func TestJWKSLeavingCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		issuer := &fakeIssuer{answer: func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(time.Second):
				return answer(200, document(entry("good", testKeys()[0], "")))
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}}
		k := newJWKS(t, issuer, nil)
		leaving, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = k.Key(leaving, "good", bearer.RS256) })
		synctest.Wait()
		callers.Go(func() {
			if _, err := k.Key(t.Context(), "good", bearer.RS256); err != nil {
				t.Errorf("a caller that waited: %v", err)
			}
		})
		synctest.Wait()
		leave()
		callers.Wait()
	})
}

func TestJWKSAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://issuer.example/jwks":    true,
		"http://127.0.0.1:9000/jwks":     true,
		"http://[::1]:9000/jwks":         true,
		"http://localhost:9000/jwks":     true,
		"http://tokensvc:9000/jwks":      true,
		"http://tokensvc.evil.example/":  false,
		"http://issuer.example/jwks":     false,
		"http://localhost.evil.example/": false,
		"https://user:secret@a.example/": false,
		"ftp://issuer.example/jwks":      false,
		"issuer.example/jwks":            false,
		"https:///jwks":                  false,
		"http://127.0.0.1:9000\x00/jwks": false,
		"":                               false,
	} {
		_, err := bearer.NewJWKS(bearer.JWKSConfig{URL: address, AllowHTTPHosts: []string{"tokensvc"}})
		if (err == nil) != good {
			t.Errorf("%q: %v, want good = %v", address, err, good)
		}
	}
}

// TestDiscoverJWKS: each well-known path is asked until one has metadata that can be used. If none has, the error says
// what each of them answered.
func TestDiscoverJWKS(t *testing.T) {
	t.Parallel()
	const (
		oauth  = "/.well-known/oauth-authorization-server"
		openID = "/.well-known/openid-configuration"
		good   = `{"issuer":"$ISSUER","jwks_uri":"$ISSUER/k"}`
	)
	type test struct {
		issuer string
		at     map[string]string // documents by path; $ISSUER is the server's address; 404 elsewhere
		want   string            // the URL, or what the error has for each path, separated by |
	}
	tests := map[string]test{
		"RFC 8414":             {"$ISSUER", map[string]string{oauth: good}, "$ISSUER/k"},
		"RFC 8414 with a path": {"$ISSUER/tenant", map[string]string{oauth + "/tenant": `{"issuer":"$ISSUER/tenant","jwks_uri":"$ISSUER/k"}`}, "$ISSUER/k"},
		"OpenID Connect Discovery": {"$ISSUER/realms/a", map[string]string{
			"/realms/a" + openID: `{"issuer":"$ISSUER/realms/a","jwks_uri":"https://other.example/k"}`}, "https://other.example/k"},
		"the first that can be used": {"$ISSUER", map[string]string{oauth: good, openID: strings.ReplaceAll(good, "/k", "/other")}, "$ISSUER/k"},
		"no metadata":                {"$ISSUER", nil, oauth + " answered 404|" + openID + " answered 404"},
		"no URL":                     {"my-issuer", nil, "issuer: "},
		"with a query":               {"$ISSUER/?a=b", nil, "has a query or a fragment"},
		"over the network":           {"http://issuer.example", nil, "plain HTTP to another machine"},
		"neither can be used":        {"$ISSUER", map[string]string{oauth: "<html>", openID: `{"issuer":"$ISSUER"}`}, "no JSON object|no jwks_uri"},
	}
	for name, unusable := range map[string]struct{ document, says string }{
		"a page":                    {"<!doctype html><title>Sign in</title>", "no JSON object"},
		"nothing":                   {"", "no JSON object"},
		"an error":                  {`{"error":"not_found"}`, "names no issuer"},
		"another issuer":            {`{"issuer":"https://evil.example","jwks_uri":"$ISSUER/evil"}`, `another issuer, "https://evil.example"`},
		"a slash more":              {`{"issuer":"$ISSUER/","jwks_uri":"$ISSUER/evil"}`, "another issuer"},
		"a very long issuer":        {`{"issuer":"` + strings.Repeat("x", 10_000) + `"}`, "another issuer"},
		"no jwks_uri":               {`{"issuer":"$ISSUER"}`, "no jwks_uri"},
		"a jwks_uri that is null":   {`{"issuer":"$ISSUER","jwks_uri":null}`, "no jwks_uri"},
		"a jwks_uri without host":   {`{"issuer":"$ISSUER","jwks_uri":"/k"}`, "jwks_uri cannot be used"},
		"plain HTTP elsewhere":      {`{"issuer":"$ISSUER","jwks_uri":"http://evil.example/k"}`, "jwks_uri cannot be used"},
		"a truncated document":      {good[:len(good)-2], "no JSON object"},
		"two documents":             {good + good, "no JSON object"},
		"a list":                    {"[" + good + "]", "no JSON object"},
		"the issuer twice":          {`{"issuer":"https://evil.example","issuer":"$ISSUER","jwks_uri":"$ISSUER/evil"}`, "no JSON object"},
		"more than is read":         {`{"issuer":"$ISSUER","x":"` + strings.Repeat("x", 600<<10) + `"}`, "more than"},
		"a redirect to elsewhere":   {"redirect https://evil.example/", "redirected to another host"},
		"a redirect without an end": {"redirect " + oauth, "redirected too often"},
	} {
		tests[name+", then metadata"] = test{"$ISSUER", map[string]string{oauth: unusable.document, openID: good}, "$ISSUER/k"}
		tests[name+", then nothing"] = test{"$ISSUER", map[string]string{oauth: unusable.document}, unusable.says + "|" + openID + " answered 404"}
		if !strings.HasPrefix(unusable.document, "redirect") {
			tests["nothing, then "+name] = test{"$ISSUER", map[string]string{openID: unusable.document}, oauth + " answered 404|" + unusable.says}
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				document, ok := test.at[r.URL.Path]
				if to, redirect := strings.CutPrefix(document, "redirect "); redirect {
					http.Redirect(w, r, to, http.StatusFound)
					return
				}
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(document, "$ISSUER", srv.URL))
			}))
			t.Cleanup(srv.Close)
			here := func(s string) string { return strings.ReplaceAll(s, "$ISSUER", srv.URL) }
			got, err := bearer.DiscoverJWKS(t.Context(), here(test.issuer), srv.Client(), nil)
			if err == nil {
				if got != here(test.want) {
					t.Errorf("%q, want %q", got, here(test.want))
				}
				return
			}
			rest := err.Error()
			for _, part := range strings.Split(test.want, "|") {
				_, after, ok := strings.Cut(rest, part)
				if !ok || strings.Contains(rest, "\n") || len(err.Error()) > 1000 {
					t.Errorf("%v; want %q, each once in this order", err, test.want)
				}
				rest = after
			}
		})
	}
}

// FuzzJWKS: no document makes the client panic, and every key that it accepts is usable.
func FuzzJWKS(f *testing.F) {
	key := testKeys()[0]
	for _, seed := range []string{
		document(entry("key-1", key, "")), document(), `{"keys":null}`, `{"keys":[{}]}`, `[]`, ``, "\xff",
		document(entry("key-1", key, `,"use":"enc"`), entry("key-1", key, `,"alg":"RS256"`)),
		document(`{"kty":"RSA","kid":"key-1","n":"AQAB","e":"AQAB"}`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) { return answer(200, document) }}, nil)
		got, err := k.Key(t.Context(), "key-1", bearer.RS256)
		if err == nil {
			taken := got.(*bearer.PublicKey).Public().(*rsa.PublicKey)
			if taken.N.BitLen() < 2048 || taken.E < 3 || taken.E%2 == 0 || taken.N.Bit(0) == 0 {
				t.Fatalf("took an unsound key of %d bits, e = %d", taken.N.BitLen(), taken.E)
			}
		}
		if err == nil && !json.Valid([]byte(document)) {
			t.Fatal("took a key from a damaged document")
		}
	})
}
