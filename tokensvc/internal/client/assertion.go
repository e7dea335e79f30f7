package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/clientkey"
)

// Assertions are the settings for authentication by signed assertions (RFC 7523 section 2.2).
type Assertions struct {
	Audience string        // the only aud that is accepted: the issuer of this service
	Keys     bool          // accept assertions that clients sign with keys of their own
	MaxLife  time.Duration // longest time from iat to exp
}

// assertionSkew is the allowance for clients whose clocks differ.
const assertionSkew = 10 * time.Second

// assertionType is the typ of client assertions (draft-ietf-oauth-rfc7523bis section 4); JWT and none are accepted too.
const assertionType = "client-authentication+jwt"

// Assertion is an attempt to authenticate by a signed assertion.
type Assertion struct {
	ClientID string // if the client sent it beside the assertion
	Token    string
	Source   string // address whose failures are counted; empty: not counted
}

// AuthenticateAssertion returns the registration of the client that signed the assertion. Errors are those of
// [Authenticator.Authenticate]. The client returned with an error has the id that the assertion claims, and nothing else.
func (a *Authenticator) AuthenticateAssertion(ctx context.Context, try Assertion) (Client, error) {
	ctx, cancel := context.WithTimeout(ctx, a.c.Timeout)
	defer cancel()
	issuer, subject, err := bearer.Unverified(try.Token)
	if err != nil {
		return Client{ClientID: try.ClientID}, a.reject(ctx, try.ClientID, try.Source, rejectedAssertion(err.Error()))
	}
	if !a.c.Assertions.Keys {
		return Client{ClientID: subject}, a.reject(ctx, issuer, try.Source, rejectedAssertion("not enabled"))
	}
	claimed := Client{ClientID: subject}
	reg, err := a.lookup(ctx, issuer)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return claimed, err
	}
	known := err == nil
	if err := a.verifyOwn(ctx, try, issuer, reg.Keys); err != nil {
		var rejected *RejectedError
		switch {
		case !errors.As(err, &rejected):
			return claimed, err
		case !known:
			rejected = &RejectedError{Reason: ReasonUnknown}
		}
		return claimed, a.reject(ctx, issuer, try.Source, rejected)
	}
	return reg, nil
}

// verifyOwn verifies an assertion that a client signs with one of its own keys. It always verifies the signature, with
// stand-ins for keys that are not there.
func (a *Authenticator) verifyOwn(ctx context.Context, try Assertion, issuer string, keys []clientkey.Public) error {
	if issuer == "" {
		return rejectedAssertion("no iss")
	}
	set := a.kinds.Set(keys)
	verifier, err := bearer.New(bearer.Config{
		Issuer: issuer, Audience: []string{a.c.Assertions.Audience}, SoleAudience: true, Keys: set,
		Algorithms: bearer.Algorithms(), Types: []string{assertionType, "application/" + assertionType}, AnyKeyID: true,
		Leeway: assertionSkew, MaxLife: a.c.Assertions.MaxLife, CacheBytes: -1, Now: a.c.Now,
	})
	if err != nil {
		return err
	}
	caller, err := verifier.Verify(ctx, try.Token)
	switch {
	case err != nil:
		return rejectedAssertion(err.Error())
	case caller.Subject != issuer:
		return rejectedAssertion("sub is not iss")
	case try.ClientID != "" && try.ClientID != issuer:
		return rejectedAssertion("client_id is not iss")
	case caller.ID == "":
		return rejectedAssertion("no jti")
	}
	switch a.replays.add(issuer, caller.ID, caller.Expires.Add(assertionSkew), a.c.Now()) {
	case replayed:
		return rejectedAssertion("replayed")
	case noRoom:
		return &BusyError{Reason: "replays_full", RetryAfter: time.Minute}
	}
	return nil
}

func rejectedAssertion(detail string) *RejectedError {
	return &RejectedError{Reason: ReasonAssertion, Detail: detail}
}

// reject counts a failure for the client id and the source, and returns it when the throttle lets it pass.
func (a *Authenticator) reject(ctx context.Context, id, source string, rejected *RejectedError) error {
	byID, err := a.ids.begin(ctx, id)
	if err != nil {
		return err
	}
	defer byID.end(false)
	bySource, err := a.beginSource(ctx, source)
	if err != nil {
		return err
	}
	bySource.end(false)
	return rejected
}

// lookup returns a registration. An error wraps [ErrNotFound] or [ErrUnavailable], or is that of ctx.
func (a *Authenticator) lookup(ctx context.Context, clientID string) (Client, error) {
	reg, err := a.c.Store.ByClientID(ctx, clientID)
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		return reg, err
	case ctx.Err() != nil:
		return Client{}, ctx.Err() // not an error of the store
	}
	return Client{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
}
