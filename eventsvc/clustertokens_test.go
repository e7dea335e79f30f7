package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// serviceAccountToken is the payload of a projected service-account token, as kube-apiserver writes it.
func serviceAccountToken(issuer, audience, account string) string {
	now := time.Now().Unix()
	return fmt.Sprintf(`{"aud":[%q],"exp":%d,"iat":%d,"iss":%q,"jti":"0b5c5f0e-3f5c-4b8e-9c43-2f6f1c0c7a01","nbf":%d,
		"kubernetes.io":{"namespace":"shop","node":{"name":"n1","uid":"u1"},"pod":{"name":"p","uid":"u2"},
		"serviceaccount":{"name":%q,"uid":"u3"},"warnafter":%d},"sub":"system:serviceaccount:shop:%s"}`,
		audience, now+3607, now, issuer, now, account, now+3607, account)
}

// TestClusterTokens: the service-account tokens of clusters are enough, with no token service and no --issuer. One
// cluster publishes its keys to callers with a token, over TLS with its own authority; the keys of the other, on P-256,
// are in a file.
func TestClusterTokens(t *testing.T) {
	t.Parallel()
	first, ca := newRotating(t), t.TempDir()
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-pod" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		first.Config.Handler.ServeHTTP(w, r)
	}))
	api.TLS = authority(t, ca, "127.0.0.1")
	api.StartTLS()
	t.Cleanup(api.Close)
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := second.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	keys := writeFile(t, "jwks.json", fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","kid":"k1","x":%q,"y":%q}]}`, encode(point[1:33]), encode(point[33:])))
	const byURL, byFile = "https://first.cluster.example", "https://second.cluster.example"
	issuers := writeFile(t, "issuers.yaml", fmt.Sprintf(`
- {issuer: %q, jwksURL: "%s/openid/v1/jwks", caFile: %q, bearerTokenFile: %q, audiences: [eventsvc], maxTokenLife: 2h}
- {issuer: %q, jwksFile: %q, algorithms: [ES256], audiences: [eventsvc], maxTokenLife: 2h}
`, byURL, api.URL, filepath.Join(ca, "ca.crt"), writeFile(t, "token", "of-the-pod\n"), byFile, keys))
	rules := writeFile(t, "policy.yaml", fmt.Sprintf(
		"bindings:\n- {role: 'events:read', subjects: [{issuer: %q, clientID: 'system:serviceaccount:shop:reporter'}, {issuer: %q, clientID: 'system:serviceaccount:shop:reporter'}]}\n", byURL, byFile))
	both := start(t, t.TempDir(), newIssuer(t), "--issuers-file="+issuers, "--policy-file="+rules)
	alone := start(t, t.TempDir(), newIssuer(t), "--issuers-file="+issuers, "--policy-file="+rules, "--issuer=")
	const rs256, es256 = `{"alg":"RS256","kid":"k1"}`, `{"alg":"ES256","kid":"k1"}`
	bySecond := func(payload string) string {
		input := encode([]byte(es256)) + "." + encode([]byte(payload))
		sum := sha256.Sum256([]byte(input))
		r, s, err := ecdsa.Sign(rand.Reader, second, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return input + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	}
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"keys by URL":                        {first.signed("k1", rs256, serviceAccountToken(byURL, "eventsvc", "reporter")), 200},
		"keys in a file":                     {bySecond(serviceAccountToken(byFile, "eventsvc", "reporter")), 200},
		"another account":                    {bySecond(serviceAccountToken(byFile, "eventsvc", "other")), 403},
		"a token for the API server":         {bySecond(serviceAccountToken(byFile, "https://kubernetes.default.svc", "reporter")), 401},
		"second cluster in the first's name": {bySecond(serviceAccountToken(byURL, "eventsvc", "reporter")), 401},
		"first cluster in the second's name": {first.signed("k1", rs256, serviceAccountToken(byFile, "eventsvc", "reporter")), 401},
	} {
		for setting, p := range map[string]*process{"beside --issuer": both, "alone": alone} {
			p.token = c.token
			if code, object := p.do("GET", eventsPath, ""); code != c.want {
				t.Errorf("%s, %s: %d %v, want %d", name, setting, code, object, c.want)
			}
		}
	}
}
