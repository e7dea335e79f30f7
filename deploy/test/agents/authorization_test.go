package agents_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"tidings.example/shared/waittest"
)

// TestClientCredentials: the SDK is given a client and its secret, and nothing else. From the challenge of /mcp it
// finds the token service, by the metadata of both, and gets in if the registration has an audience that is accepted.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	s := start(t, "EVENTSVC_AUDIENCE=eventsvc")
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, client := range []string{"agent", "tool"} {
			t.Run(client+" "+version, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := waittest.Context(t)
				defer cancel()
				session, err := s.connect(ctx, t, client, client+"-secret", version)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = session.Close() }()
				use(ctx, t, session, version)
			})
		}
	}
	for name, c := range map[string]struct{ client, secret, why string }{
		"wrong secret":                {"agent", "demo-secret", "invalid_client"},
		"no audience in registration": {"demo", "demo-secret", "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := waittest.Context(t)
			defer cancel()
			if session, err := s.connect(ctx, t, c.client, c.secret, "2026-07-28"); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, %v", session, err)
			}
		})
	}
}

// connect connects the SDK, which asks for tokens by itself.
func (s *services) connect(ctx context.Context, t *testing.T, client, secret, version string) (*mcp.ClientSession, error) {
	t.Helper()
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{Credentials: &oauthex.ClientCredentials{
		ClientID: client, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}, Issuer: s.tokens,
	}})
	if err != nil {
		t.Fatal(err)
	}
	transport := &mcp.StreamableClientTransport{Endpoint: s.events + "/mcp", OAuthHandler: handler}
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
}

// TestOpenID: go-oidc finds the keys of tokensvc by its issuer, and verifies with them what a client got that named
// /mcp as the resource. A client that is not registered for it gets nothing.
func TestOpenID(t *testing.T) {
	t.Parallel()
	s := start(t)
	resource := s.events + "/mcp"
	provider, err := oidc.NewProvider(t.Context(), s.tokens)
	if err != nil {
		t.Fatal(err)
	}
	if got := provider.Endpoint(); got.TokenURL != s.tokens+"/oauth2/token" {
		t.Errorf("%+v", got)
	}
	answer := func(client string) (status int, token, fault string) {
		res, err := http.PostForm(provider.Endpoint().TokenURL, url.Values{
			"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {client + "-secret"}, "resource": {resource},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var body struct {
			AccessToken string `json:"access_token"`
			Error       string
		}
		if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, body.AccessToken, body.Error
	}
	status, raw, _ := answer("agent")
	token, err := provider.Verifier(&oidc.Config{ClientID: resource}).Verify(t.Context(), raw)
	if err != nil || status != http.StatusOK || token.Issuer != s.tokens || !slices.Contains(token.Audience, resource) {
		t.Errorf("%d, %v: %+v", status, err, token)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: "other"}).Verify(t.Context(), raw); err == nil {
		t.Error("a token is good for an audience that it does not have")
	}
	if status, token, fault := answer("demo"); status != http.StatusBadRequest || token != "" || fault != "invalid_target" {
		t.Errorf("%d, %q, %q", status, token, fault)
	}
}
