// Package client authenticates the clients of the service: their registrations, their stored secrets, and the comparison
// of a submitted secret.
//
// Registrations are read from a [Store] (packages memory and postgres) and never written. An [Authenticator] decides about
// one attempt, in these steps:
//
//	look up ─▶ remembered? ─▶ throttle ─▶ gate ─▶ BCrypt ─▶ remember
//	              │ yes          │ full     │ full    │ no match
//	              ▼              ▼          ▼         ▼
//	           accepted         busy       busy    rejected
//
// An id that is not registered passes the same steps with the same work as a registered one, so that neither the answer nor
// its time shows which ids are registered.
package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The grant and the authentication method that every registration has, in the spelling of RFC 6749 and RFC 7591.
const (
	GrantType  = "client_credentials"
	AuthMethod = "client_secret_post"
)

// Client is one registration.
type Client struct {
	ID       string   // of the registration
	ClientID string   // what the client sends
	Name     string   // for people
	Scope    string   // the one authority or role of the client
	Secrets  []Secret // any of them is good; two while a secret is being changed
	Audience []string // "aud" of its tokens; empty: the ClientID
}

// Store finds registrations.
type Store interface {
	// ByClientID returns the registration of a client. An id that is not registered, or whose registration cannot be
	// used, is an error that wraps ErrNotFound; any other error means that the store could not be asked.
	ByClientID(ctx context.Context, clientID string) (Client, error)
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
	case !ValidScope(c.Scope):
		return errors.New("scope: must be one value of printable ASCII characters without spaces, quotes and backslashes (RFC 6749 section 3.3)")
	case len(c.Secrets) == 0:
		return errors.New("client_secret: must not be empty")
	}
	return nil
}

// ValidID reports whether s has only the characters of a client identifier, VSCHAR of RFC 6749 appendix A.
func ValidID(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// ValidScope reports whether s is one scope-token of RFC 6749 section 3.3.
func ValidScope(s string) bool {
	for i := range len(s) {
		if s[i] <= 0x20 || s[i] > 0x7e || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return s != ""
}

// valid returns the secrets whose validity has not ended.
func (c Client) valid(now time.Time) []Secret {
	live := c.Secrets[:0:0]
	for _, s := range c.Secrets {
		if s.Until.IsZero() || now.Before(s.Until) {
			live = append(live, s)
		}
	}
	return live
}
