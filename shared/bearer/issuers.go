package bearer

import (
	"context"
	"errors"
	"fmt"
)

// Issuers verifies the tokens of several issuers. Every issuer has a [Verifier] with keys of its own, so no issuer can
// sign tokens in the name of another.
type Issuers struct {
	list     []*Verifier
	byIssuer map[string]*Verifier
	outcomes outcomes
}

// NewIssuers combines verifiers. Each must have another issuer.
func NewIssuers(verifiers ...*Verifier) (*Issuers, error) {
	if len(verifiers) == 0 {
		return nil, errors.New("bearer: no issuer configured")
	}
	s := &Issuers{list: verifiers, byIssuer: map[string]*Verifier{}, outcomes: verifiers[0].outcomes}
	for _, v := range verifiers {
		if s.byIssuer[v.Issuer] != nil {
			return nil, fmt.Errorf("bearer: issuer %q is configured twice", v.Issuer)
		}
		s.byIssuer[v.Issuer] = v
	}
	return s, nil
}

// Verify returns the caller that sent the token, or an *[Error].
func (s *Issuers) Verify(ctx context.Context, token string) (*Caller, error) {
	return s.outcomes.counted(s.verify(ctx, token))
}

func (s *Issuers) verify(ctx context.Context, token string) outcome {
	if len(token) > MaxToken {
		return refuse(invalidToken("too long"))
	}
	sum := sumOf(token)
	for _, v := range s.list {
		if o, ok := v.recall(ctx, sum); ok {
			return o
		}
	}
	p, refusal := split(token)
	if refusal != nil {
		return refuse(refusal)
	}
	// The issuer is read before the signature is checked, only to choose the keys that check it.
	var err error
	if p.claims, err = decodeObject(p.payload); err != nil {
		return refuse(invalidToken("payload damaged"))
	}
	issuer, _ := p.claims.text("iss")
	v := s.byIssuer[issuer]
	if v == nil {
		return refuse(invalidToken("other issuer"))
	}
	return v.verifyNew(ctx, &p, sum)
}

// Withdrawn is [Verifier.Withdrawn] of the caller's issuer. It is true if that issuer is not configured.
func (s *Issuers) Withdrawn(ctx context.Context, c *Caller) bool {
	v := s.byIssuer[c.Issuer]
	return v == nil || v.Withdrawn(ctx, c)
}
