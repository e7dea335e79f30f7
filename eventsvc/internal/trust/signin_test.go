package trust_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/trust"
)

func readFile(t *testing.T, text string) ([]trust.Issuer, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return trust.ReadIssuers(path)
}

// TestSignInBlock: what a block console leaves out has defaults, and everything else is taken as it is.
func TestSignInBlock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*trust.SignIn{
		"- {issuer: 'https://a.example'}": nil,
		"- {issuer: 'https://a.example:8443/realms/a', console: {clientID: c}}": {
			ClientID: "c", Name: "a.example:8443", Scopes: []string{"openid", "profile"}, Token: "access",
		},
		"- {issuer: 'http://127.0.0.1:5556', console: {clientID: c, name: A, scopes: [openid, groups], token: id, parameters: {prompt: login, audience: x}}}": {
			ClientID: "c", Name: "A", Scopes: []string{"openid", "groups"}, Token: "id", Parameters: map[string]string{"prompt": "login", "audience": "x"},
		},
		"- {issuer: 'http://[::1]:5556', console: {clientID: c, name: A, token: id}}": {ClientID: "c", Name: "A", Scopes: []string{"openid", "profile"}, Token: "id"},
	} {
		got, err := readFile(t, text)
		if err != nil || len(got) != 1 || !cmp.Equal(got[0].Console, want) {
			t.Errorf("%s: %v\n%s", text, err, cmp.Diff(want, got))
		}
	}
}

// TestBadSignInBlock: an error says in which entry something is wrong, and what to do.
func TestBadSignInBlock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"- {issuer: 'https://a.example', console: {}}":                                            "entry 1: console: clientID is missing: register",
		"- {issuer: 'https://a.example', console: {clientID: c, token: jwt}}":                     `token "jwt" is neither access nor id`,
		"- {issuer: 'https://a.example', console: {clientID: c, scopes: [profile]}}":              "scopes has no openid",
		"- {issuer: 'https://a.example', console: {clientID: c, secret: s}}":                      "field secret not found in console (there are clientID, name, scopes, token and parameters)",
		"- {issuer: 'https://b.example'}\n- {issuer: 'http://a.example', console: {clientID: c}}": "entry 2: console: people cannot sign in at issuer \"http://a.example\", which is neither https nor",
		"- {issuer: opaque, jwksFile: k, console: {clientID: c}}":                                 "neither https nor",
		"- {issuer: 'ftp://localhost', console: {clientID: c}}":                                   "neither https nor",
		"- {issuer: 'https://a.example', consol: {clientID: c}}":                                  "field consol not found (there are issuer",
	} {
		if _, err := readFile(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, name := range []string{
		"response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "response_mode", "request", "request_uri",
	} {
		_, err := readFile(t, "- {issuer: 'https://a.example', console: {clientID: c, parameters: {"+name+": x}}}")
		if err == nil || !strings.Contains(err.Error(), "parameters has "+name+", which the page sets itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
