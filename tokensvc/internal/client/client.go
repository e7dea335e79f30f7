// Package client authenticates the clients of the service: their registrations, and the comparison of a submitted
// secret or the verification of a signed assertion.
//
// Registrations are read from a [Store] (packages clientsfile and postgres) and never written. secret.go says which
// hashes they may have and of which cost, compares a secret with them, and spends work where there is none. throttle.go
// and gate.go delay or refuse attempts. The limits of throttle.go are settings (config.go of the service), 16 times as
// high for a source address as for an id; those of gate.go are fixed. An [Authenticator] decides about one attempt, in
// these steps:
//
//	look up ─▶ remembered? ─▶ throttle ─▶ gate ─▶ BCrypt ─▶ remember
//	              │ yes          │ full     │ full    │ no match
//	              ▼              ▼          ▼         ▼
//	           accepted         busy       busy    rejected
//
// A signed assertion (RFC 7523) needs neither memory nor a gate, because verifying it takes a hundredth of the time.
// Only failures are throttled:
//
//	look up ─▶ verify ─▶ not replayed? ─▶ accepted
//	              └────────────┴─ no ──▶ throttle ─▶ rejected, or busy
//
// An id that is not registered passes the same steps with the work of some registered one (costs.go), so that neither
// the answer nor its time shows which ids are registered. A refused assertion costs the same lookup and verifications,
// whether its issuer is a client, trusted or neither.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidings.example/tokensvc/internal/clientkey"
)

// The grant that every registration has, and the authentication methods, in the spelling of RFC 6749 and RFC 7591.
const (
	GrantType   = "client_credentials"
	MethodPost  = "client_secret_post"
	MethodBasic = "client_secret_basic"
	MethodKey   = "private_key_jwt"

	// MethodFederated is the name in logs and metrics for an assertion of another issuer, which is private_key_jwt to
	// the client.
	MethodFederated = "federated_jwt"
)

// Client is one registration. It has at least one secret or key, or is bound to a subject.
type Client struct {
	ID       string             // of the registration
	ClientID string             // what the client sends
	Name     string             // for people
	Scope    string             // the one authority or role of the client
	Secrets  []Secret           // any of them is good; two while a secret is being changed
	Keys     []clientkey.Public // any of them may verify an assertion
	Bound    Binding            // assertions that fit it are those of the client
	Audience []string           // "aud" of its tokens; empty: the ClientID

	Subject string // "sub" of the token being made, where Bound stands for many subjects; empty: the ClientID
}

// Store finds registrations.
type Store interface {
	// ByClientID returns the registration of a client. An id that is not registered, or whose registration cannot be
	// used, is an error that wraps ErrNotFound; any other error means that the store could not be asked.
	ByClientID(ctx context.Context, clientID string) (Client, error)

	// BySubject returns the registration that is bound to the issuer and, by its assertion_subject, to one of the
	// subjects: the first of them that has one. None, or several for the same subject, is an error that wraps
	// ErrNotFound.
	BySubject(ctx context.Context, issuer string, subjects []string) (Client, error)
}

// ErrNotFound reports that there is no usable registration.
var ErrNotFound = errors.New("client is not registered")

// MaxIDLength is the largest length of a client id in bytes.
const MaxIDLength = 255

// Validate returns an error that names the field of a registration that is invalid.
func (c Client) Validate() error {
	switch {
	case c.ClientID == "":
		return errors.New("client_id: must not be empty")
	case len(c.ClientID) > MaxIDLength:
		return fmt.Errorf("client_id: has %d bytes, at most %d are allowed", len(c.ClientID), MaxIDLength)
	case !ValidID(c.ClientID):
		return errors.New("client_id: only printable ASCII characters are allowed (RFC 6749 appendix A.1)")
	case len(c.Secrets) == 0 && len(c.Keys) == 0 && c.Bound.Issuer == "":
		return errors.New("client_secret: must not be empty where the client has neither a key (jwks, public_keys) nor an assertion_issuer")
	case c.Bound.Issuer != "" && c.Bound.Subject == "" && strings.Contains(c.ClientID, anyAccount):
		return fmt.Errorf("client_id: %q has a *, which no subject of an assertion may have: give the client another id, and set assertion_subject", c.ClientID)
	case !validScope(c.Scope):
		return errors.New("scope: must be one value of printable ASCII characters without spaces, quotes and backslashes (RFC 6749 section 3.3)")
	}
	return c.Bound.validate()
}

// ValidID reports whether s has only the characters of a client identifier, VSCHAR of RFC 6749 appendix A.
func ValidID(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// validScope reports whether s is one scope-token of RFC 6749 section 3.3.
func validScope(s string) bool {
	return s != "" && ValidID(s) && !strings.ContainsAny(s, ` "\`)
}

// Method returns the method by which the client should authenticate: the one without a shared secret, if it can use
// that.
func (c Client) Method() string {
	if len(c.Keys) > 0 || c.Bound.Issuer != "" {
		return MethodKey
	}
	return MethodPost
}

// TokenAudience returns the audience of the client's tokens.
func (c Client) TokenAudience() []string {
	if len(c.Audience) == 0 {
		return []string{c.ClientID}
	}
	return c.Audience
}

// ParseSecrets reads the secrets of a registration by a function: none if first is empty, and a second one while it is
// being changed. An error names the field.
func ParseSecrets(first, next string, nextUntil *time.Time, parse func(string) (Secret, error)) ([]Secret, error) {
	switch {
	case first == "" && next != "":
		return nil, errors.New("client_secret_next: needs client_secret")
	case first == "":
		return nil, nil
	}
	secret, err := parse(first)
	if err != nil {
		return nil, fmt.Errorf("client_secret: %w", err)
	}
	if next == "" {
		return []Secret{secret}, nil
	}
	second, err := parse(next)
	if err != nil {
		return nil, fmt.Errorf("client_secret_next: %w", err)
	}
	if nextUntil != nil {
		second.Until = *nextUntil
	}
	return []Secret{secret, second}, nil
}

// ParseKeys reads the keys of a registration: a JWK set, public keys in PEM, or both. Either may be empty. An error
// names the field.
func ParseKeys(jwks, publicKeys []byte) ([]clientkey.Public, error) {
	var keys, more []clientkey.Public
	var err error
	if len(jwks) > 0 {
		if keys, err = clientkey.ParseJWKS(jwks); err != nil {
			return nil, fmt.Errorf("jwks: %w", err)
		}
	}
	if len(publicKeys) > 0 {
		if more, err = clientkey.ParsePEM(publicKeys); err != nil {
			return nil, fmt.Errorf("public_keys: %w", err)
		}
	}
	if keys, err = clientkey.Join(keys, more); err != nil {
		return nil, fmt.Errorf("jwks and public_keys: %w", err)
	}
	return keys, nil
}

// valid returns the secrets whose validity has not ended.
func (c Client) valid(now time.Time) []Secret {
	return slices.DeleteFunc(slices.Clone(c.Secrets), func(s Secret) bool { return !s.Until.IsZero() && !now.Before(s.Until) })
}
