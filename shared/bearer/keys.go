package bearer

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
)

const (
	maxKeys    = 100  // in one document
	minKeyBits = 2048 // NIST SP 800-131A, RFC 7518 section 3.3
	maxKeyBits = 8192 // larger ones make verification a way to spend our time
)

// parseKeys reads the keys we can use from a JWK set (RFC 7517 section 5). Entries that are no RS256 verification keys of
// a sound size are skipped and logged; others still work. A document without any usable key is an error, because taking
// it would lock everybody out.
func parseKeys(document []byte, log *slog.Logger) (map[string]*rsa.PublicKey, error) {
	set, err := decodeObject(document)
	if err != nil {
		return nil, fmt.Errorf("no JWK set: %w", err)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(set["keys"], &entries); err != nil {
		return nil, errors.New(`no JWK set: it has no list "keys"`)
	}
	if len(entries) > maxKeys {
		return nil, fmt.Errorf("JWK set has %d keys, more than %d", len(entries), maxKeys)
	}
	keys := map[string]*rsa.PublicKey{}
	for i, entry := range entries {
		kid, key, err := parseKey(entry)
		if err == nil && keys[kid] != nil {
			err = errors.New("kid used twice, the first is kept")
		}
		if err != nil {
			log.Warn("entry of the JWK set skipped", "index", i, "kid", kid, "reason", err)
			continue
		}
		keys[kid] = key
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("JWK set has no usable key among %d entries", len(entries))
	}
	return keys, nil
}

// parseKey reads one RSA key (RFC 7518 section 6.3.1).
func parseKey(entry []byte) (kid string, key *rsa.PublicKey, err error) {
	jwk, err := decodeObject(entry)
	if err != nil {
		return "", nil, err
	}
	if kid, _ = jwk.text("kid"); kid == "" || len(kid) > maxKeyID {
		return "", nil, errors.New("kid missing or malformed")
	}
	if err := checkPurpose(jwk); err != nil {
		return kid, nil, err
	}
	n, err := jwk.integer("n")
	if err != nil {
		return kid, nil, err
	}
	e, err := jwk.integer("e")
	if err != nil {
		return kid, nil, err
	}
	switch {
	case n.BitLen() < minKeyBits || n.BitLen() > maxKeyBits:
		return kid, nil, fmt.Errorf("a key of %d bits, not of %d to %d", n.BitLen(), minKeyBits, maxKeyBits)
	case n.Bit(0) == 0:
		return kid, nil, errors.New("an even modulus")
	case e.BitLen() > 31 || e.Bit(0) == 0 || e.Cmp(big.NewInt(3)) < 0:
		return kid, nil, errors.New("an exponent that is even, below 3 or above 31 bits")
	}
	return kid, &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

// checkPurpose refuses keys that are not meant to verify RS256 signatures. A key that does not say its algorithm is taken
// for RS256, the only one there is here.
func checkPurpose(jwk object) error {
	if kty, _ := jwk.text("kty"); kty != "RSA" {
		return errors.New("kty is not RSA")
	}
	if alg, ok := jwk.text("alg"); jwk.has("alg") && (!ok || alg != "RS256") {
		return errors.New("alg is not RS256")
	}
	if use, ok := jwk.text("use"); jwk.has("use") && (!ok || use != "sig") {
		return errors.New("use is not sig")
	}
	if jwk.has("key_ops") {
		verifies := false
		operations, _ := jwk.texts("key_ops")
		for _, operation := range operations {
			verifies = verifies || operation == "verify"
		}
		if !verifies {
			return errors.New("key_ops has no verify")
		}
	}
	if jwk.has("d") {
		return errors.New("a private key, which its owner should replace because it was published")
	}
	return nil
}

// integer is a member that is a Base64urlUInt (RFC 7518 section 2).
func (o object) integer(name string) (*big.Int, error) {
	text, ok := o.text(name)
	if !ok || len(text) > maxToken {
		return nil, fmt.Errorf("%s missing or malformed", name)
	}
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64url", name)
	}
	return new(big.Int).SetBytes(bytes), nil
}
