package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/bearer"
	"tidings.example/shared/printable"
)

// TokenRequest is a token, and what its client wants to do.
type TokenRequest struct {
	Token     string `json:"token"`
	Verb      string `json:"verb,omitempty"` // of the policy; empty: none in particular
	Namespace string `json:"namespace"`      // empty: all of them
	// Cluster whose events it is about, empty for those without one; nil: any.
	Cluster *string `json:"cluster,omitempty"`
}

// TokenReport says what every rule has found. It has no part of the token but its header and claims, and never the
// signature.
type TokenReport struct {
	Accepted bool             `json:"accepted"`
	Findings []bearer.Finding `json:"findings"`
	Reason   string           `json:"reason,omitempty"` // of the refusal: the first one, as the log of the service has it
	Fix      string           `json:"fix,omitempty"`
}

// TokenChecker checks tokens by the rules that serve requests: those of [bearer.Issuers] and of the policy.
type TokenChecker struct {
	Explain func(ctx context.Context, token string) *bearer.Explanation // of the issuers
	Policy  func() *policy.Policy
}

// ServeHTTP checks the token in the body, a [TokenRequest], and answers with a [TokenReport].
func (c *TokenChecker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q TokenRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, "the body is no request to check a token: "+err.Error(), http.StatusBadRequest)
		return
	}
	report, err := c.Check(r.Context(), q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // a client that has left needs no answer
}

// Check reports which rule refuses a token: one of its issuers', which Explain finds, or the policy. An error is a
// mistake in the request.
func (c *TokenChecker) Check(ctx context.Context, r TokenRequest) (*TokenReport, error) {
	var verb policy.Verb
	if r.Verb != "" {
		var err error
		if verb, err = policy.ParseVerb(r.Verb); err != nil {
			return nil, err
		}
	}
	e := c.Explain(ctx, r.Token)
	report := &TokenReport{Accepted: e.Refusal == nil, Findings: e.Findings}
	if e.Refusal != nil {
		report.Reason, report.Fix = e.Refusal.Reason, fixes[e.Refusal.Reason]
		return report, nil
	}
	report.decide(c.Policy(), e.Caller, verb, r)
	return report, nil
}

// Await checks a token as soon as the keys of its issuer are there, or after some time without them.
func (c *TokenChecker) Await(ctx context.Context, r TokenRequest, wait time.Duration) (*TokenReport, error) {
	for until := time.Now().Add(wait); ; {
		report, err := c.Check(ctx, r)
		if err != nil || !report.unavailable() || time.Now().After(until) {
			return report, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askKeysEvery):
		}
	}
}

// askKeysEvery is the time between two looks for the keys of an issuer.
const askKeysEvery = 50 * time.Millisecond

// decide adds the finding of the policy.
func (r *TokenReport) decide(p *policy.Policy, caller *bearer.Caller, verb policy.Verb, q TokenRequest) {
	f := bearer.Finding{Rule: rulePolicy, Found: "client " + caller.ClientID}
	if verb == 0 {
		var may []string
		for _, rule := range p.Rules(caller) {
			right := fmt.Sprintf("%s in %s", strings.Join(rule.Verbs.Names(), ","), strings.Join(rule.Namespaces, ","))
			if !rule.Clusters.All() {
				right += fmt.Sprintf(" of clusters %q", []string(rule.Clusters))
			}
			may = append(may, right)
		}
		f.Wanted = "it may " + cmp.Or(strings.Join(may, "; "), "do nothing")
	} else {
		d := p.Decide(caller, verb, q.Namespace).Of(q.Cluster)
		f.Wanted = d.Rule
		if !d.Allowed {
			r.Accepted, r.Reason, f.Reason = false, reasonPolicy, reasonPolicy
			r.Fix = fmt.Sprintf("bind a role that may %s in %s to this client in --policy-file, or give it a scope that has this right",
				q.Verb, cmp.Or(q.Namespace, "all namespaces"))
		}
	}
	r.Findings = append(r.Findings, f)
}

const (
	rulePolicy   = "policy"
	reasonPolicy = "not allowed by the policy"
)

// unavailable reports that the key of the token cannot be had at present.
func (r *TokenReport) unavailable() bool {
	return slices.ContainsFunc(r.Findings, func(f bearer.Finding) bool { return f.Reason == bearer.ReasonUnavailable })
}

// fixes say what to do, by the reason of a refusal.
var fixes = map[string]string{
	"too long":         "pass one token, without anything else",
	"not three parts":  "pass the whole token: three parts with dots between them, without quotes or the word Bearer",
	"not base64url":    "pass the token as the issuer gave it, without line breaks; this one was changed or cut",
	"payload damaged":  "fetch another token; the claims of this one are not exactly one JSON object",
	"header damaged":   "fetch another token; the header of this one is not exactly one JSON object",
	"other issuer":     "set --issuer to the iss claim to the letter, a slash at the end counts; or add the issuer to --issuers-file; or fetch the token from an accepted issuer",
	"alg not allowed":  "let the issuer sign with an algorithm that is wanted, or name the algorithm for this issuer in --issuers-file",
	"header extension": "let the issuer leave out the header members crit, b64, zip and cty",

	"typ of another token":        "send the access token, not the ID token or another one",
	"kid missing or malformed":    "let the issuer name its key in the header of the token, in kid",
	"key unknown":                 "fetch another token: the issuer has no key of this kid any more, or another issuer of the same name has signed the token; see --jwks-url",
	bearer.ReasonUnavailable:      "reach the issuer from this machine; see --jwks-url, --issuer-ca-file and --jwks-allow-http-host, and the log",
	"signature wrong":             "fetch another token: this one was changed, or signed by another key of the same kid",
	"other audience":              "set the audience of the client at the issuer to one that is wanted, or add the aud claim to --audience",
	"claim malformed":             "let the issuer write this claim as wanted; the service never guesses",
	"time missing or malformed":   "let the issuer write iat and exp, and nbf if it wants, as numbers of seconds since 1970",
	"expired":                     "fetch another token before this one expires; if it is new, the clocks differ: set the clock, or raise --clock-skew",
	"not valid yet":               "wait, or set the clocks of this machine and of the issuer; --clock-skew allows for a small difference",
	"times contradict each other": "let the issuer write times in which exp is after iat and not before nbf",
	"lives too long":              "let the issuer give shorter tokens, or allow longer ones by maxTokenLife in --issuers-file",
	"sub missing or malformed":    "let the issuer name the client in sub",
	"sender-constrained":          "fetch a plain bearer token: those that are bound to a key of the sender (cnf) are not supported",
	"several audiences":           "fetch a token for one audience only",
}

// Print writes the report as a table with the verdict below.
func (r *TokenReport) Print(w io.Writer) error {
	const widthRule, widthResult = 15, 9
	for _, f := range r.Findings {
		result, below := "ok", ""
		switch {
		case f.Reason != "":
			result, below = "REFUSED", "wanted: "+printable.OneLine(f.Wanted)
		case f.Rule == rulePolicy:
			below = printable.OneLine(f.Wanted)
		}
		line := terminal.Pad(f.Rule, widthRule) + terminal.Pad(result, widthResult) + printable.OneLine(f.Found)
		if below != "" {
			line += "\n" + strings.Repeat(" ", widthRule+widthResult) + below
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	verdict := "accepted"
	if !r.Accepted {
		verdict = fmt.Sprintf("refused: %s\n  %s", r.Reason, r.Fix)
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
