package keyring_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/keyring"
)

const (
	maxAge   = time.Minute
	lifetime = 5 * time.Minute
)

func newRing(t testing.TB, c keyring.Config) *keyring.Keyring {
	t.Helper()
	c.MaxAge, c.Lifetime = maxAge, lifetime
	c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := keyring.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verifier caches a key set for its whole max-age, and verifies with the standard library alone.
type verifier struct {
	ring    *keyring.Keyring
	fetched time.Time
	keys    map[string]*rsa.PublicKey
}

func (v *verifier) verify(t *testing.T, token string) bool {
	t.Helper()
	if set := v.ring.Published(); time.Since(v.fetched) >= set.MaxAge {
		v.fetched, v.keys = time.Now(), parseSet(t, set.Body)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q has not three parts", token)
	}
	var header struct{ Kid, Alg string }
	if err := json.Unmarshal(decode(t, parts[0]), &header); err != nil || header.Alg != "RS256" {
		t.Fatalf("header %s: %v", parts[0], err)
	}
	key, ok := v.keys[header.Kid]
	if !ok {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decode(t, parts[2])) == nil
}

func parseSet(t *testing.T, body []byte) map[string]*rsa.PublicKey {
	t.Helper()
	var set struct{ Keys []struct{ Kid, N, E string } }
	if err := json.Unmarshal(body, &set); err != nil {
		t.Fatal(err)
	}
	keys := map[string]*rsa.PublicKey{}
	for _, k := range set.Keys {
		keys[k.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(decode(t, k.N)), E: int(new(big.Int).SetBytes(decode(t, k.E)).Int64())}
	}
	return keys
}

func decode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sign(t testing.TB, r *keyring.Keyring) (token, kid string) {
	t.Helper()
	token, kid, err := r.Sign(t.Context(), []byte(`{"sub":"demo"}`))
	if err != nil {
		t.Fatal(err)
	}
	return token, kid
}

func TestSign(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		format keyring.TokenForm
		header string
	}{
		{keyring.TokenForm{}, `^{"kid":"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}","alg":"RS256"}$`},
		{keyring.TokenForm{Type: "at+jwt", Thumbprint: true}, `^{"kid":"[A-Za-z0-9_-]{43}","alg":"RS256","typ":"at\+jwt"}$`},
	} {
		r := newRing(t, keyring.Config{Format: tc.format})
		token, kid := sign(t, r)
		header, rest, _ := strings.Cut(token, ".")
		if got := string(decode(t, header)); !regexp.MustCompile(tc.header).MatchString(got) || !strings.Contains(got, kid) {
			t.Errorf("header %s, kid %s; want %s", got, kid, tc.header)
		}
		payload, _, _ := strings.Cut(rest, ".")
		if got := string(decode(t, payload)); got != `{"sub":"demo"}` {
			t.Errorf("payload %s", got)
		}
		if v := (&verifier{ring: r}); !v.verify(t, token) {
			t.Error("not verified by the published key")
		}
		if key, err := r.Key(t.Context(), kid, bearer.RS256); err != nil || key == nil {
			t.Errorf("own key: %v", err)
		}
		if _, err := r.Key(t.Context(), "other", bearer.RS256); err == nil {
			t.Error("a key that is not there is found")
		}
	}
}

// rotations is how many rotations TestRotation follows: each makes an RSA key.
const rotations = 15

// TestRotation follows a schedule for many rotations. Several users get tokens and verify them with a key set that they
// cache for its whole max-age. No token may fail while it is valid.
func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t, keyring.Config{Rotation: 4 * maxAge})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		var wg sync.WaitGroup
		for _, every := range []time.Duration{29, 31, 37, 41} {
			wg.Go(func() { useTokens(t, r, every*time.Second) })
		}
		wg.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// useTokens gets a token at a fixed interval, until there were enough rotations, and each time verifies the oldest
// valid token, the newest and one in between.
func useTokens(t *testing.T, r *keyring.Keyring, every time.Duration) {
	v := &verifier{ring: r}
	type issued struct {
		token string
		until time.Time
	}
	var live []issued
	kids := map[string]bool{}
	for len(kids) <= rotations {
		token, kid := sign(t, r)
		kids[kid] = true
		live = append(live, issued{token, time.Now().Add(lifetime)})
		for len(live) > 0 && time.Now().After(live[0].until) {
			live = live[1:]
		}
		for _, l := range []issued{live[0], live[len(live)/2], live[len(live)-1]} {
			if !v.verify(t, l.token) {
				t.Errorf("a token of key %s cannot be verified after %d rotations", kid, len(kids)-1)
			}
		}
		if n := len(parseSet(t, r.Published().Body)); n > 4 {
			t.Errorf("%d keys are published", n)
		}
		time.Sleep(every)
	}
}

// TestClockJump: when the clock jumps over several rotations, the next key still is pending before it signs.
func TestClockJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		r := newRing(t, keyring.Config{Rotation: 4 * maxAge, Now: now})
		go r.Run(t.Context())
		v := &verifier{ring: r}
		first, kid := sign(t, r)
		if !v.verify(t, first) {
			t.Fatal("first token not verified")
		}
		jump.Store(int64(24 * time.Hour))
		for changed := false; !changed; {
			time.Sleep(7 * time.Second)
			token, signing := sign(t, r)
			if !v.verify(t, token) {
				t.Fatal("a token is signed with a key that nobody knows yet")
			}
			changed = signing != kid
		}
	})
}

// TestStates follows one rotation by hand through pending, signing, retiring and gone.
func TestStates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t, keyring.Config{})
		go r.Run(t.Context())
		_, a := sign(t, r)
		etag := r.Published().ETag
		if err := r.Rotate(); err != nil {
			t.Fatal(err)
		}
		if err := r.Rotate(); err != nil { // a new key is pending already
			t.Fatal(err)
		}
		var b string
		for kid := range parseSet(t, r.Published().Body) {
			if kid != a {
				b = kid
			}
		}
		if etag == r.Published().ETag {
			t.Error("another key set has the same ETag")
		}
		start := time.Now()
		for _, step := range []struct {
			after     time.Duration
			signing   string
			published []string
		}{
			{0, a, []string{a, b}},
			{2*maxAge - time.Second, a, []string{a, b}},
			{2*maxAge + time.Second, b, []string{a, b}},
			{2*maxAge + lifetime + keyring.ClockSkew - time.Second, b, []string{a, b}},
			{2*maxAge + lifetime + keyring.ClockSkew + 2*time.Second, b, []string{b}},
		} {
			time.Sleep(time.Until(start.Add(step.after)))
			synctest.Wait()
			_, signing := sign(t, r)
			got := parseSet(t, r.Published().Body)
			if signing != step.signing || len(got) != len(step.published) {
				t.Errorf("after %v: %s signs of %d published, want %s of %d", step.after, signing, len(got), step.signing, len(step.published))
			}
			for _, kid := range step.published {
				if got[kid] == nil {
					t.Errorf("after %v: %s is not published", step.after, kid)
				}
			}
		}
	})
}

func generate(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func encode(t testing.TB, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func pkcs8(t testing.TB, k any) string {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	return encode(t, "PRIVATE KEY", der, err)
}

func public(t testing.TB, k any) string {
	der, err := x509.MarshalPKIXPublicKey(k)
	return encode(t, "PUBLIC KEY", der, err)
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	a, b := generate(t, 2048), generate(t, 3072)
	small := generate(t, 1024)
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := encode(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(a), nil)
	for _, tc := range []struct {
		name      string
		files     map[string]string
		published int
		want      string
	}{
		{"PKCS #8", map[string]string{"a.pem": pkcs8(t, a)}, 1, ""},
		{"PKCS #1", map[string]string{"a.pem": pkcs1}, 1, ""},
		{"with another service's public key", map[string]string{"a.pem": pkcs8(t, a), "b.pem": public(t, &b.PublicKey)}, 2, ""},
		{"both in one file, with remarks", map[string]string{"a.pem": "signing:\n" + pkcs8(t, a) + "old:\n" + public(t, &b.PublicKey)}, 2, ""},
		{"two with times", map[string]string{"20200101T000000Z.pem": pkcs8(t, a), "20990101T000000Z-next.pem": pkcs8(t, b)}, 2, ""},
		{"old one long gone", map[string]string{"20200101T000000Z.pem": pkcs8(t, a), "20210101T000000Z.pem": pkcs8(t, b)}, 1, ""},
		{"other files", map[string]string{"a.pem": pkcs8(t, a), "README": "x", "b.pem.bak": "x"}, 1, ""},
		{"empty folder", nil, 0, "no private RSA key"},
		{"no PEM", map[string]string{"a.pem": "x"}, 0, "a.pem: holds no PEM"},
		{"only public", map[string]string{"a.pem": public(t, &a.PublicKey)}, 0, "no private RSA key"},
		{"1024 bits", map[string]string{"a.pem": pkcs8(t, small)}, 0, "1024 bits"},
		{"elliptic", map[string]string{"a.pem": pkcs8(t, elliptical)}, 0, "no RSA key"},
		{"certificate", map[string]string{"a.pem": encode(t, "CERTIFICATE", []byte("x"), nil)}, 0, "CERTIFICATE"},
		{"encrypted", map[string]string{"a.pem": strings.Replace(pkcs1, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x,y\n\n", 1)}, 0, "encrypted"},
		{"damaged", map[string]string{"a.pem": encode(t, "PRIVATE KEY", []byte("x"), nil)}, 0, "PRIVATE KEY"},
		{"same key twice", map[string]string{"a.pem": pkcs8(t, a), "b.pem": public(t, &a.PublicKey)}, 0, "same key"},
		{"two without times", map[string]string{"a.pem": pkcs8(t, a), "b.pem": pkcs8(t, b)}, 0, "same time"},
		{"no such time", map[string]string{"20201399T000000Z.pem": pkcs8(t, a)}, 0, "time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, content := range tc.files {
				write(t, dir, name, content)
			}
			r, err := keyring.New(keyring.Config{Path: dir, MaxAge: maxAge, Lifetime: lifetime})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v; want one that names %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := len(parseSet(t, r.Published().Body)); got != tc.published {
				t.Errorf("%d keys published, want %d", got, tc.published)
			}
			token, _ := sign(t, r)
			if !(&verifier{ring: r}).verify(t, token) {
				t.Error("not verified by the published key")
			}
		})
	}
	if _, err := keyring.New(keyring.Config{Path: filepath.Join(t.TempDir(), "none"), MaxAge: maxAge, Lifetime: lifetime}); err == nil {
		t.Error("a missing path is accepted")
	}
}

// TestReplicas: two replicas that read one directory at different times always verify each other's tokens while the key
// is rotated by a new file.
func TestReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "20000101T000000Z.pem", pkcs8(t, generate(t, 2048)))
	next := pkcs8(t, generate(t, 2048))
	synctest.Test(t, func(t *testing.T) { // fake time begins at 2000-01-01
		rings := []*keyring.Keyring{newRing(t, keyring.Config{Path: dir}), nil}
		go rings[0].Run(t.Context())
		time.Sleep(500 * time.Millisecond)
		rings[1] = newRing(t, keyring.Config{Path: dir})
		go rings[1].Run(t.Context())
		verifiers := []*verifier{{ring: rings[0]}, {ring: rings[1]}}
		kids := map[string]bool{}
		start := time.Now()
		for time.Since(start) < 15*time.Minute {
			if at := time.Since(start); at >= time.Minute && at < time.Minute+7*time.Second {
				write(t, dir, time.Now().Add(2*maxAge).UTC().Format(keyring.TimeLayout)+".pem", next)
			}
			for i, r := range rings {
				token, kid := sign(t, r)
				kids[kid] = true
				if !verifiers[1-i].verify(t, token) {
					t.Fatalf("after %v: replica %d does not verify a token of %d", time.Since(start), 1-i, i)
				}
			}
			time.Sleep(7 * time.Second)
		}
		if len(kids) != 2 {
			t.Errorf("%d keys have signed, want 2", len(kids))
		}
		if a, b := rings[0].Published().ETag, rings[1].Published().ETag; a != b {
			t.Errorf("ETags %s and %s differ", a, b)
		}
	})
}

// TestBadReload: files that cannot be used leave the keys as they were.
func TestBadReload(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "key.pem", pkcs8(t, generate(t, 2048)))
	r := newRing(t, keyring.Config{Path: path})
	_, before := sign(t, r)
	write(t, filepath.Dir(path), "key.pem", "no key")
	if err := r.Reload(); err == nil {
		t.Error("no error")
	}
	if _, kid := sign(t, r); kid != before {
		t.Error("the key has changed")
	}
}

// TestReplacedFile replaces the only key file of a running service twice. A verifier that caches the key set for its
// max-age can verify every token, and in the end only the last key is published.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, "key.pem", pkcs8(t, generate(t, 2048)))
	replacements := []string{pkcs8(t, generate(t, 2048)), pkcs8(t, generate(t, 2048))}
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t, keyring.Config{Path: path})
		go r.Run(t.Context())
		v := &verifier{ring: r}
		type issued struct {
			token string
			until time.Time
		}
		var live []issued
		kids := map[string]bool{}
		for start := time.Now(); time.Since(start) < 25*time.Minute; time.Sleep(7 * time.Second) {
			if len(replacements) > 0 && time.Since(start) > time.Duration(3-len(replacements))*4*time.Minute {
				write(t, dir, "key.pem", replacements[0])
				replacements = replacements[1:]
			}
			token, kid := sign(t, r)
			kids[kid] = true
			live = append(live, issued{token, time.Now().Add(lifetime)})
			for time.Now().After(live[0].until) {
				live = live[1:]
			}
			for _, l := range []issued{live[0], live[len(live)-1]} {
				if !v.verify(t, l.token) {
					t.Fatalf("after %v a token is not verified", time.Since(start))
				}
			}
		}
		if left := len(parseSet(t, r.Published().Body)); len(kids) != 3 || left != 1 {
			t.Errorf("%d keys have signed and %d are published; want 3 and 1", len(kids), left)
		}
	})
}

// TestKeyIDIsStable: the same key has the same id after a restart and on every replica.
func TestKeyIDIsStable(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "key.pem", pkcs8(t, generate(t, 2048)))
	var ids []string
	for range 2 {
		_, kid := sign(t, newRing(t, keyring.Config{Path: path}))
		ids = append(ids, kid)
	}
	if diff := cmp.Diff(ids[0], ids[1]); diff != "" {
		t.Error(diff)
	}
}

func TestSignGivesUp(t *testing.T) {
	t.Parallel()
	r := newRing(t, keyring.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a signer may be free; then the token is made
		if _, _, err := r.Sign(ctx, nil); err != nil {
			return
		}
	}
	t.Error("a request that has gone is signed for every time")
}

func BenchmarkSign(b *testing.B) {
	r := newRing(b, keyring.Config{})
	payload := []byte(strings.Repeat("x", 200))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Sign(b.Context(), payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRawSign is the floor that BenchmarkSign is compared with.
func BenchmarkRawSign(b *testing.B) {
	key := generate(b, 2048)
	sum := sha256.Sum256([]byte("x"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]); err != nil {
			b.Fatal(err)
		}
	}
}
