package keyring

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"tidings.example/shared/bearer"
)

// minBits is the smallest modulus for RS256 (RFC 7518 section 3.3).
const minBits = 2048

// key is one key pair, or a public key that is only published.
type key struct {
	id      string
	file    string    // of the key; empty: made in memory
	from    time.Time // when it begins to sign; zero: at any time
	untimed bool      // its file name has no time
	private *rsa.PrivateKey
	public  jwk.Key
	verify  *bearer.PublicKey
	bits    int
	header  string // encoded JWS header, with the dot behind it
}

// newKey returns a key with everything that is the same in all its tokens.
func newKey(private *rsa.PrivateKey, public *rsa.PublicKey, from time.Time, f TokenForm) (*key, error) {
	if bits := public.N.BitLen(); bits < minBits {
		return nil, fmt.Errorf("RSA key has %d bits; RS256 needs at least %d (RFC 7518 section 3.3)", bits, minBits)
	}
	pub, err := jwk.FromRaw(public)
	if err != nil {
		return nil, fmt.Errorf("describe public key: %w", err)
	}
	thumbprint, err := pub.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("key thumbprint: %w", err)
	}
	verify, err := bearer.NewPublicKey(public, []string{bearer.RS256})
	if err != nil {
		return nil, fmt.Errorf("RSA key: %w", err)
	}
	k := &key{id: keyID(thumbprint, f.Thumbprint), from: from, private: private, public: pub, verify: verify, bits: public.N.BitLen()}
	for name, value := range map[string]any{
		jwk.KeyIDKey: k.id, jwk.AlgorithmKey: jwa.RS256, jwk.KeyUsageKey: jwk.ForSignature,
	} {
		if err := pub.Set(name, value); err != nil {
			return nil, fmt.Errorf("describe public key: %w", err)
		}
	}
	header, err := json.Marshal(struct {
		KeyID     string `json:"kid"`
		Algorithm string `json:"alg"`
		Type      string `json:"typ,omitempty"`
	}{k.id, jwa.RS256.String(), f.Type})
	if err != nil {
		return nil, fmt.Errorf("encode token header: %w", err)
	}
	k.header = base64.RawURLEncoding.EncodeToString(header) + "."
	return k, nil
}

// keyID derives the kid from the key, so that it is the same in all replicas and after a restart: the RFC 7638
// thumbprint or, by default, the first half of it as a UUID (version 8, RFC 9562 section 5.8).
func keyID(thumbprint []byte, asThumbprint bool) string {
	if asThumbprint {
		return base64.RawURLEncoding.EncodeToString(thumbprint)
	}
	var id uuid.UUID
	copy(id[:], thumbprint)
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
