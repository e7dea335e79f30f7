package bearer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

const (
	maxKeys    = 100  // in one document
	minKeyBits = 2048 // NIST SP 800-131A, RFC 7518 section 3.3
	maxKeyBits = 8192 // with larger ones, verification takes too much processor time

	maxExponent = 6 // characters of base64url; jwx would silently truncate an exponent of more than 64 bits
)

// keysByID are the keys of a set by kid. Keys of different types, or for different algorithms, may have the same kid
// (RFC 7517 section 4.5).
type keysByID map[string][]*PublicKey

// find returns the key of a token. Among the keys with its kid, one whose JWK names its alg comes first, then the first
// one that can be used with its alg.
func (keys keysByID) find(kid, alg string) (Key, error) {
	var found *PublicKey
	for _, k := range keys[kid] {
		if k.serves(alg) && (found == nil || k.alg == alg && found.alg != alg) {
			found = k
		}
	}
	switch {
	case found != nil:
		return found, nil
	case len(keys[kid]) > 0:
		return nil, errOtherKey
	}
	return nil, ErrUnknownKey
}

// finds reports whether there can be a token whose key this one is.
func (keys keysByID) finds(kid string, key *PublicKey) bool {
	return slices.ContainsFunc(key.by, func(a algorithm) bool {
		found, _ := keys.find(kid, a.name)
		return found == Key(key)
	})
}

func (keys keysByID) count() (n int) {
	for _, list := range keys {
		n += len(list)
	}
	return n
}

// parseKeys returns the keys of a JWK set (RFC 7517 section 5) that verify signatures by one of the algorithms. Other
// entries are skipped and logged. A document without any usable key is an error, because all tokens would be refused
// with it.
func parseKeys(document []byte, algorithms []string, log *slog.Logger) (keysByID, error) {
	entries, err := keyEntries(document)
	if err != nil {
		return nil, err
	}
	keys, kids, parsed := keysByID{}, make([]string, len(entries)), make([]*PublicKey, len(entries))
	skip := func(i int, reason error) {
		log.Warn("entry of the JWK set skipped", "index", i, "kid", kids[i], "reason", reason)
	}
	for i, entry := range entries {
		kid, key, err := ParseKey(entry, algorithms)
		kids[i] = kid
		if err == nil && kid == "" {
			err = errors.New("kid missing")
		}
		if err != nil {
			skip(i, err)
			continue
		}
		parsed[i] = key
		keys[kid] = append(keys[kid], key)
	}
	for i, key := range parsed {
		if key != nil && !keys.finds(kids[i], key) {
			skip(i, errors.New("kid used twice for the same algorithms, another key is taken"))
			keys[kids[i]] = slices.DeleteFunc(keys[kids[i]], func(k *PublicKey) bool { return k == key })
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("JWK set has no usable key among %d entries", len(entries))
	}
	return keys, nil
}

// keepUnchanged replaces keys by equal old ones, so that [Verifier.recall] compares pointers only, and returns how
// many.
func keepUnchanged(keys, old keysByID) (kept int) {
	for kid, list := range keys {
		for n, key := range list {
			if known := slices.IndexFunc(old[kid], key.equal); known >= 0 {
				list[n] = old[kid][known]
				kept++
			}
		}
	}
	return kept
}

// keyEntries returns the entries of a JWK set.
func keyEntries(document []byte) ([]json.RawMessage, error) {
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
	return entries, nil
}

// ParseKey reads one public key of a JWK set, which may be used with those of the algorithms that its type and its
// members allow. The kid is empty if the key has none.
func ParseKey(document []byte, algorithms []string) (kid string, key *PublicKey, err error) {
	entry, err := decodeObject(document)
	if err != nil {
		return "", nil, err
	}
	if entry.has("kid") {
		if kid, _ = entry.text("kid"); !isName(kid, maxKeyID) {
			return "", nil, errors.New("kid malformed")
		}
	}
	if err := checkPurpose(entry); err != nil {
		return kid, nil, err
	}
	alg := ""
	if entry.has("alg") {
		alg, _ = entry.text("alg")
		if algorithms = slices.DeleteFunc(sameAs(alg), func(name string) bool { return !slices.Contains(algorithms, name) }); len(algorithms) == 0 {
			return kid, nil, errors.New("alg is not one that is accepted")
		}
	}
	public, err := publicKey(entry)
	if err != nil {
		return kid, nil, err
	}
	if key, err = NewPublicKey(public, algorithms); err != nil {
		return kid, nil, err
	}
	key.alg = alg
	return kid, key, nil
}

// publicKey parses the members of a key by jwx. Other members are not passed on, because jwx would refuse a usable
// key for a member that it does not accept; this package decides which keys are refused.
func publicKey(entry object) (any, error) {
	kty, _ := entry.text("kty")
	switch kty {
	case "RSA": // RFC 7518 section 6.3.1
		return parseMembers(entry, new(rsa.PublicKey), "n", "e")
	case "EC": // RFC 7518 section 6.2.1
		if crv, _ := entry.text("crv"); crv != "P-256" {
			return nil, errors.New("crv is not P-256")
		}
		return parseMembers(entry, new(ecdsa.PublicKey), "x", "y")
	case "OKP": // RFC 8037 section 2
		if crv, _ := entry.text("crv"); crv != "Ed25519" {
			return nil, errors.New("crv is not Ed25519")
		}
		key, err := parseMembers(entry, new(ed25519.PublicKey), "x")
		if err != nil {
			return nil, err
		}
		return *key, nil
	}
	return nil, errors.New("kty is not RSA, EC or OKP")
}

// parseMembers parses into key the named members, which must be base64url.
func parseMembers[K any](entry object, key *K, names ...string) (*K, error) {
	reduced := object{"kty": entry["kty"]}
	if entry.has("crv") {
		reduced["crv"] = entry["crv"]
	}
	for _, name := range names {
		most := MaxToken
		if name == "e" {
			most = maxExponent
		}
		text, ok := entry.text(name)
		if !ok || len(text) > most {
			return nil, fmt.Errorf("%s missing or malformed", name)
		}
		if _, err := base64url.DecodeString(text); err != nil { // jwx would take other alphabets and padding too
			return nil, fmt.Errorf("%s is not base64url", name)
		}
		reduced[name] = entry[name]
	}
	document, err := json.Marshal(reduced)
	if err != nil {
		return nil, err
	}
	parsed, err := jwk.ParseKey(document)
	if err != nil {
		return nil, err
	}
	return key, parsed.Raw(key)
}

// checkRSA refuses keys that are too weak or too slow.
func checkRSA(key *rsa.PublicKey) error {
	switch n, e := key.N, key.E; {
	case n.BitLen() < minKeyBits || n.BitLen() > maxKeyBits:
		return fmt.Errorf("a key of %d bits, not of %d to %d", n.BitLen(), minKeyBits, maxKeyBits)
	case n.Bit(0) == 0:
		return errors.New("an even modulus")
	case e < 3 || e > math.MaxInt32 || e%2 == 0:
		return errors.New("an exponent that is even, below 3 or above 31 bits")
	}
	return nil
}

// checkPurpose refuses keys that are not meant to verify signatures.
func checkPurpose(entry object) error {
	// SPIFFE marks the keys of its JWT-SVIDs by a use of their own (SPIFFE Trust Domain and Bundle, section 4.2.2).
	if use, _ := entry.text("use"); entry.has("use") && use != "sig" && use != "jwt-svid" {
		return errors.New("use is neither sig nor jwt-svid")
	}
	if entry.has("key_ops") {
		operations, _ := entry.texts("key_ops")
		if !slices.Contains(operations, "verify") {
			return errors.New("key_ops has no verify")
		}
	}
	if entry.has("d") {
		return errors.New("a private key, which its owner should replace because it was published")
	}
	return nil
}
