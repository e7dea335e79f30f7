package admin_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
)

// checkedPolicy lets a client of these tests read one namespace.
const checkedPolicy = `
roles:
  - name: reader
    rules: [{verbs: [get, list], namespaces: [shop]}, {verbs: [create], namespaces: [mail], clusters: [east]}]
bindings: [{role: reader, subjects: [{clientID: demo}]}]`

// TestTokenChecker: behind the rules of the issuers the policy decides, and each refusal says what to do.
func TestTokenChecker(t *testing.T) {
	t.Parallel()
	const issuer = "https://issuer.example"
	rules, err := policy.Parse([]byte(checkedPolicy), policy.Options{Issuers: []string{issuer}, Default: issuer})
	if err != nil {
		t.Fatal(err)
	}
	checker := &admin.TokenChecker{
		Explain: func(_ context.Context, token string) *bearer.Explanation {
			if token != "good" {
				return &bearer.Explanation{
					Findings: []bearer.Finding{{Rule: "key", Found: "kid \"k9\"\nx", Wanted: "a key", Reason: token}},
					Refusal:  &bearer.Error{Reason: token, Status: http.StatusUnauthorized},
				}
			}
			return &bearer.Explanation{Caller: &bearer.Caller{Issuer: issuer, Subject: "demo", ClientID: "demo"}, Findings: []bearer.Finding{{Rule: "key", Found: "kid \"k1\""}}}
		},
		Policy: func() *policy.Policy { return rules },
	}
	asks, _, _ := serve(t, newFiles(t, bolt.Options{}), map[string]http.Handler{"token": checker}, nil)
	for name, test := range map[string]struct {
		request admin.TokenRequest
		reason  string
		details []string
	}{
		"accepted": {admin.TokenRequest{Token: "good"}, "", []string{"key            ok       kid \"k1\"\n", "it may get,list in shop", `create in mail of clusters ["east"]`, "\naccepted\n"}},
		"allowed":  {admin.TokenRequest{Token: "good", Verb: "list", Namespace: "shop"}, "", []string{"\naccepted\n"}},
		"policy": {admin.TokenRequest{Token: "good", Verb: "create", Namespace: "shop"}, "not allowed by the policy",
			[]string{"create in shop", "policy         REFUSED  client demo\n", "\nrefused: not allowed by the policy\n  bind a role"}},
		"all namespaces": {admin.TokenRequest{Token: "good", Verb: "list"}, "not allowed by the policy", []string{"list in all namespaces"}},
		"cluster":        {admin.TokenRequest{Token: "good", Verb: "create", Namespace: "mail", Cluster: new("east")}, "", nil},
		"other cluster":  {admin.TokenRequest{Token: "good", Verb: "create", Namespace: "mail", Cluster: new("west")}, "not allowed by the policy", []string{`of the cluster "west"`}},
		"issuer":         {admin.TokenRequest{Token: "key unknown"}, "key unknown", []string{"key            REFUSED  kid \"k9\"", "wanted: a key", "\n  fetch another token"}},
		"unavailable":    {admin.TokenRequest{Token: bearer.ReasonUnavailable}, bearer.ReasonUnavailable, []string{"reach the issuer"}},
	} {
		report, err := asks.CheckToken(t.Context(), test.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if report.Accepted != (test.reason == "") || report.Reason != test.reason || (report.Fix == "") != report.Accepted {
			t.Errorf("%s: %+v", name, report)
		}
		var out bytes.Buffer
		if err := report.Print(&out); err != nil || slices.ContainsFunc(test.details, func(d string) bool { return !strings.Contains(out.String(), d) }) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, test.details, out.String())
		}
	}
	if _, err := asks.CheckToken(t.Context(), admin.TokenRequest{Token: "good", Verb: "eat"}); err == nil || !strings.Contains(err.Error(), "eat") {
		t.Errorf("a verb that there is not: %v", err)
	}
}
