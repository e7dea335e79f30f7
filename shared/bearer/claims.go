package bearer

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// checkClaims checks the payload of a token whose signature is valid. A claim of the wrong type is refused even if the
// claim is optional, because the issuer and this package would interpret it differently.
func (v *Verifier) checkClaims(claims object) (*Caller, *Error) {
	caller := &Caller{}
	for _, check := range []func(object, *Caller) *Error{v.checkIssuer, v.checkAudience, v.checkTimes, v.checkNames, v.checkScope, v.keep} {
		if refusal := check(claims, caller); refusal != nil {
			return nil, refusal
		}
	}
	// A token that is bound to a key of its sender (RFC 7800) needs a proof of possession, which is not supported here.
	if claims.has("cnf") {
		return nil, invalidToken("sender-constrained")
	}
	return caller, nil
}

func (v *Verifier) checkIssuer(claims object, caller *Caller) *Error {
	issuer, ok := claims.text("iss")
	if !ok || issuer != v.Issuer {
		return invalidToken("other issuer")
	}
	caller.Issuer = v.Issuer
	return nil
}

func (v *Verifier) checkAudience(claims object, caller *Caller) *Error {
	if !claims.has("aud") {
		if len(v.Audience) > 0 {
			return invalidToken("other audience")
		}
		return nil
	}
	audience, ok := claims.textOrTexts("aud")
	if !ok {
		return invalidToken("claim malformed")
	}
	meant := func(name string) bool { return slices.Contains(v.Audience, name) }
	if len(v.Audience) > 0 && !slices.ContainsFunc(audience, meant) {
		return invalidToken("other audience")
	}
	if v.SoleAudience && len(audience) != 1 {
		return invalidToken("several audiences")
	}
	caller.Audience = audience
	return nil
}

func (v *Verifier) checkTimes(claims object, caller *Caller) *Error {
	expires, expOK := claims.date("exp")
	issued, iatOK := claims.date("iat")
	notBefore, nbfOK := claims.date("nbf")
	if !expOK || !iatOK || !nbfOK && claims.has("nbf") {
		return invalidToken("time missing or malformed")
	}
	latest := v.Now().Add(v.Leeway)
	switch {
	case v.expired(expires):
		return invalidToken("expired")
	case issued.After(latest) || nbfOK && notBefore.After(latest):
		return invalidToken("not valid yet")
	case !expires.After(issued) || nbfOK && notBefore.After(expires):
		return invalidToken("times contradict each other")
	case expires.Sub(issued) > v.MaxLife:
		return invalidToken("lives too long")
	}
	caller.IssuedAt, caller.Expires = issued, expires
	return nil
}

// expired reports whether a token has expired: the current time must be before exp (RFC 7519 section 4.1.4).
func (v *Verifier) expired(expires time.Time) bool {
	return !v.Now().Before(expires.Add(v.Leeway))
}

// checkNames checks the subject, the client id and jti. They are bounded because they are used in logs, messages and rules.
func (v *Verifier) checkNames(claims object, caller *Caller) *Error {
	subject, ok := claims.text("sub")
	if !ok || !isName(subject) {
		return invalidToken("sub missing or malformed")
	}
	caller.Subject, caller.ClientID = subject, subject
	if claims.has(v.ClientIDClaim) {
		if caller.ClientID, ok = claims.text(v.ClientIDClaim); !ok || !isName(caller.ClientID) {
			return invalidToken("claim malformed")
		}
	}
	if claims.has("jti") {
		if caller.ID, ok = claims.text("jti"); !ok || !isName(caller.ID) {
			return invalidToken("claim malformed")
		}
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkScope reads the scopes: a string separated by spaces (RFC 8693 section 4.2) or, as some issuers write it, a list.
func (v *Verifier) checkScope(claims object, caller *Caller) *Error {
	if !claims.has(v.ScopeClaim) {
		return nil
	}
	if scope, ok := claims.text(v.ScopeClaim); ok {
		caller.Scopes = strings.Fields(scope)
		return nil
	}
	scopes, ok := claims.texts(v.ScopeClaim)
	if !ok {
		return invalidToken("claim malformed")
	}
	caller.Scopes = scopes
	return nil
}

// keep copies the claims that Config.KeepClaims names to the caller.
func (v *Verifier) keep(claims object, caller *Caller) *Error {
	for _, name := range v.KeepClaims {
		if !claims.has(name) {
			continue
		}
		values, ok := claims.textOrTexts(name)
		if !ok {
			return invalidToken("claim malformed")
		}
		if caller.Claims == nil {
			caller.Claims = map[string][]string{}
		}
		caller.Claims[name] = values
	}
	return nil
}
