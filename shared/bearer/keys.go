package bearer

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

const (
	maxKeys    = 100  // in one document
	minKeyBits = 2048 // NIST SP 800-131A, RFC 7518 section 3.3
	maxKeyBits = 8192 // with larger ones, verification takes too much processor time

	maxExponent = 6 // characters of base64url; jwx would silently truncate an exponent of more than 64 bits
)

// parseKeys returns the usable keys of a JWK set (RFC 7517 section 5): RS256 verification keys of an accepted size. Other
// entries are skipped and logged. A document without any usable key is an error, because all tokens would be refused
// with it.
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
func parseKey(document []byte) (kid string, key *rsa.PublicKey, err error) {
	entry, err := decodeObject(document)
	if err != nil {
		return "", nil, err
	}
	if kid, _ = entry.text("kid"); kid == "" || len(kid) > maxKeyID {
		return "", nil, errors.New("kid missing or malformed")
	}
	if err := checkPurpose(entry); err != nil {
		return kid, nil, err
	}
	public, err := publicKey(entry)
	if err != nil {
		return kid, nil, err
	}
	switch n, e := public.N, public.E; {
	case n.BitLen() < minKeyBits || n.BitLen() > maxKeyBits:
		return kid, nil, fmt.Errorf("a key of %d bits, not of %d to %d", n.BitLen(), minKeyBits, maxKeyBits)
	case n.Bit(0) == 0:
		return kid, nil, errors.New("an even modulus")
	case e < 3 || e > math.MaxInt32 || e%2 == 0:
		return kid, nil, errors.New("an exponent that is even, below 3 or above 31 bits")
	}
	return kid, public, nil
}

// publicKey parses the two members of an RSA key by jwx. Other members are not passed on, because jwx would refuse a usable
// key for a member that it does not accept; this package decides which keys are refused.
func publicKey(entry object) (*rsa.PublicKey, error) {
	for name, most := range map[string]int{"n": maxToken, "e": maxExponent} {
		text, ok := entry.text(name)
		if !ok || len(text) > most {
			return nil, fmt.Errorf("%s missing or malformed", name)
		}
		if _, err := base64url.DecodeString(text); err != nil { // jwx would take other alphabets and padding too
			return nil, fmt.Errorf("%s is not base64url", name)
		}
	}
	reduced, err := json.Marshal(object{"kty": entry["kty"], "n": entry["n"], "e": entry["e"]})
	if err != nil {
		return nil, err
	}
	key, err := jwk.ParseKey(reduced)
	if err != nil {
		return nil, err
	}
	public := new(rsa.PublicKey)
	return public, key.Raw(public)
}

// checkPurpose refuses keys that are not meant to verify RS256 signatures. A key without an algorithm is accepted, because
// RS256 is the only one that is used here.
func checkPurpose(entry object) error {
	if kty, _ := entry.text("kty"); kty != "RSA" {
		return errors.New("kty is not RSA")
	}
	if alg, ok := entry.text("alg"); entry.has("alg") && (!ok || alg != "RS256") {
		return errors.New("alg is not RS256")
	}
	if use, ok := entry.text("use"); entry.has("use") && (!ok || use != "sig") {
		return errors.New("use is not sig")
	}
	if entry.has("key_ops") {
		verifies := false
		operations, _ := entry.texts("key_ops")
		for _, operation := range operations {
			verifies = verifies || operation == "verify"
		}
		if !verifies {
			return errors.New("key_ops has no verify")
		}
	}
	if entry.has("d") {
		return errors.New("a private key, which its owner should replace because it was published")
	}
	return nil
}
