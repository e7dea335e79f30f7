package bearer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// The signature algorithms that can be accepted (RFC 7518 section 3.1, RFC 9864 section 2.2). EdDSA is the older name
// of Ed25519 for a key of that curve (RFC 8037 section 3.1).
const (
	RS256   = "RS256"
	PS256   = "PS256"
	ES256   = "ES256"
	Ed25519 = "Ed25519"
	EdDSA   = "EdDSA"
)

// Algorithms returns all algorithms that can be accepted.
func Algorithms() []string { return []string{RS256, PS256, ES256, Ed25519, EdDSA} }

// sameAs returns the names of an algorithm.
func sameAs(alg string) []string {
	if alg == Ed25519 || alg == EdDSA {
		return []string{Ed25519, EdDSA}
	}
	return []string{alg}
}

// checkAlgorithms returns an error for an algorithm that cannot be accepted.
func checkAlgorithms(algorithms []string) error {
	for _, alg := range algorithms {
		if !slices.Contains(Algorithms(), alg) {
			return fmt.Errorf("the algorithm %q is none of %v", alg, Algorithms())
		}
	}
	return nil
}

// Key verifies signatures.
type Key interface {
	// Verify reports whether signature signs input by the algorithm. It is false for an algorithm that does not
	// belong to the key: the header of a token does not decide how a key is used (RFC 8725 section 3.1).
	Verify(alg string, input, signature []byte) bool
}

// PublicKey is a [Key] of RSA, of the curve P-256 or of Ed25519.
type PublicKey struct {
	public interface{ Equal(crypto.PublicKey) bool }
	size   int // of a signature, in bytes
	by     []algorithm
	alg    string // named by its JWK; empty: none
}

// algorithm verifies signatures by the algorithm of that name.
type algorithm struct {
	name   string
	verify jws.Verifier
}

// NewPublicKey returns a key for the algorithms that fit its type. At least one must fit.
func NewPublicKey(public crypto.PublicKey, algorithms []string) (*PublicKey, error) {
	var k PublicKey
	var fitting []string
	switch p := public.(type) {
	case *rsa.PublicKey:
		if err := checkRSA(p); err != nil {
			return nil, err
		}
		k, fitting = PublicKey{public: p, size: p.Size()}, []string{RS256, PS256}
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return nil, errors.New("an elliptic curve that is not P-256")
		}
		if _, err := p.ECDH(); err != nil { // jwx does not look whether the point is on the curve
			return nil, errors.New("a point that is not on the curve")
		}
		k, fitting = PublicKey{public: p, size: 64}, []string{ES256}
	case ed25519.PublicKey:
		if len(p) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("an Ed25519 key of %d bytes", len(p))
		}
		k, fitting = PublicKey{public: p, size: ed25519.SignatureSize}, sameAs(EdDSA)
	default:
		return nil, fmt.Errorf("a key of type %T, not of RSA, P-256 or Ed25519", public)
	}
	for _, alg := range fitting {
		if !slices.Contains(algorithms, alg) {
			continue
		}
		known := jwa.SignatureAlgorithm(alg)
		if alg == Ed25519 {
			known = jwa.EdDSA // jwx has the older name only
		}
		verifier, err := jws.NewVerifier(known)
		if err != nil {
			return nil, err
		}
		k.by = append(k.by, algorithm{alg, verifier})
	}
	if len(k.by) == 0 {
		return nil, fmt.Errorf("a key that fits none of the accepted algorithms %v", algorithms)
	}
	return &k, nil
}

// serves reports whether the algorithm belongs to the key.
func (k *PublicKey) serves(alg string) bool {
	return slices.ContainsFunc(k.by, func(a algorithm) bool { return a.name == alg })
}

// Public returns the key of the standard library.
func (k *PublicKey) Public() crypto.PublicKey { return k.public }

// Fits reports whether a signature by the algorithm has the form that this key makes. The form says nothing about
// whether the signature is good, but verifying one of another form takes less time.
func (k *PublicKey) Fits(alg string, signature []byte) bool {
	if len(signature) != k.size || !k.serves(alg) {
		return false
	}
	r, ok := k.public.(*rsa.PublicKey)
	return !ok || r.N.Cmp(new(big.Int).SetBytes(signature)) > 0
}

// mayVerify reports whether verifying the signature takes the time of a good one. Other keys than [PublicKey] see to
// that.
func mayVerify(key Key, alg string, signature []byte) bool {
	public, ok := key.(*PublicKey)
	return !ok || public.Fits(alg, signature)
}

// Verify implements [Key].
func (k *PublicKey) Verify(alg string, input, signature []byte) bool {
	if len(signature) != k.size {
		return false
	}
	for _, a := range k.by {
		if a.name == alg {
			return a.verify.Verify(input, signature, k.public) == nil
		}
	}
	return false
}

// equal reports whether both are the same key for the same algorithms.
func (k *PublicKey) equal(other *PublicKey) bool {
	return k == other || k.public.Equal(other.public) && k.Alike(other)
}

// Alike reports whether both keys, which were read for the same algorithms, have the same type and the same alg, or
// none.
func (k *PublicKey) Alike(other *PublicKey) bool {
	same := func(a, b algorithm) bool { return a.name == b.name }
	return k.alg == other.alg && slices.EqualFunc(k.by, other.by, same)
}

// sameKey reports whether two keys verify the same signatures. It is false for other keys than [PublicKey] that are not
// identical.
func sameKey(a, b Key) bool {
	if a == b {
		return true
	}
	x, okX := a.(*PublicKey)
	y, okY := b.(*PublicKey)
	return okX && okY && x.equal(y)
}
