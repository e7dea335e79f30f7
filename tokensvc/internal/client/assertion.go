package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/clientkey"
)

// Assertions are the settings for authentication by signed assertions (RFC 7523 section 2.2).
type Assertions struct {
	Audience string        // the only aud that is accepted: the issuer of this service
	Keys     bool          // accept assertions that clients sign with keys of their own
	MaxLife  time.Duration // longest time from their iat to their exp
	// Since is when this process began to remember used assertions. Older assertions may have been used before, and are
	// refused. Zero: none is too old.
	Since time.Time

	Federation Federation // verifies assertions of other issuers; nil: none is accepted
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

// Federation verifies the assertions of other issuers.
type Federation interface {
	Trusts(issuer string) bool
	Verify(ctx context.Context, assertion *bearer.Decoded) (subject string, err error) // an error is a *bearer.Error
}

// ErrIssuerUnavailable reports that the keys of an assertion's issuer are not available at present.
var ErrIssuerUnavailable = errors.New("the keys of the assertion's issuer are not available")

// maxAssertion is the most bytes of an assertion: half of what a token request may have.
const maxAssertion = 8 << 10

// AuthenticateAssertion returns the registration of the client that the assertion is for, and the method of
// authentication. Errors are those of [Authenticator.Authenticate], or wrap [ErrIssuerUnavailable]. The client returned
// with an error has the id that the assertion claims, and nothing else.
func (a *Authenticator) AuthenticateAssertion(ctx context.Context, try Assertion) (Client, string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.c.Timeout)
	defer cancel()
	if len(try.Token) > maxAssertion {
		return Client{ClientID: try.ClientID}, MethodKey, a.reject(ctx, try.ClientID, try.Source, rejectedAssertion("too long"))
	}
	decoded, err := bearer.Decode(try.Token)
	if err != nil {
		return Client{ClientID: try.ClientID}, MethodKey, a.reject(ctx, try.ClientID, try.Source, rejectedAssertion(err.Error()))
	}
	method, authenticate := MethodKey, a.byKey
	if f := a.c.Assertions.Federation; f != nil && f.Trusts(decoded.Issuer) {
		method, authenticate = MethodFederated, a.federated
	}
	reg, err := authenticate(ctx, try.ClientID, decoded)
	if method == MethodFederated && decoded.Tried() {
		a.kinds.Saw(decoded.SignatureSize())
	}
	if err == nil {
		return reg, method, nil
	}
	claimed := cmp.Or(try.ClientID, decoded.Subject)
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		a.equalize(decoded, method)
		err = a.reject(ctx, claimed, try.Source, rejected)
	}
	return Client{ClientID: claimed}, method, err
}

// equalize makes every refused assertion cost as much as a signature that is checked by [clientkey.MaxKeys] keys, so
// that the time of the answer does not show which issuers are trusted, or for which algorithms.
func (a *Authenticator) equalize(assertion *bearer.Decoded, method string) {
	switch {
	case !assertion.Tried():
		assertion.Try(a.kinds.StandIn(clientkey.MaxKeys))
	case method == MethodFederated:
		assertion.Try(a.kinds.StandIn(clientkey.MaxKeys - 1)) // an issuer's kid stands for one key
	}
}

// byKey authenticates a client that signs with a key of its own, and so is the issuer of its assertions.
func (a *Authenticator) byKey(ctx context.Context, clientID string, assertion *bearer.Decoded) (Client, error) {
	reg, err := a.lookup(ctx, assertion.Issuer)
	known := err == nil
	if !known && !errors.Is(err, ErrNotFound) {
		return Client{}, err
	}
	if !a.c.Assertions.Keys {
		return Client{}, rejectedAssertion("other issuer")
	}
	err = a.verifyOwn(ctx, clientID, assertion, reg.Keys)
	if _, ok := errors.AsType[*RejectedError](err); ok && !known {
		err = &RejectedError{Reason: ReasonUnknown, Detail: "iss is neither a client nor a trusted issuer"}
	}
	return reg, err
}

// federated authenticates a workload that has an assertion of a trusted issuer. Such assertions are used again by
// design, so their jti is not looked at.
func (a *Authenticator) federated(ctx context.Context, clientID string, assertion *bearer.Decoded) (Client, error) {
	subject, err := a.c.Assertions.Federation.Verify(ctx, assertion)
	if err != nil {
		if refusal, ok := errors.AsType[*bearer.Error](err); ok && refusal.Status == http.StatusServiceUnavailable {
			return Client{}, fmt.Errorf("%w: %w", ErrIssuerUnavailable, err)
		}
		if _, err := a.lookup(ctx, assertion.Issuer); err != nil && !errors.Is(err, ErrNotFound) {
			return Client{}, err // as for an issuer that is not trusted, which costs the same query
		}
		return Client{}, rejectedAssertion(err.Error())
	}
	if strings.Contains(subject, anyAccount) { // it would be taken for the rule that it looks like
		return Client{}, rejectedAssertion("subject with a *")
	}
	reg, err := a.lookup(ctx, cmp.Or(clientID, subject))
	if clientID == "" && errors.Is(err, ErrNotFound) {
		reg, err = a.c.Store.BySubject(ctx, assertion.Issuer, subjects(subject))
		err = storeError(ctx, err)
	}
	if errors.Is(err, ErrNotFound) {
		return Client{}, &RejectedError{Reason: ReasonUnknown, Detail: "no client has this subject, or this client_id"}
	}
	if err != nil {
		return Client{}, err
	}
	ok, many := reg.Bound.covers(reg.ClientID, subject)
	switch {
	case reg.Bound.Issuer != assertion.Issuer:
		return Client{}, rejectedAssertion("client bound to another issuer")
	case !ok:
		return Client{}, rejectedAssertion("client bound to another subject")
	case many:
		return a.oneOfMany(ctx, reg, subject)
	}
	return reg, nil
}

// oneOfMany returns the registration with the subject that its token must name. A subject that is the id of a client is
// refused: the token could be taken for one of that client, which may be bound to another issuer.
func (a *Authenticator) oneOfMany(ctx context.Context, reg Client, subject string) (Client, error) {
	switch _, err := a.lookup(ctx, subject); {
	case err == nil:
		return Client{}, rejectedAssertion("subject registered by itself")
	case !errors.Is(err, ErrNotFound):
		return Client{}, err
	}
	reg.Subject = subject
	return reg, nil
}

// verifyOwn verifies an assertion that a client signs with one of its own keys. It always verifies the signature, with
// stand-ins for keys that are not there.
func (a *Authenticator) verifyOwn(ctx context.Context, clientID string, assertion *bearer.Decoded, keys []clientkey.Public) error {
	issuer := assertion.Issuer
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
	caller, err := verifier.VerifyDecoded(ctx, assertion)
	switch {
	case err != nil:
		return rejectedAssertion(err.Error())
	case caller.Subject != issuer:
		return rejectedAssertion("sub is not iss")
	case clientID != "" && clientID != issuer:
		return rejectedAssertion("client_id is not iss")
	case caller.ID == "":
		return rejectedAssertion("no jti")
	case caller.IssuedAt.Before(a.c.Assertions.Since):
		return rejectedAssertion("older than this process")
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
