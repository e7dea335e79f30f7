package target

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
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

// Verify checks the signature of a token in the answer of the token endpoint,
// and that the token is made for the client.
func (k KeySet) Verify(body []byte, client string) error {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("token: %w: %.300s", err, body)
	}
	parts := bytes.Split([]byte(answer.AccessToken), []byte("."))
	if len(parts) != 3 {
		return fmt.Errorf("token of %d parts", len(parts))
	}
	var head struct{ Alg, Kid string }
	var claims struct{ Sub string }
	if err := decodePart(parts[0], &head); err != nil {
		return err
	}
	if err := decodePart(parts[1], &claims); err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(string(parts[2]))
	key := k[head.Kid]
	if err != nil || key == nil || head.Alg != "RS256" || claims.Sub != client {
		return fmt.Errorf("token with alg %q, kid %q, sub %q for client %q", head.Alg, head.Kid, claims.Sub, client)
	}
	digest := sha256.Sum256([]byte(answer.AccessToken[:len(parts[0])+1+len(parts[1])]))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature)
}

func decodePart(part []byte, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(string(part))
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	return json.Unmarshal(text, into)
}
