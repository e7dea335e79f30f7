package target

import (
	"crypto/rand"
	"crypto/rsa"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestVerify: a token passes only with the signature of a published key, its client as the subject, and a date to come.
func TestVerify(t *testing.T) {
	t.Parallel()
	var private [2]*rsa.PrivateKey
	for i := range private {
		var err error
		if private[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	published := KeySet{"a": &private[0].PublicKey}
	for _, c := range []struct {
		name, kid, client string
		key               *rsa.PrivateKey
		life              time.Duration
		ok                bool
	}{
		{"good", "a", "demo", private[0], time.Minute, true},
		{"of another client", "a", "other", private[0], time.Minute, false},
		{"by another key", "a", "demo", private[1], time.Minute, false},
		{"by a key that is not published", "b", "demo", private[1], time.Minute, false},
		{"expired", "a", "demo", private[0], -time.Minute, false},
	} {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{Subject: c.client, ExpiresAt: jwt.NewNumericDate(time.Now().Add(c.life))})
		token.Header["kid"] = c.kid
		text, err := token.SignedString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if err := published.Verify([]byte(`{"access_token":"`+text+`"}`), "demo"); (err == nil) != c.ok {
			t.Errorf("a token %s: %v", c.name, err)
		}
	}
}
