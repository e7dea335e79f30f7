package clientkey

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"tidings.example/shared/bearer"
)

// MaxKeys is how many keys a client can have: a second one while the first is being replaced. A failed attempt costs as
// much as trying all of them, so there cannot be many.
const MaxKeys = 2

// Public is a registered public key.
type Public struct {
	ID string // kid, by which an assertion may choose the key
	*bearer.PublicKey
}

// sizes returns the sizes of RSA keys that are accepted, in bits. There are few, because the stand-in key of an unknown
// client has one of these sizes too.
func sizes() []int { return []int{2048, 3072, 4096} }

// ParseJWKS reads a JWK set (RFC 7517 section 5). A key that cannot be used is an error, because its owner has to know.
func ParseJWKS(document []byte) ([]Public, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil || len(set.Keys) == 0 {
		return nil, errors.New(`not a JWK set with at least one key, such as {"keys":[…]}; make one with "tokensvc client-key new"`)
	}
	var keys []Public
	for i, entry := range set.Keys {
		kid, key, err := bearer.ParseKey(entry, bearer.Algorithms())
		if err == nil {
			keys, err = add(keys, kid, key)
		}
		if err != nil {
			return nil, fmt.Errorf("key %d of the set: %w", i+1, err)
		}
	}
	return keys, nil
}

// ParsePEM reads public keys in PEM (RFC 7468 section 13). The id of each is its RFC 7638 thumbprint.
func ParsePEM(text []byte) ([]Public, error) {
	var keys []Public
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a PEM block %q where a PUBLIC KEY belongs; \"tokensvc client-key show --pem\" prints one", block.Type)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM block %d: %w", len(keys)+1, err)
		}
		key, err := bearer.NewPublicKey(parsed, bearer.Algorithms())
		if err == nil {
			keys, err = add(keys, "", key)
		}
		if err != nil {
			return nil, fmt.Errorf("PEM block %d: %w", len(keys)+1, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no PUBLIC KEY in PEM; \"tokensvc client-key show --pem\" prints one")
	}
	return keys, nil
}

// add appends a key, whose id is the thumbprint if it has none.
func add(keys []Public, kid string, key *bearer.PublicKey) ([]Public, error) {
	if r, ok := key.Public().(*rsa.PublicKey); ok && !slices.Contains(sizes(), r.N.BitLen()) {
		return nil, fmt.Errorf("an RSA key of %d bits, which is none of %v", r.N.BitLen(), sizes())
	}
	if kid == "" {
		var err error
		if kid, err = thumbprint(key.Public()); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(keys, func(k Public) bool { return k.ID == kid && k.Alike(key) }) {
		return nil, fmt.Errorf("the kid %q is used twice for the same kty and alg", kid)
	}
	if len(keys) == MaxKeys {
		return nil, fmt.Errorf("more than %d keys", MaxKeys)
	}
	return append(keys, Public{ID: kid, PublicKey: key}), nil
}

// Join joins the keys of two fields of a registration. An error names a key that is too many or has the id of another.
func Join(keys, more []Public) ([]Public, error) {
	var err error
	for _, k := range more {
		if keys, err = add(keys, k.ID, k.PublicKey); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// thumbprint returns the RFC 7638 thumbprint of a key.
func thumbprint(public crypto.PublicKey) (string, error) {
	key, err := jwk.FromRaw(public)
	if err != nil {
		return "", fmt.Errorf("describe public key: %w", err)
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("key thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// describe returns the JWK of a public key, with its id and the algorithm that its owner uses.
func describe(public crypto.PublicKey, kid, alg string) (jwk.Key, error) {
	key, err := jwk.FromRaw(public)
	if err != nil {
		return nil, fmt.Errorf("describe public key: %w", err)
	}
	for name, value := range map[string]any{jwk.KeyIDKey: kid, jwk.AlgorithmKey: jwa.SignatureAlgorithm(alg), jwk.KeyUsageKey: jwk.ForSignature} {
		if err := key.Set(name, value); err != nil {
			return nil, fmt.Errorf("describe public key: %w", err)
		}
	}
	return key, nil
}
