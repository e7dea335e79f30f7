package bearer

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A claimRule checks some claims, and may note in the caller what they say.
type claimRule struct {
	rule
	check         func(*Verifier, object, *Caller) *Error
	comparesTimes bool // the rule compares times that checkDates has read
}

// claimRules are applied in this order.
var claimRules = []claimRule{
	{rule: rule{ruleIssuer, fixed("iss"), func(v *Verifier) string { return strconv.Quote(v.Issuer) }}, check: (*Verifier).checkIssuer},
	{rule: rule{"audience", fixed("aud"), wantedAudience}, check: (*Verifier).checkAudience},
	{rule: rule{"times", fixed(times...), func(*Verifier) string { return "iat and exp, in seconds since 1970" }}, check: (*Verifier).checkDates},
	{rule: rule{"expiry", fixed("exp"), func(v *Verifier) string { return "exp after " + instant(v, -v.Leeway) }}, check: (*Verifier).checkExpiry, comparesTimes: true},
	{rule: rule{"not before", fixed("nbf", "iat"), func(v *Verifier) string { return "nbf and iat not after " + instant(v, v.Leeway) }}, check: (*Verifier).checkNotBefore, comparesTimes: true},
	{rule: rule{"order", fixed(times...), func(*Verifier) string { return "exp after iat, and not before nbf" }}, check: (*Verifier).checkOrder, comparesTimes: true},
	{rule: rule{"life", fixed("iat", "exp"), func(v *Verifier) string { return "exp at most " + v.MaxLife.String() + " after iat" }}, check: (*Verifier).checkLife, comparesTimes: true},
	{rule: rule{"subject", fixed("sub"), func(*Verifier) string { return "a name" }}, check: (*Verifier).checkSubject},
	{rule: rule{"client and id", func(v *Verifier) []string { return []string{v.ClientIDClaim, "jti"} }, func(v *Verifier) string { return "names in " + v.ClientIDClaim + " and jti, or none" }}, check: (*Verifier).checkNames},
	{rule: rule{"scope", func(v *Verifier) []string { return []string{v.ScopeClaim} }, func(v *Verifier) string { return "a text or a list of texts in " + v.ScopeClaim + ", or none" }}, check: (*Verifier).checkScope},
	{rule: rule{"other claims", func(v *Verifier) []string { return v.KeepClaims }, func(v *Verifier) string { return "texts, lists of texts, null or none" }}, check: (*Verifier).keep},
	{rule: rule{"confirmation", fixed("cnf"), func(*Verifier) string { return "none" }}, check: checkConfirmation},
}

const ruleIssuer = "issuer"

func wantedAudience(v *Verifier) string {
	if v.SoleAudience {
		return "only " + oneOf(v.Audience)
	}
	return oneOf(v.Audience)
}

// checkClaims checks the payload of a token whose signature is valid. A claim of the wrong type is refused even if the
// claim is optional, because the issuer and this package would interpret it differently.
func (v *Verifier) checkClaims(claims object) (*Caller, *Error) {
	caller := &Caller{}
	for _, r := range claimRules {
		if refusal := r.check(v, claims, caller); refusal != nil {
			return nil, refusal
		}
	}
	return caller, nil
}

// checkConfirmation refuses a token that is bound to a key of its sender (RFC 7800): it needs a proof of possession,
// which is not supported here.
func checkConfirmation(_ *Verifier, claims object, _ *Caller) *Error {
	if claims.has("cnf") {
		return invalidToken("sender-constrained")
	}
	return nil
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

func (v *Verifier) checkDates(claims object, caller *Caller) *Error {
	expires, expOK := claims.date("exp")
	issued, iatOK := claims.date("iat")
	_, nbfOK := claims.date("nbf")
	if !expOK || !iatOK || !nbfOK && claims.has("nbf") {
		return invalidToken("time missing or malformed")
	}
	caller.IssuedAt, caller.Expires = issued, expires
	return nil
}

func (v *Verifier) checkExpiry(_ object, caller *Caller) *Error {
	if v.expired(caller.Expires) {
		return invalidToken("expired")
	}
	return nil
}

func (v *Verifier) checkNotBefore(claims object, caller *Caller) *Error {
	latest := v.Now().Add(v.Leeway)
	if notBefore, ok := claims.date("nbf"); caller.IssuedAt.After(latest) || ok && notBefore.After(latest) {
		return invalidToken("not valid yet")
	}
	return nil
}

func (v *Verifier) checkOrder(claims object, caller *Caller) *Error {
	if notBefore, ok := claims.date("nbf"); !caller.Expires.After(caller.IssuedAt) || ok && notBefore.After(caller.Expires) {
		return invalidToken("times contradict each other")
	}
	return nil
}

func (v *Verifier) checkLife(_ object, caller *Caller) *Error {
	if caller.Expires.Sub(caller.IssuedAt) > v.MaxLife {
		return invalidToken("lives too long")
	}
	return nil
}

// expired reports whether a token has expired: the current time must be before exp (RFC 7519 section 4.1.4).
func (v *Verifier) expired(expires time.Time) bool {
	return !v.Now().Before(expires.Add(v.Leeway))
}

// checkSubject checks the subject, which is the client too unless [Verifier.checkNames] finds another.
func (v *Verifier) checkSubject(claims object, caller *Caller) *Error {
	subject, ok := claims.text("sub")
	if !ok || !isName(subject, maxName) {
		return invalidToken("sub missing or malformed")
	}
	caller.Subject, caller.ClientID = subject, subject
	return nil
}

// checkNames checks the client id and jti. Names are bounded because they are used in logs, messages and rules.
func (v *Verifier) checkNames(claims object, caller *Caller) *Error {
	var ok bool
	if claims.given(v.ClientIDClaim) {
		if caller.ClientID, ok = claims.text(v.ClientIDClaim); !ok || !isName(caller.ClientID, maxName) {
			return invalidToken("claim malformed")
		}
	}
	if claims.has("jti") {
		if caller.ID, ok = claims.text("jti"); !ok || !isName(caller.ID, maxName) {
			return invalidToken("claim malformed")
		}
	}
	return nil
}

func isName(s string, longest int) bool {
	return s != "" && len(s) <= longest && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkScope reads the scopes: a string separated by spaces (RFC 8693 section 4.2) or, as some issuers write it, a
// list.
func (v *Verifier) checkScope(claims object, caller *Caller) *Error {
	if !claims.given(v.ScopeClaim) {
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
		if !claims.given(name) {
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
