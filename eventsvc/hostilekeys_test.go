package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/certtest"
	"tidings.example/shared/waittest"
)

// until asks again and again until the answer has the code.
func (p *process) until(want int, header map[string][]string) {
	p.t.Helper()
	waittest.Becomes(p.t, func() error {
		if code, text, _ := p.get(header, ""); code != want {
			return fmt.Errorf("still %d, want %d: %s", code, want, text)
		}
		return nil
	})
}

func bearing(token string) map[string][]string {
	return map[string][]string{"Authorization": {"Bearer " + token}}
}

// TestClockSkew: exp, nbf and iat are checked with the largest leeway, which is minutes longer than this test takes.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--clock-skew=5m")
	now := time.Now().Unix()
	at := func(seconds int64) string { return fmt.Sprint(now + seconds) }
	for name, c := range map[string]struct {
		changes []string
		want    int
	}{
		"expires now":             {[]string{"iat", at(-100), "nbf", "", "exp", at(0)}, 200},
		"expired, inside":         {[]string{"iat", at(-100), "nbf", "", "exp", at(-30)}, 200},
		"expired, outside":        {[]string{"iat", at(-400), "nbf", "", "exp", at(-300)}, 401},
		"nbf in the future":       {[]string{"nbf", at(30)}, 200},
		"nbf, outside":            {[]string{"nbf", at(1200), "exp", at(1500)}, 401},
		"iat in the future":       {[]string{"iat", at(30), "nbf", ""}, 200},
		"iat, outside":            {[]string{"iat", at(1200), "nbf", "", "exp", at(1500)}, 401},
		"nbf behind exp":          {[]string{"iat", at(-60), "nbf", at(60), "exp", at(59)}, 401},
		"issuer's clock is ahead": {[]string{"iat", at(50), "nbf", at(50), "exp", at(350)}, 200},
	} {
		if code, text, _ := p.get(bearing(i.signed("k1", goodHeader, i.payload(c.changes...))), ""); code != c.want {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// answering is an issuer that answers whatever the test says.
type answering struct {
	*httptest.Server
	mu      sync.Mutex
	answer  http.HandlerFunc
	fetches int
}

func newAnswering(t *testing.T, first http.HandlerFunc) *answering {
	t.Helper()
	a := &answering{answer: first}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.fetches++
		answer := a.answer
		a.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *answering) set(answer http.HandlerFunc) (before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
	return a.fetches
}

func (a *answering) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fetches
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func jwk(kid string, key *rsa.PublicKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":%q%s}`, kid, encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes()), more)
}

// TestHostileKeySets: whatever the
// issuer answers later, the last good keys stay in use.
func TestHostileKeySets(t *testing.T) {
	t.Parallel()
	key := certtest.RSA(t)
	elsewhere := newAnswering(t, text("{}"))
	good := text(`{"keys":[` + jwk("k1", &key.PublicKey, "") + `]}`)
	a := newAnswering(t, good)
	p := start(t, t.TempDir(), &issuer{Server: a.Server, key: key}, "--jwks-url="+a.URL)
	stranger := &rotating{Server: a.Server, keys: map[string]*rsa.PrivateKey{"k1": key}}
	for name, answer := range map[string]http.HandlerFunc{
		"HTML":     text("<html>"),
		"500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no keys":  text(`{"keys":[]}`),
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
	} {
		before := a.set(answer)
		for n := 0; a.count() == before; n++ { // until an unknown key has caused a fetch
			if code, body, _ := p.get(bearing(stranger.signed("k1", fmt.Sprintf(`{"alg":"RS256","kid":"%s-%d"}`, name[:2], n), stranger.payload())), ""); code != http.StatusUnauthorized {
				t.Fatalf("%s: an unknown key: %d %s", name, code, body)
			}
		}
		for range 3 { // a bearer token can be sent again, and the issuer is not asked about its client
			if code, body, _ := p.get(bearing(p.token), ""); code != http.StatusOK {
				t.Errorf("%s: a good token: %d %s", name, code, body)
			}
		}
	}
	if elsewhere.count() > 0 {
		t.Error("a redirect to another host was followed")
	}
}

// TestHostileKeys: of a set with bad keys and a good one, only the good one is
// used.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]*rsa.PrivateKey{"small": small}
	for _, kid := range []string{"k1", "enc", "rs384", "private", "ops"} {
		keys[kid] = certtest.RSA(t)
	}
	entries := []string{
		`{"kty":"LMS","kid":"lms"}`, `{"kty":"oct","kid":"oct","k":"AAAA"}`, `{"kty":"EC","kid":"ec","crv":"P-256","x":"AQ","y":"AQ"}`, `7`, `{}`,
		jwk("small", &keys["small"].PublicKey, ""), jwk("enc", &keys["enc"].PublicKey, `,"use":"enc"`),
		jwk("rs384", &keys["rs384"].PublicKey, `,"alg":"RS384"`), jwk("ops", &keys["ops"].PublicKey, `,"key_ops":["sign"]`),
		jwk("private", &keys["private"].PublicKey, `,"d":"AQAB"`), jwk("k1", &keys["k1"].PublicKey, ""), jwk("k1", &keys["small"].PublicKey, ""),
	}
	a := newAnswering(t, text(`{"keys":[`+strings.Join(entries, ",")+`]}`))
	i := &rotating{Server: a.Server, keys: keys}
	p := start(t, t.TempDir(), &issuer{Server: a.Server, key: keys["k1"]}, "--jwks-url="+a.URL)
	for kid := range keys {
		want := http.StatusUnauthorized
		if kid == "k1" { // it does not say its algorithm
			want = http.StatusOK
		}
		if code, body, _ := p.get(bearing(i.signed(kid, fmt.Sprintf(`{"alg":"RS256","kid":%q}`, kid), i.payload())), ""); code != want {
			t.Errorf("%s: %d %s", kid, code, body)
		}
	}
	input := encode([]byte(`{"alg":"RS384","kid":"k1"}`)) + "." + encode([]byte(i.payload()))
	sum := sha512.Sum384([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, keys["k1"], crypto.SHA384, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	if code, _, _ := p.get(bearing(input+"."+encode(signature)), ""); code != http.StatusUnauthorized {
		t.Errorf("RS384: %d", code)
	}
}

// TestFloodOfBadTokens: a thousand bad tokens at
// once, each with a key of its own, cause few fetches; good ones pass meanwhile.
func TestFloodOfBadTokens(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL)
	i.mu.Lock()
	before, began := i.fetches, time.Now()
	i.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var senders sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	for sender := range 100 {
		senders.Go(func() {
			for n := range 10 {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url("--listen-http")+eventsPath, nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+i.signed("k1", fmt.Sprintf(`{"alg":"RS256","kid":"x%d-%d"}`, sender, n), i.payload()))
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("a bad token: %d", resp.StatusCode)
				}
			}
		})
	}
	for range 20 {
		if code, body, _ := p.get(bearing(p.token), ""); code != http.StatusOK {
			t.Errorf("a good token: %d %s", code, body)
		}
	}
	senders.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	if most := 2 + int(time.Since(began)/time.Second); i.fetches-before > most {
		t.Errorf("%d fetches for a thousand unknown keys within %s", i.fetches-before, time.Since(began))
	}
}
