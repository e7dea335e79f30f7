package clientkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"tidings.example/shared/bearer"
)

// Private is the private key of a client.
type Private struct {
	ID  string // kid: the RFC 7638 thumbprint
	alg string
	key crypto.Signer
}

// New makes a key for an algorithm: ES256, Ed25519, EdDSA, which is the older name of Ed25519, or RS256.
func New(alg string) (*Private, error) {
	var key crypto.Signer
	var err error
	switch alg {
	case bearer.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case bearer.Ed25519, bearer.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case bearer.RS256:
		key, err = rsa.GenerateKey(rand.Reader, sizes()[0])
	default:
		return nil, fmt.Errorf("no key can be made for the algorithm %q", alg)
	}
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return newPrivate(key, alg)
}

func newPrivate(key crypto.Signer, alg string) (*Private, error) {
	kid, err := thumbprint(key.Public())
	return &Private{ID: kid, alg: alg, key: key}, err
}

// ParsePrivate reads a private key in PEM, of PKCS #8 or as OpenSSL writes it. RSA keys sign by RS256, and
// those of Ed25519 by the name Ed25519.
func ParsePrivate(text []byte) (*Private, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no private key in PEM; \"tokensvc client-key new\" makes one")
	}
	var parsed any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("a PEM block %q where a PRIVATE KEY belongs", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	switch key := parsed.(type) {
	case *ecdsa.PrivateKey:
		if key.Curve != elliptic.P256() {
			return nil, errors.New("an elliptic curve that is not P-256")
		}
		return newPrivate(key, bearer.ES256)
	case ed25519.PrivateKey:
		return newPrivate(key, bearer.Ed25519)
	case *rsa.PrivateKey:
		return newPrivate(key, bearer.RS256)
	}
	return nil, fmt.Errorf("a private key of type %T, not of RSA, P-256 or Ed25519", parsed)
}

// PEM returns the private key in PEM (PKCS #8).
func (p *Private) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// PublicPEM returns the public keys in PEM.
func PublicPEM(keys ...*Private) ([]byte, error) {
	var text []byte
	for _, p := range keys {
		der, err := x509.MarshalPKIXPublicKey(p.key.Public())
		if err != nil {
			return nil, fmt.Errorf("encode public key: %w", err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return text, nil
}

// JWKS returns a JWK set with the public keys.
func JWKS(keys ...*Private) ([]byte, error) {
	var set struct {
		Keys []jwk.Key `json:"keys"`
	}
	for _, p := range keys {
		key, err := describe(p.key.Public(), p.ID, p.alg)
		if err != nil {
			return nil, err
		}
		set.Keys = append(set.Keys, key)
	}
	return json.Marshal(set)
}

// assertionLife is how long an assertion is valid: enough for clocks that differ, as it is used once and at once.
const assertionLife = time.Minute

// Assertion returns a signed assertion by which the client authenticates to the token service once (RFC 7523 section
// 3). The audience is the issuer of the token service.
func (p *Private) Assertion(clientID, audience string, now time.Time) (string, error) {
	payload, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}{clientID, clientID, audience, uuid.NewString(), now.Unix(), now.Add(assertionLife).Unix()})
	if err != nil {
		return "", fmt.Errorf("encode assertion: %w", err)
	}
	header, err := json.Marshal(struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
		Type      string `json:"typ"`
	}{p.alg, p.ID, "JWT"})
	if err != nil {
		return "", fmt.Errorf("encode header of the assertion: %w", err)
	}
	known := jwa.SignatureAlgorithm(p.alg)
	if p.alg == bearer.Ed25519 {
		known = jwa.EdDSA // jwx has the older name only
	}
	signer, err := jws.NewSigner(known)
	if err != nil {
		return "", fmt.Errorf("sign assertion: %w", err)
	}
	input := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature, err := signer.Sign([]byte(input), p.key)
	if err != nil {
		return "", fmt.Errorf("sign assertion: %w", err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
