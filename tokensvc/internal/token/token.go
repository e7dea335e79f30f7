// Package token issues access tokens: it sets the claims and passes them to a [Signer].
// The header is made with the key (package keyring, key.go).
package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tidings.example/tokensvc/internal/client"
)

// Signer signs a payload, and returns the token and the id of its key.
type Signer interface {
	Sign(ctx context.Context, payload []byte) (token, kid string, err error)
}

// Config has the settings of all tokens. Now may be nil.
type Config struct {
	Issuer     string        // any string; a URL by default
	Lifetime   time.Duration // whole seconds
	ScopeClaim bool          // put the scope claim into every token, not only if the request has a scope
	Signer     Signer
	Now        func() time.Time
}

// Issuer issues tokens.
type Issuer struct{ c Config }

// Claims is the payload of a token (RFC 7519 section 4.1).
type Claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  Audience `json:"aud"`
	Expires   int64    `json:"exp"`
	NotBefore int64    `json:"nbf"`
	IssuedAt  int64    `json:"iat"`
	ID        string   `json:"jti"`
	Scope     []string `json:"scope,omitempty"`
	ClientID  string   `json:"client_id,omitempty"` // only where it is not the subject (RFC 9068 section 2.2)
}

// Audience is encoded as a string if it has one member. RFC 7519 section 4.1.3 allows both forms.
type Audience []string

// MarshalJSON writes a string or a list of strings.
func (a Audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// Token is an issued token, with its claims and the id of its key.
type Token struct {
	Value  string
	KeyID  string
	Claims Claims
}

// ExpiresIn is the lifetime in seconds, taken from the claims so that it never contradicts them.
func (t Token) ExpiresIn() int64 { return t.Claims.Expires - t.Claims.IssuedAt }

// New returns an Issuer.
func New(c Config) (*Issuer, error) {
	switch {
	case c.Issuer == "":
		return nil, errors.New("token: Config.Issuer is required")
	case c.Lifetime < time.Second || c.Lifetime%time.Second != 0:
		return nil, fmt.Errorf("token: Config.Lifetime is %v; it must be whole seconds, at least one", c.Lifetime)
	case c.Signer == nil:
		return nil, errors.New("token: Config.Signer is required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Issuer{c: c}, nil
}

// Issue issues a token to an authenticated client. The token has the scope claim if withScope or Config.ScopeClaim is
// set.
func (i *Issuer) Issue(ctx context.Context, cl client.Client, withScope bool) (Token, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return Token{}, fmt.Errorf("token id: %w", err)
	}
	now := i.c.Now().Unix()
	claims := Claims{
		Issuer: i.c.Issuer, Subject: cl.ClientID, Audience: cl.TokenAudience(),
		Expires: now + int64(i.c.Lifetime/time.Second), NotBefore: now, IssuedAt: now, ID: id.String(),
	}
	if cl.Subject != "" {
		claims.Subject, claims.ClientID = cl.Subject, cl.ClientID
	}
	if withScope || i.c.ScopeClaim {
		claims.Scope = []string{cl.Scope}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return Token{}, fmt.Errorf("encode claims: %w", err)
	}
	value, kid, err := i.c.Signer.Sign(ctx, payload)
	if err != nil {
		return Token{}, err
	}
	return Token{Value: value, KeyID: kid, Claims: claims}, nil
}
