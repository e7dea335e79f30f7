package oauth_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/tokensvc/internal/clientkey"
	"tidings.example/tokensvc/internal/oauth"
)

// clientKey is the private key of the client "keyed".
var clientKey = sync.OnceValue(func() *clientkey.Private {
	key, err := clientkey.New("ES256")
	if err != nil {
		panic(err)
	}
	return key
})

func clientKeySet() string {
	set, err := clientkey.JWKS(clientKey())
	if err != nil {
		panic(err)
	}
	return string(set)
}

// assertionOf is signed with the key of the client "keyed", whoever it is for.
func assertionOf(clientID, audience string) string {
	assertion, err := clientKey().Assertion(clientID, audience, time.Now())
	if err != nil {
		panic(err)
	}
	return assertion
}

const jwtBearer = "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"

// withAssertion is a token request with an assertion.
func withAssertion(assertion string) string {
	return "grant_type=client_credentials" + jwtBearer + "&client_assertion=" + url.QueryEscape(assertion)
}

// TestAssertionMatrix: every way to ask for a token by an assertion that the design tells apart. The answers are in
// testdata/assertion.golden, byte by byte.
func TestAssertionMatrix(t *testing.T) {
	t.Parallel()
	on := newServer(t, func(c *oauth.Config) { c.Assertions, c.Basic = true, true })
	off := newServer(t, nil)
	fresh := func() string { return withAssertion(assertionOf("keyed", issuer)) }
	used := fresh()
	on.ask("POST", "/oauth2/token", used)
	var got strings.Builder
	for _, tc := range []struct {
		name   string
		s      *server
		body   string
		header []string
		status int
	}{
		{"good", on, fresh(), nil, 200},
		{"good, with the client_id", on, fresh() + "&client_id=keyed", nil, 200},
		{"good, with the scope", on, fresh() + "&scope=read", nil, 200},
		{"good, with an empty secret, which counts as absent", on, fresh() + "&client_secret=", nil, 200},
		{"not enabled", off, fresh(), nil, 401},
		{"unknown client", on, withAssertion(assertionOf("nobody", issuer)), nil, 401},
		{"client without keys", on, withAssertion(assertionOf("demo", issuer)), nil, 401},
		{"another client_id", on, fresh() + "&client_id=demo", nil, 401},
		{"other audience", on, withAssertion(assertionOf("keyed", issuer+"/oauth2/token")), nil, 401},
		{"replayed", on, used, nil, 401},
		{"not a token", on, withAssertion("x"), nil, 401},
		{"signature damaged", on, strings.TrimRight(fresh(), "AQgw"), nil, 401},
		{"registrations cannot be read", on, withAssertion(assertionOf("outage", issuer)), nil, 503},
		{"no client_assertion_type", on, strings.Replace(fresh(), jwtBearer, "", 1), nil, 401},
		{"a type that does not exist", on, strings.Replace(fresh(), "jwt-bearer", "jwt", 1), nil, 401},
		{"the type of SAML", on, strings.Replace(fresh(), "jwt-bearer", "saml2-bearer", 1), nil, 401},
		{"the type alone", on, "grant_type=client_credentials&client_id=keyed" + jwtBearer, nil, 401},
		{"a secret too", on, fresh() + "&client_id=demo&client_secret=s3cret", nil, 400},
		{"Basic too", on, fresh(), []string{auth, basic("demo:s3cret")}, 400},
		{"two assertions", on, fresh() + "&client_assertion=x", nil, 400},
		{"two types", on, fresh() + jwtBearer, nil, 400},
		{"in the query", on, good, nil, 400},
		{"bad grant, good assertion", on, strings.Replace(fresh(), "client_credentials", "password", 1), nil, 400},
		{"bad grant, bad assertion", on, strings.Replace(used, "client_credentials", "password", 1), nil, 401},
		{"other scope", on, fresh() + "&scope=write", nil, 400},
	} {
		target := "/oauth2/token"
		if tc.name == "in the query" {
			target += "?client_assertion=x"
		}
		resp := tc.s.ask("POST", target, tc.body, tc.header...)
		if resp.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, resp.StatusCode, tc.status)
		}
		fmt.Fprintf(&got, "## %s\n%s\n", tc.name, dump(t, resp))
	}
	compareGolden(t, "testdata/assertion.golden", got.String())
	for _, s := range []*server{on, off} {
		if strings.Contains(s.log.String(), "eyJ") {
			t.Error("the log repeats an assertion")
		}
	}
}

// TestAssertionMetadata: what is enabled is published (RFC 8414 section 2), and nothing else.
func TestAssertionMetadata(t *testing.T) {
	t.Parallel()
	type document struct {
		Methods    []string `json:"token_endpoint_auth_methods_supported"`
		Algorithms []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	}
	for name, tc := range map[string]struct {
		adjust func(*oauth.Config)
		want   document
	}{
		"default": {nil, document{Methods: []string{"client_secret_post"}}},
		"on": {func(c *oauth.Config) { c.Assertions = true }, document{
			[]string{"client_secret_post", "private_key_jwt"}, []string{"RS256", "PS256", "ES256", "Ed25519", "EdDSA"},
		}},
	} {
		var got document
		if err := json.NewDecoder(newServer(t, tc.adjust).ask("GET", "/.well-known/oauth-authorization-server", "").Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
