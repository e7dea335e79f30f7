package bearer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/bearer"
)

const otherIssuer = "https://keycloak.example/realms/a"

func TestIssuers(t *testing.T) {
	t.Parallel()
	otherKeys := fixedKeys{"key-2": public(testKeys()[1])}
	first := newVerifier(t, nil)
	second := newVerifier(t, func(c *bearer.Config) {
		c.Issuer, c.Keys = otherIssuer, otherKeys
		c.ClientIDClaim, c.ScopeClaim, c.KeepClaims = "azp", "scp", []string{"groups", "department", "absent"}
	})
	both, err := bearer.NewIssuers(first, second)
	if err != nil {
		t.Fatal(err)
	}
	payload := func(groups string) string {
		return claims("iss", `"`+otherIssuer+`"`, "azp", `"app"`, "scp", `"x"`, "groups", groups, "department", `"d"`)
	}
	ours, theirs := token(good, claims()), signed(testKeys()[1], kid(`"key-2"`), payload(`["g","h"]`))
	want := map[string][]string{"groups": {"g", "h"}, "department": {"d"}}
	for _, round := range []string{"new", "remembered"} {
		caller, err := both.Verify(t.Context(), ours)
		if err != nil || caller.Issuer != issuer || caller.Claims != nil {
			t.Errorf("%s token of the first issuer: %+v, %v", round, caller, err)
		}
		caller, err = both.Verify(t.Context(), theirs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, caller.Claims); diff != "" || caller.ClientID != "app" || !cmp.Equal(caller.Scopes, []string{"x"}) {
			t.Errorf("%s token of the second issuer: %+v, claims (-want +got):\n%s", round, caller, diff)
		}
	}
	for name, test := range map[string]struct{ token, reason string }{
		"the first issuer's name under the second's key": {signed(testKeys()[1], kid(`"key-2"`), claims()), "key unknown"},
		"the second's key under a kid of the first":      {signed(testKeys()[1], good, claims()), "signature wrong"},
		"the second issuer's name under the first's key": {token(good, payload(`[]`)), "key unknown"},
		"an issuer that nobody knows":                    {token(good, claims("iss", `"https://evil.example"`)), "other issuer"},
		"no issuer":                                      {token(good, claims("iss", "")), "other issuer"},
		"two issuers":                                    {token(good, `{"iss":"`+otherIssuer+`",`+claims()[1:]), "payload damaged"},
		"a kept claim that is a number":                  {signed(testKeys()[1], kid(`"key-2"`), payload(`7`)), "claim malformed"},
		"a kept claim that is an object":                 {signed(testKeys()[1], kid(`"key-2"`), payload(`{"a":"b"}`)), "claim malformed"},
		"a kept claim with a null within":                {signed(testKeys()[1], kid(`"key-2"`), payload(`["g",null]`)), "claim malformed"},
		"not a token":                                    {"x", "not three parts"},
		"too long":                                       {string(make([]byte, bearer.MaxToken+1)), "too long"},
	} {
		if caller, err := both.Verify(t.Context(), test.token); err == nil || err.Error() != test.reason {
			t.Errorf("%s: %+v, %v; want %q", name, caller, err, test.reason)
		}
	}
	var groups []string // of Entra, which names 200
	for i := range 200 {
		groups = append(groups, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	}
	for list, want := range map[string][]string{
		"null": nil, "[]": {}, `"g"`: {"g"}, string(must(json.Marshal(groups))): groups,
	} {
		caller, err := both.Verify(t.Context(), signed(testKeys()[1], kid(`"key-2"`), payload(list)))
		if err != nil || !cmp.Equal(caller.Claims["groups"], want) {
			t.Errorf("groups %.20s: %+v, %v", list, caller, err)
		}
	}
	caller := must(both.Verify(t.Context(), theirs))
	if both.Withdrawn(t.Context(), caller) {
		t.Error("withdrawn while the key is there")
	}
	delete(otherKeys, "key-2")
	if !both.Withdrawn(t.Context(), caller) || first.Withdrawn(t.Context(), must(both.Verify(t.Context(), ours))) {
		t.Error("the second issuer's key is withdrawn, and only that")
	}
	if !both.Withdrawn(t.Context(), &bearer.Caller{Issuer: "https://gone.example"}) {
		t.Error("an issuer that is not configured any more")
	}
	if _, err := both.Verify(t.Context(), theirs); err == nil {
		t.Error("a remembered token outlived its key")
	}
}

func TestWithdrawnWhileKeysAreAway(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, func(c *bearer.Config) {
		c.Keys = newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) { return answer(500, "") }}, nil)
	})
	if v.Withdrawn(t.Context(), &bearer.Caller{KeyID: goodKID}) {
		t.Error("keys that cannot be had count as withdrawn")
	}
}

func TestNewIssuersRefuses(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, nil)
	if _, err := bearer.NewIssuers(); err == nil {
		t.Error("no issuer: accepted")
	}
	if _, err := bearer.NewIssuers(v, v); err == nil {
		t.Error("one issuer twice: accepted")
	}
}

// A token with an unknown key id, which anybody can make.
func BenchmarkUnknownKey(b *testing.B) {
	issuers := must(bearer.NewIssuers(newVerifier(b, nil)))
	made := token(strings.Replace(good, `"kid":"`, `"kid":"un`, 1), claims())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := issuers.Verify(b.Context(), made); err == nil {
			b.Fatal("taken")
		}
	}
}
