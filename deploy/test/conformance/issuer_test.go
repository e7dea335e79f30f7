package conformance_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const issuerName = "https://issuer.example"

// issuer signs tokens and publishes its key: a token service in small.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k1",
		"n": segment(key.N.Bytes()),
		"e": segment(big.NewInt(int64(key.E)).Bytes()),
	}}})
	if err != nil {
		return nil, err
	}
	return &issuer{key: key, Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(set) // a server that hangs up asks again
	}))}, nil
}

// token signs a token for a client that is good for an hour.
func (i *issuer) token(t *testing.T, client string) string {
	t.Helper()
	now := time.Now()
	return i.sign(t, map[string]any{
		"iss": issuerName, "sub": client, "client_id": client, "aud": client, "scope": []string{"events"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": fmt.Sprint(now.UnixNano()),
	})
}

func (i *issuer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := segment([]byte(`{"alg":"RS256","kid":"k1","typ":"JWT"}`)) + "." + segment(body)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + segment(sig)
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
