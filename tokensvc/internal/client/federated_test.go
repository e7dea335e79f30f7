package client_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/federation"
)

// Two clusters, whose keys are those of a signer.
const (
	cluster = "https://one.cluster.example"
	second  = "https://two.cluster.example"
)

// account is the payload of a service-account token of the cluster, with some members replaced.
func account(name string, changes ...string) string {
	return payload(append([]string{"iss", `"` + cluster + `"`, "sub", `"system:serviceaccount:` + name + `"`, "jti", `"same"`}, changes...)...)
}

// jwksFile writes the public keys of a signer.
func (s signer) jwksFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, s.jwks(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s signer) jwks() []byte {
	return fmt.Appendf(nil, `{"keys":[{"kty":"RSA","kid":"rsa","n":%q,"e":"AQAB"}]}`, base64.RawURLEncoding.EncodeToString(s.rsa.N.Bytes()))
}

// trusting accepts assertions of issuers, which are entries of a file.
func trusting(t *testing.T, issuers ...string) client.Assertions {
	t.Helper()
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(path, []byte("- "+strings.Join(issuers, "\n- ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := federation.New(federation.Config{Path: path, Own: issuer, Now: stopped(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return client.Assertions{Audience: issuer, Keys: true, MaxLife: 5 * time.Minute, Federation: f}
}

func bound(id, issuer, subject string) client.Client {
	return client.Client{ClientID: id, Scope: "read", Bound: client.Binding{Issuer: issuer, Subject: subject}}
}

// TestFederated: assertions of other issuers, and the clients that they are bound to.
func TestFederated(t *testing.T) {
	t.Parallel()
	one, two, own := newSigner(t), newSigner(t), newSigner(t)
	const spiffe = "spiffe://example.org/shop/reporter"
	a := newAuthenticator(t, client.Config{
		Store: newStore(t, own.client("keyed"),
			bound("system:serviceaccount:shop:reporter", cluster, ""), bound("workload", cluster, spiffe), bound("elsewhere", second, ""),
			bound("shop", cluster, "system:serviceaccount:shop:*"), bound("system:serviceaccount:shop:twin", second, ""),
			bound("system:serviceaccount:raw:*", cluster, "")),
		Assertions: trusting(t,
			fmt.Sprintf("{issuer: %q, jwksFile: %q}", cluster, one.jwksFile(t)),
			fmt.Sprintf("{issuer: %q, jwksFile: %q, audiences: [tokensvc, other], subjects: ['system:serviceaccount:shop:*', elsewhere]}", second, two.jwksFile(t))),
	})
	for _, tc := range []struct{ name, clientID, token, want, subject string }{
		{"the subject is the client", "", one.token(rs256, account("shop:reporter")), "ok", ""},
		{"with the client_id", "system:serviceaccount:shop:reporter", one.token(rs256, account("shop:reporter")), "ok", ""},
		{"again, as it is meant to be used again", "", one.token(rs256, account("shop:reporter")), "ok", ""},
		{"no jti", "", one.token(rs256, account("shop:reporter", "jti", "")), "ok", ""},
		{"for a quarter of an hour", "", one.token(rs256, account("shop:reporter", "exp", fmt.Sprint(time.Now().Add(14*time.Minute).Unix()))), "ok", ""},
		{"typ of SPIFFE", "workload", one.token(`{"alg":"RS256","kid":"rsa","typ":"JOSE"}`, account("", "sub", `"`+spiffe+`"`)), "ok", ""},
		{"found by its subject", "", one.token(rs256, account("", "sub", `"`+spiffe+`"`)), "ok", ""},
		{"one of a namespace, found by its subject", "", one.token(rs256, account("shop:batch")), "ok", "system:serviceaccount:shop:batch"},
		{"a subject of another issuer's client", "", two.token(rs256, account("shop:batch", "iss", `"`+second+`"`, "aud", `"tokensvc"`)), noSubject, ""},
		{"one of a namespace", "shop", one.token(rs256, account("shop:batch")), "ok", "system:serviceaccount:shop:batch"},
		{"audiences of the issuer", "elsewhere", two.token(rs256, account("", "iss", `"`+second+`"`, "sub", `"elsewhere"`, "aud", `"tokensvc"`)), "ok", ""},

		{"a subject without a registration", "", one.token(rs256, account("other:other")), noSubject, ""},
		{"a client that does not exist", "nobody", one.token(rs256, account("shop:reporter")), noSubject, ""},
		{"another subject", "workload", one.token(rs256, account("shop:reporter")), "client bound to another subject", ""},
		{"a subject by its beginning", "workload", one.token(rs256, account("", "sub", `"`+spiffe+`/x"`)), "client bound to another subject", ""},
		{"a client that is not bound", "plain", one.token(rs256, account("", "sub", `"plain"`)), "client bound to another issuer", ""},
		{"a client with a key", "keyed", one.token(rs256, account("", "sub", `"keyed"`)), "client bound to another issuer", ""},
		{"the right subject of another issuer", "system:serviceaccount:shop:reporter", two.token(rs256, account("shop:reporter", "iss", `"`+second+`"`, "aud", `"tokensvc"`)), "client bound to another issuer", ""},
		{"another issuer in the first's name", "", two.token(rs256, account("shop:reporter")), "signature wrong", ""},
		{"a workload that signs in the issuer's name", "", own.token(rs256, account("shop:reporter")), "signature wrong", ""},
		{"an issuer that is not trusted", "", one.token(rs256, account("shop:reporter", "iss", `"https://three.cluster.example"`)), noIssuer, ""},
		{"the issuer in other case", "", one.token(rs256, account("shop:reporter", "iss", `"https://ONE.cluster.example"`)), noIssuer, ""},
		{"the issuer with a slash", "", one.token(rs256, account("shop:reporter", "iss", `"`+cluster+`/"`)), noIssuer, ""},

		{"another namespace", "shop", one.token(rs256, account("shop2:batch")), "client bound to another subject", ""},
		{"a namespace that ends so", "shop", one.token(rs256, account("my-shop:batch")), "client bound to another subject", ""},
		{"no name", "shop", one.token(rs256, account("shop:")), "client bound to another subject", ""},
		{"a name with a colon", "shop", one.token(rs256, account("shop:a:b")), "client bound to another subject", ""},
		{"one that is a client of another cluster", "shop", one.token(rs256, account("shop:twin")), "subject registered by itself", ""},
		{"one that is a client itself", "shop", one.token(rs256, account("shop:reporter")), "subject registered by itself", ""},
		{"a wildcard that nobody asked for", "system:serviceaccount:raw:*", one.token(rs256, account("raw:batch")), "client bound to another subject", ""},

		{"a subject that looks like the rule of a client", "shop", one.token(rs256, account("shop:*")), "subject with a *", ""},
		{"the same, found by its subject", "", one.token(rs256, account("shop:*")), "subject with a *", ""},
		{"a subject that looks like the id of a client", "", one.token(rs256, account("raw:*")), "subject with a *", ""},
		{"a * within a subject", "", one.token(rs256, account("shop:a*b")), "subject with a *", ""},
		{"a namespace that is a *", "", one.token(rs256, account("*:batch")), "subject with a *", ""},

		{"a subject that the issuer may not assert", "elsewhere", two.token(rs256, account("", "iss", `"`+second+`"`, "sub", `"elsewhere2"`, "aud", `"tokensvc"`)), "subject not covered", ""},
		{"our audience where others are configured", "elsewhere", two.token(rs256, account("", "iss", `"`+second+`"`, "sub", `"elsewhere"`)), "other audience", ""},
		{"two audiences, both ours", "elsewhere", two.token(rs256, account("", "iss", `"`+second+`"`, "sub", `"elsewhere"`, "aud", `["tokensvc","other"]`)), "several audiences", ""},
		{"a token for the API server", "", one.token(rs256, account("shop:reporter", "aud", `["https://kubernetes.default.svc"]`)), "other audience", ""},
		{"a token for the API server and us", "", one.token(rs256, account("shop:reporter", "aud", `["https://kubernetes.default.svc","`+issuer+`"]`)), "several audiences", ""},
		{"no audience", "", one.token(rs256, account("shop:reporter", "aud", "")), "other audience", ""},
		{"for longer than usual", "", one.token(rs256, account("shop:reporter", "exp", fmt.Sprint(time.Now().Add(17*time.Minute).Unix()))), "lives too long", ""},
		{"for a day", "", one.token(rs256, account("shop:reporter", "exp", fmt.Sprint(time.Now().Add(24*time.Hour).Unix()))), "lives too long", ""},
		{"for ever, as old service-account tokens are", "", one.token(rs256, account("shop:reporter", "exp", "", "iat", "")), "time missing or malformed", ""},
		{"expired", "", one.token(rs256, account("shop:reporter", "iat", "1000", "exp", "2000")), "expired", ""},
		{"an access token", "", one.token(`{"alg":"RS256","kid":"rsa","typ":"at+jwt"}`, account("shop:reporter")), "typ of another token", ""},
		{"unknown kid", "", one.token(`{"alg":"RS256","kid":"new"}`, account("shop:reporter")), "key unknown", ""},
		{"no kid", "", one.token(`{"alg":"RS256"}`, account("shop:reporter")), "kid missing or malformed", ""},
		{"an algorithm that is not configured", "", one.token(`{"alg":"ES256","kid":"rsa"}`, account("shop:reporter")), "alg not allowed", ""},
		{"bound to a key of its own", "", one.token(rs256, account("shop:reporter", "cnf", `{}`)), "sender-constrained", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{ClientID: tc.clientID, Token: tc.token})
			if got := detail(err); got != tc.want || c.Subject != tc.subject {
				t.Fatalf("%s as %q, want %s as %q", got, c.Subject, tc.want, tc.subject)
			}
			if (err == nil) != (c.Scope != "") {
				t.Errorf("client %+v with error %v", c, err)
			}
		})
	}
}

// TestAssertionMethod: logs and metrics tell whose assertion it was.
func TestAssertionMethod(t *testing.T) {
	t.Parallel()
	one, own := newSigner(t), newSigner(t)
	a := newAuthenticator(t, client.Config{
		Store:      newStore(t, own.client("keyed"), bound("system:serviceaccount:shop:reporter", cluster, "")),
		Assertions: trusting(t, fmt.Sprintf("{issuer: %q, jwksFile: %q}", cluster, one.jwksFile(t))),
	})
	for token, want := range map[string]string{
		own.token(rs256, payload()):                client.MethodKey,
		one.token(rs256, account("shop:reporter")): client.MethodFederated,
		own.token(rs256, account("shop:reporter")): client.MethodFederated,
		"x": client.MethodKey,
	} {
		if _, got, _ := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: token}); got != want {
			t.Errorf("method %s, want %s", got, want)
		}
	}
}

// TestBindings: which registrations are refused.
func TestBindings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		binding client.Binding
		good    bool
	}{
		{client.Binding{Issuer: cluster}, true},
		{client.Binding{Issuer: cluster, Subject: "any text"}, true},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount:shop:*"}, true},
		{client.Binding{}, false},
		{client.Binding{Subject: "system:serviceaccount:shop:reporter"}, false},
		{client.Binding{Issuer: cluster, Subject: "*"}, false},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount:*"}, false},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount:*:*"}, false},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount::*"}, false},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount:shop:a*"}, false},
		{client.Binding{Issuer: cluster, Subject: "system:serviceaccount:s*:reporter"}, false},
		{client.Binding{Issuer: cluster, Subject: "spiffe://example.org/*"}, false},
	} {
		c := client.Client{ClientID: "a", Scope: "s", Bound: tc.binding}
		if err := c.Validate(); (err == nil) != tc.good {
			t.Errorf("%+v: %v", tc.binding, err)
		}
	}
}

// TestIssuerAway: an issuer whose keys were never there neither rejects nor accepts, and is not counted as a failure,
// for which the attempts after the first would have to wait.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	one := newSigner(t)
	a := newAuthenticator(t, client.Config{
		Store: newStore(t), FailureBurst: 1, FailureRefill: time.Hour, FailureQueue: 1,
		Assertions: trusting(t, fmt.Sprintf("{issuer: %q, jwksURL: 'https://127.0.0.1:1/jwks'}", cluster)),
	})
	for range 5 {
		if _, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: one.token(rs256, account("shop:reporter"))}); outcome(err) != "issuer unavailable" {
			t.Errorf("%v", err)
		}
	}
}

// TestEqualRefusals: a refused assertion costs the same verifications and the same queries, whatever is wrong with it,
// so that the time of the answer does not show which issuers are trusted. It holds from the first refusal on, without
// any client that has a key.
func TestEqualRefusals(t *testing.T) { // not parallel: it counts allocations, of which a verification has a dozen
	one, other := newSigner(t), newSigner(t)
	for _, keys := range []bool{true, false} {
		s := newStore(t, bound("system:serviceaccount:shop:reporter", cluster, ""))
		trust := trusting(t, fmt.Sprintf("{issuer: %q, jwksFile: %q}", cluster, one.jwksFile(t)))
		trust.Keys = keys
		a := newAuthenticator(t, client.Config{Store: s, Assertions: trust})
		least, most, names := math.Inf(1), 0.0, ""
		for _, tc := range []struct{ name, token string }{
			{"unknown issuer", other.token(rs256, account("shop:reporter", "iss", `"https://three.example"`))},
			{"wrong signature", other.token(rs256, account("shop:reporter"))},
			{"unknown kid", other.token(`{"alg":"RS256","kid":"other"}`, account("shop:reporter"))},
			{"no kid", other.token(`{"alg":"RS256"}`, account("shop:reporter"))},
			{"algorithm of no key", other.token(`{"alg":"PS256","kid":"rsa"}`, account("shop:reporter"))},
			{"type of SPIFFE, unknown issuer", other.token(`{"alg":"RS256","kid":"rsa","typ":"JOSE"}`, account("shop:reporter", "iss", `"https://three.example"`))},
			{"type of access tokens", other.token(`{"alg":"RS256","kid":"rsa","typ":"at+jwt"}`, account("shop:reporter"))},
			{"other audience", one.token(rs256, account("shop:reporter", "aud", `"https://other.example"`))},
		} {
			queries := s.asked()
			n := testing.AllocsPerRun(20, func() {
				if _, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: tc.token}); err == nil {
					t.Fatalf("%s: accepted", tc.name)
				}
			})
			if got := s.asked() - queries; got != 21 { // one run more than asked for
				t.Errorf("keys of clients %v, %s: %d queries for 21 assertions", keys, tc.name, got)
			}
			least, most = min(least, n), max(most, n)
			names += fmt.Sprintf(" %s %v,", tc.name, n)
		}
		if most-least > 25 { // of about 75; two verifications have 26, and the rest of a refusal differs by 20
			t.Errorf("keys of clients %v: another number of verifications, by the allocations:%s", keys, names)
		}
	}
}
