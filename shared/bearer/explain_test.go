package bearer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/bearer"
)

// checkExplained checks that an explanation has the reason and the caller that verifying has, and no part of the
// signature.
func checkExplained(t *testing.T, rows []row) {
	t.Helper()
	issuers := must(bearer.NewIssuers(newVerifier(t, nil)))
	for _, r := range rows {
		caller, err := issuers.Verify(t.Context(), r.token)
		var refusal *bearer.Error
		errors.As(err, &refusal)
		e := issuers.Explain(t.Context(), r.token)
		if diff := cmp.Diff(refusal, e.Refusal); diff != "" {
			t.Errorf("%s: (-verified +explained):\n%s", r.name, diff)
		}
		if caller != nil {
			want := *caller
			want.KeyID, want.Algorithm = "", "" // remarks of the key
			if diff := cmp.Diff(&want, e.Caller); diff != "" {
				t.Errorf("%s: (-verified +explained):\n%s", r.name, diff)
			}
		}
		text := fmt.Sprint(e.Findings)
		if _, signature, ok := strings.Cut(strings.TrimPrefix(r.token, "."), "."); ok && len(signature) > 100 && strings.Contains(text, signature[len(signature)-40:]) {
			t.Errorf("%s: the explanation has the signature", r.name)
		}
	}
}

// TestExplain: all rules that refuse a token are found, with what they want.
func TestExplain(t *testing.T) {
	t.Parallel()
	second := newVerifier(t, func(c *bearer.Config) { c.Issuer = otherIssuer })
	one, two := must(bearer.NewIssuers(newVerifier(t, nil))), must(bearer.NewIssuers(newVerifier(t, nil), second))
	bad := token(kid(`"key-9"`), claims("iss", `"`+issuer+`/"`, "aud", `"x"`, "exp", fmt.Sprint(now-20), "iat", fmt.Sprint(now-7000), "nbf", ""))
	type refused struct{ Rule, Found, Wanted, Reason string }
	var got []refused
	for _, f := range one.Explain(t.Context(), bad).Findings {
		if f.Reason != "" {
			got = append(got, refused(f))
		}
	}
	want := []refused{
		{"issuer", `iss "https://issuer.example/"`, `"https://issuer.example"`, "other issuer"},
		{"key", `kid "key-9", alg "RS256"`, "a key that the issuer publishes for both", "key unknown"},
		{"audience", `aud "x"`, `"eventsvc" or "other-name"`, "other audience"},
		{"expiry", "exp 2027-01-15T07:59:40Z", "exp after 2027-01-15T07:59:50Z (now, and 10s for clocks that differ)", "expired"},
		{"life", "iat 2027-01-15T06:03:20Z, exp 2027-01-15T07:59:40Z", "exp at most 1h0m0s after iat", "lives too long"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Of two issuers, nobody can say which one is meant.
	e := two.Explain(t.Context(), bad)
	if n := len(e.Findings); n != 2 || e.Findings[1].Wanted != `"https://issuer.example" or "`+otherIssuer+`"` || e.Caller != nil {
		t.Errorf("%+v", e)
	}
}
