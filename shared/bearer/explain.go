package bearer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A rule is described for people: what it looks at, and what it asks for.
type rule struct {
	name    string
	members func(*Verifier) []string // of the header or the payload
	wanted  func(*Verifier) string
}

// fixed are members that have the same name for every issuer.
func fixed(names ...string) func(*Verifier) []string {
	return func(*Verifier) []string { return names }
}

// A Finding says what one rule has found in a token. It has no part of the signature.
type Finding struct {
	Rule   string `json:"rule"`
	Found  string `json:"found"`            // what the token says, not trusted: it may have any characters
	Wanted string `json:"wanted"`           // what the settings ask for
	Reason string `json:"reason,omitempty"` // of the refusal, as [Error] has it; empty: the token passes
}

// Explanation is what every rule says about a token. Rules that cannot be applied because an earlier one refuses the
// token are left out.
type Explanation struct {
	Findings []Finding
	Caller   *Caller // nil if the token is refused
	Refusal  *Error  // the first one, which [Issuers.Verify] answers with
}

// add notes a finding.
func (e *Explanation) add(name, found, wanted string, refusal *Error) {
	f := Finding{Rule: name, Found: found, Wanted: wanted}
	if refusal != nil {
		f.Reason = refusal.Reason
		if e.Refusal == nil {
			e.Refusal = refusal
		}
	}
	e.Findings = append(e.Findings, f)
}

// Explain applies the rules of [Issuers.Verify] to a token and goes on after a refusal, as far as that makes sense. It
// neither counts nor remembers the token.
func (s *Issuers) Explain(ctx context.Context, token string) *Explanation {
	e := &Explanation{}
	d, err := Decode(token)
	refusal, _ := errors.AsType[*Error](err)
	e.add("form", fmt.Sprintf("%d bytes", len(token)), fmt.Sprintf("header.payload.signature in base64url, at most %d bytes", MaxToken), refusal)
	if refusal != nil {
		return e
	}
	v := s.byIssuer[d.Issuer]
	if v == nil {
		e.add(ruleIssuer, found(d.parts.claims, "iss"), s.wantedIssuer(), invalidToken("other issuer"))
		if len(s.list) > 1 { // nobody can say which of them is meant
			return e
		}
		v = s.list[0]
	} else {
		e.add(ruleIssuer, found(d.parts.claims, "iss"), s.wantedIssuer(), nil)
	}
	e.addSignature(ctx, v, d.parts)
	caller := e.addClaims(v, d.parts.claims)
	if e.Refusal == nil {
		e.Caller = caller
	}
	return e
}

func (s *Issuers) wantedIssuer() string {
	var all []string
	for _, v := range s.list {
		all = append(all, v.Issuer)
	}
	return oneOf(all)
}

// addSignature applies the rules of the header and, if the header allows it, the rules of the key and the signature.
func (e *Explanation) addSignature(ctx context.Context, v *Verifier, p parts) {
	members, err := decodeObject(p.header)
	if err != nil {
		e.add("header", "not one JSON object", "one JSON object", invalidToken("header damaged"))
		return
	}
	var h header
	good := true
	for _, r := range headerRules {
		refusal := r.check(v, members, &h)
		good = good && refusal == nil
		e.add(r.name, found(members, r.members(v)...), r.wanted(v), refusal)
	}
	if !good {
		return
	}
	key, refusal := v.key(ctx, h.kid, h.alg)
	e.add("key", found(members, "kid", "alg"), "a key that the issuer publishes for both", refusal)
	if refusal != nil {
		return
	}
	if !key.Verify(h.alg, []byte(p.signed), p.signature) {
		refusal = invalidToken("signature wrong")
	}
	e.add("signature", fmt.Sprintf("%d bytes", len(p.signature)), "made with the key", refusal)
}

// addClaims applies the rules of the payload, without the rule of the issuer. Rules that compare times are left out if
// the times cannot be read.
func (e *Explanation) addClaims(v *Verifier, claims object) *Caller {
	caller := &Caller{Issuer: v.Issuer}
	for _, r := range claimRules {
		if r.name == ruleIssuer || r.comparesTimes && caller.Expires.IsZero() {
			continue
		}
		e.add(r.name, found(claims, r.members(v)...), r.wanted(v), r.check(v, claims, caller))
	}
	return caller
}

// times are the claims that stand for dates.
var times = []string{"iat", "nbf", "exp"}

// maxFound is the length at which what a token says is cut.
const maxFound = 200

// found returns members as the token has them. Times are followed by the date that they stand for.
func found(o object, names ...string) string {
	var all []string
	for _, name := range names {
		raw, ok := o[name]
		if !ok {
			continue
		}
		text := string(raw)
		if len(text) > maxFound {
			text = strings.ToValidUTF8(text[:maxFound], "") + "…"
		}
		if at, ok := o.date(name); ok && slices.Contains(times, name) {
			text = at.UTC().Format(time.RFC3339)
		}
		all = append(all, name+" "+text)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// instant formats the present time, moved by the allowance for clocks that differ.
func instant(v *Verifier, by time.Duration) string {
	return fmt.Sprintf("%s (now, and %s for clocks that differ)", v.Now().Add(by).UTC().Format(time.RFC3339), v.Leeway)
}

// oneOf lists texts, quoted. None stands for no rule.
func oneOf(texts []string) string {
	if len(texts) == 0 {
		return "anything"
	}
	quoted := make([]string, len(texts))
	for n, text := range texts {
		quoted[n] = strconv.Quote(text)
	}
	return strings.Join(quoted, " or ")
}
