package client

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// The BCrypt costs that are accepted in stored hashes. A lower cost protects too little; a higher one would keep a core
// busy for seconds.
const (
	MinCost = 10
	MaxCost = 14
)

// maxSecret is the number of bytes that BCrypt uses; it ignores further ones.
const maxSecret = 72

const (
	noopPrefix   = "{noop}"
	bcryptPrefix = "{bcrypt}"
	hashLength   = 60
)

// Secret is a client secret as stored: a BCrypt hash, or for demonstrations the plain text. It prints as a
// placeholder.
type Secret struct {
	Until time.Time // end of validity; zero: none

	encoded string // BCrypt hash without prefix, or the plain text
	cost    int    // of the hash; 0 for plain text
}

// ParseSecret reads a stored secret: $2a$, $2b$ or $2y$ hashes with or without the {bcrypt} prefix, or plain text
// after {noop}. It refuses everything that package bcrypt would misread, or refuse only when comparing.
func ParseSecret(stored string) (Secret, error) {
	if plain, ok := strings.CutPrefix(stored, noopPrefix); ok {
		if plain == "" {
			return Secret{}, errors.New("the secret after {noop} must not be empty")
		}
		return Secret{encoded: plain}, nil
	}
	hash := strings.TrimPrefix(stored, bcryptPrefix)
	if strings.HasPrefix(hash, "{") {
		return Secret{}, errors.New("unknown encoding: use {bcrypt} or {noop}")
	}
	if len(hash) != hashLength {
		return Secret{}, fmt.Errorf("a BCrypt hash has %d characters, this has %d; make one with `tokensvc hash-secret`", hashLength, len(hash))
	}
	if v := hash[:4]; v != "$2a$" && v != "$2b$" && v != "$2y$" {
		return Secret{}, errors.New("a BCrypt hash begins with $2a$, $2b$ or $2y$; make one with `tokensvc hash-secret`")
	}
	if hash[6] != '$' || strings.Trim(hash[7:], bcryptAlphabet) != "" || !isDigit(hash[4]) || !isDigit(hash[5]) {
		return Secret{}, errors.New("not a BCrypt hash; make one with `tokensvc hash-secret`")
	}
	cost := int(hash[4]-'0')*10 + int(hash[5]-'0')
	if cost < MinCost || cost > MaxCost {
		return Secret{}, fmt.Errorf("BCrypt cost %d is outside %d..%d", cost, MinCost, MaxCost)
	}
	return Secret{encoded: hash, cost: cost}, nil
}

// bcryptAlphabet is the alphabet of BCrypt's base64.
const bcryptAlphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// HashSecret returns the {bcrypt} form of a secret. It refuses secrets that BCrypt would confuse with others.
func HashSecret(secret string, cost int) (string, error) {
	switch {
	case secret == "":
		return "", errors.New("the secret is empty")
	case len(secret) > maxSecret:
		return "", fmt.Errorf("the secret has %d bytes; BCrypt looks at %d only", len(secret), maxSecret)
	case strings.ContainsRune(secret, 0):
		return "", errors.New("the secret contains a NUL byte, which BCrypt cannot tell from its end")
	case cost < MinCost || cost > MaxCost:
		return "", fmt.Errorf("cost %d is outside %d..%d", cost, MinCost, MaxCost)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), cost)
	return bcryptPrefix + string(hash), err
}

// Plain reports whether the secret is stored as plain text.
func (s Secret) Plain() bool { return s.cost == 0 }

// String hides the secret.
func (s Secret) String() string { return "[secret]" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// matchesPlain compares with a secret that is stored as plain text, in constant time. It is false for a BCrypt hash.
func (s Secret) matchesPlain(secret string) bool {
	return s.Plain() && subtle.ConstantTimeCompare([]byte(s.encoded), []byte(secret)) == 1
}

// matchesHash compares with a stored BCrypt hash, and always takes the time of the hash. BCrypt repeats its key with a
// NUL in between and ignores bytes after the 72nd, so "s\0s" and a longer secret would match. Such secrets, and the
// empty one, are refused after a compare that only takes the time.
func (s Secret) matchesHash(secret string) bool {
	usable := secret != "" && len(secret) <= maxSecret && !strings.ContainsRune(secret, 0)
	if !usable {
		secret = "-"
	}
	return bcrypt.CompareHashAndPassword([]byte(s.encoded), []byte(secret)) == nil && usable
}

// work returns the cost of a compare, in units of a compare with MinCost.
func (s Secret) work() int {
	if s.Plain() {
		return 0
	}
	return 1 << (s.cost - MinCost)
}

// burn does units of work: one compare for each binary digit that is 1, with a hash that matches nothing.
func burn(units int) {
	for cost := MinCost; units > 0; cost, units = cost+1, units>>1 {
		if units&1 == 1 {
			unmatchable(cost).matchesHash("-")
		}
	}
}

// unmatchable returns a well-formed hash that no known secret matches.
func unmatchable(cost int) Secret {
	return Secret{encoded: fmt.Sprintf("$2a$%02d$", cost) + strings.Repeat(".", 53), cost: cost}
}
