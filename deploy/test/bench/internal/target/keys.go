package target

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"

	"github.com/golang-jwt/jwt/v5"
)

// JWKSPath is where tokensvc publishes its keys.
const JWKSPath = "/oauth2/jwks"

// KeySet verifies tokens by the keys that tokensvc publishes.
type KeySet map[string]*rsa.PublicKey

// Keys fetches the keys that tokensvc publishes.
func (s *Services) Keys(ctx context.Context) (KeySet, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.TokenAddr.String()+JWKSPath, nil)
	if err != nil {
		return nil, err
	}
	var set struct{ Keys []struct{ Kid, N, E string } }
	if err := fetch(req, &set); err != nil {
		return nil, err
	}
	keys := make(KeySet)
	for _, k := range set.Keys {
		n, err1 := base64.RawURLEncoding.DecodeString(k.N)
		e, err2 := base64.RawURLEncoding.DecodeString(k.E)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("JWKS: key %q is no RSA key", k.Kid)
		}
		keys[k.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	return keys, nil
}

// Verify checks the signature and the dates of the token in an answer of the
// token endpoint, and that the token is made for the client.
func (k KeySet) Verify(body []byte, client string) error {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("token: %w: %.300s", err, body)
	}
	_, err := jwt.ParseWithClaims(answer.AccessToken, new(jwt.RegisteredClaims), func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		if k[kid] == nil {
			return nil, fmt.Errorf("kid %q is not published", kid)
		}
		return k[kid], nil
	}, jwt.WithValidMethods([]string{"RS256"}), jwt.WithSubject(client), jwt.WithExpirationRequired())
	return err
}
