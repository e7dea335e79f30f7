package federation_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
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
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/certtest"
	"tidings.example/shared/waittest"
	"tidings.example/tokensvc/internal/federation"
)

const own = "https://tokens.example"

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, content string) (*federation.Federation, error) {
	t.Helper()
	return federation.New(federation.Config{Path: file(t, content), Own: own, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// verify verifies an assertion as package client does.
func verify(ctx context.Context, f *federation.Federation, assertion string) (string, error) {
	d, err := bearer.Decode(assertion)
	if err != nil || !f.Trusts(d.Issuer) {
		return "", errors.Join(err, errors.New("not trusted"))
	}
	return f.Verify(ctx, d)
}

// TestFile: files of trusted issuers that are refused, with what the error names.
func TestFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want string }{
		"empty":               {"", "at least one issuer"},
		"no list":             {"issuer: x", "into a list of issuers"},
		"unknown setting":     {"- {issuer: 'https://a.example', audience: x}", "field audience not found (there are issuer"},
		"no issuer":           {"- {jwksURL: 'https://a.example'}", "entry 1: issuer is missing"},
		"this service":        {"- {issuer: '" + own + "'}", "is this service"},
		"twice":               {"- {issuer: 'https://a.example'}\n- {issuer: 'https://a.example'}", "entry 2: issuer \"https://a.example\" is listed twice"},
		"no keys":             {"- {issuer: ci}", "set jwksURL or jwksFile"},
		"a cluster elsewhere": {"- {issuer: cluster}", "entry 1: issuer: cluster: this is no pod of a cluster"},
		"plain HTTP":          {"- {issuer: 'http://a.example'}", "plain HTTP to another machine"},
		"symmetric":           {"- {issuer: 'https://a.example', algorithms: [HS256]}", "algorithms"},
		"no algorithm":        {"- {issuer: 'https://a.example', algorithms: [none]}", "algorithms"},
		"any subject":         {"- {issuer: 'https://a.example', subjects: ['*']}", "subjects"},
		"a * in the middle":   {"- {issuer: 'https://a.example', subjects: ['a*b']}", "subjects"},
		"empty subject":       {"- {issuer: 'https://a.example', subjects: ['']}", "subjects"},
		"empty audience":      {"- {issuer: 'https://a.example', audiences: ['']}", "an audience is empty"},
		"no life":             {"- issuer: 'https://a.example'\n  maxTokenLife: soon", `line 2: "soon" is no duration`},
		"negative life":       {"- {issuer: 'https://a.example', maxTokenLife: -1s}", "maximum life"},
		"a file and a token":  {"- {issuer: a, jwksFile: /x, bearerTokenFile: /y}", "from a file or from a URL"},
		"no such file":        {"- {issuer: a, jwksFile: /nowhere/jwks.json}", "/nowhere/jwks.json"},
	} {
		if _, err := open(t, tc.content); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := federation.New(federation.Config{Path: "/nowhere"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// cluster is an issuer on a TLS server.
type cluster struct {
	*httptest.Server
	key     *rsa.PrivateKey
	fetches atomic.Int32
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// newCluster answers requests for keys by serve; nil stands for the good answer.
func newCluster(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, good string)) *cluster {
	t.Helper()
	key := certtest.RSA(t)
	c := &cluster{key: key}
	good := fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, encode(key.N.Bytes()))
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.fetches.Add(1)
		if serve == nil {
			fmt.Fprint(w, good)
			return
		}
		serve(w, r, good)
	}))
	t.Cleanup(c.Close)
	return c
}

// entry is the cluster in the file of issuers.
func (c *cluster) entry(t *testing.T) string {
	t.Helper()
	ca := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return fmt.Sprintf("- {issuer: %q, jwksURL: %q, caFile: %q, subjects: ['system:serviceaccount:shop:*']}\n", c.URL, c.URL+"/openid/v1/jwks", ca)
}

func (c *cluster) token(kid string) string {
	now := time.Now().Unix()
	input := encode(fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, kid)) + "." +
		encode(fmt.Appendf(nil, `{"iss":%q,"sub":"system:serviceaccount:shop:reporter","aud":[%q],"iat":%d,"exp":%d}`, c.URL, own, now, now+900))
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, c.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return input + "." + encode(signature)
}

// TestHostileIssuers: an issuer that is slow, endless, redirecting or broken makes its own assertions unavailable
// (503), and delays nobody else's.
func TestHostileIssuers(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) }) // before the servers, which wait for their handlers
	var elsewhere *cluster
	for name, serve := range map[string]func(w http.ResponseWriter, r *http.Request, good string){
		"slow": func(_ http.ResponseWriter, r *http.Request, _ string) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		},
		"endless": func(w http.ResponseWriter, r *http.Request, _ string) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
		"redirecting": func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		},
		"a redirect to itself": func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		},
		"no JSON":  func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, "<html>") },
		"no keys":  func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, `{"keys":[]}`) },
		"an error": func(w http.ResponseWriter, _ *http.Request, good string) { http.Error(w, good, 500) },
		"a weak key": func(w http.ResponseWriter, _ *http.Request, _ string) {
			fmt.Fprint(w, `{"keys":[{"kty":"RSA","kid":"k","n":"AQAB","e":"AQAB"}]}`)
		},
		"101 keys": func(w http.ResponseWriter, _ *http.Request, _ string) {
			fmt.Fprint(w, `{"keys":[`+strings.Repeat("{},", 100)+`{}]}`)
		},
		"no such key": func(w http.ResponseWriter, _ *http.Request, good string) {
			fmt.Fprint(w, strings.Replace(good, `"k"`, `"other"`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good, hostile := newCluster(t, nil), newCluster(t, serve)
			f, err := open(t, good.entry(t)+hostile.entry(t))
			if err != nil {
				t.Fatal(err)
			}
			waiting := make(chan error, 8)
			ctx, leave := context.WithCancel(t.Context())
			for range cap(waiting) {
				go func() {
					_, err := verify(ctx, f, hostile.token("k"))
					waiting <- err
				}()
			}
			if name == "slow" { // others are served while its assertions wait, and these end with their requests
				waittest.Until(t, "the keys are fetched", func() bool { return hostile.fetches.Load() > 0 })
				leave()
			}
			waittest.Becomes(t, func() error { // a fetch of keys has a limit of time, which a busy machine exceeds
				subject, err := verify(t.Context(), f, good.token("k"))
				if err == nil && subject != "system:serviceaccount:shop:reporter" {
					t.Errorf("the good issuer beside it: %q", subject)
				}
				return err
			})
			refused := func(err error, with int) error {
				if refusal, ok := errors.AsType[*bearer.Error](err); !ok || refusal.Status != with {
					return fmt.Errorf("%w, want status %d", err, with)
				}
				return nil
			}
			for range cap(waiting) {
				err := waittest.Within(t, waiting)
				if name == "no such key" && refused(err, http.StatusUnauthorized) == nil {
					continue
				}
				if err := refused(err, http.StatusServiceUnavailable); err != nil {
					t.Error(err)
				}
			}
			leave()
			if name == "no such key" {
				waittest.Becomes(t, func() error {
					_, err := verify(t.Context(), f, hostile.token("k"))
					return refused(err, http.StatusUnauthorized)
				})
			}
		})
	}
}

// TestRemovedWhileWaiting: an assertion waits for the keys of its issuer. When they come, the issuer is no longer
// trusted.
func TestRemovedWhileWaiting(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	removed := newCluster(t, func(w http.ResponseWriter, _ *http.Request, good string) {
		<-answer
		fmt.Fprint(w, good)
	})
	path := file(t, removed.entry(t))
	f, err := federation.New(federation.Config{Path: path, Own: own, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	assertion, err := bearer.Decode(removed.token("k"))
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		for {
			_, err := f.Verify(t.Context(), assertion)
			if refusal, ok := errors.AsType[*bearer.Error](err); !ok || refusal.Status != http.StatusServiceUnavailable {
				refused <- err
				return
			} // else the fetch has taken more time than it has, before the issuer was removed
		}
	}()
	waittest.Until(t, "the keys are fetched", func() bool { return removed.fetches.Load() > 0 })
	if err := os.Rename(file(t, newCluster(t, nil).entry(t)), path); err != nil {
		t.Fatal(err)
	}
	f.Reload() // not when Run looks: the fetch of the keys has a limit of time
	close(answer)
	if err := waittest.Within(t, refused); err == nil || err.Error() != "other issuer" {
		t.Errorf("%v", err)
	}
}

// TestFloodOfKeyIDs: a flood of assertions with unknown kids asks the issuer once, and good assertions go on.
func TestFloodOfKeyIDs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	f, err := open(t, c.entry(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(t.Context(), f, c.token("k")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	good := c.token("k")
	for i := range 300 {
		if _, err := verify(t.Context(), f, c.token(fmt.Sprint("unknown-", i))); err == nil {
			t.Fatal("accepted")
		}
		if _, err := verify(t.Context(), f, good); err != nil {
			t.Fatal(err)
		}
	}
	if n, most := int(c.fetches.Load()), 2+int(time.Since(began)/time.Second); n > most {
		t.Errorf("%d fetches, want at most %d", n, most)
	}
}
