package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/token"
)

// tokenAnswer is the body of a successful token request (RFC 6749 section 5.1).
type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope,omitempty"` // only if the request has a scope
}

// handleToken is the token endpoint.
func (s *Server) handleToken(c echo.Context) error {
	if c.Request().Method != http.MethodPost {
		return s.refuse(c, decision{}, faultMethod)
	}
	req, err := s.readRequest(c.Response(), c.Request())
	if err != nil {
		return s.refuse(c, decision{clientID: req.clientID, method: req.method}, err)
	}
	d, err := s.decide(c.Request().Context(), req, c.RealIP())
	if err != nil {
		return s.refuse(c, d, err)
	}
	body, err := json.Marshal(tokenAnswer{
		AccessToken: d.token.Value, TokenType: "Bearer", ExpiresIn: d.token.ExpiresIn(), Scope: req.scope,
	})
	if err != nil {
		return s.refuse(c, d, fmt.Errorf("encode answer: %w", err))
	}
	s.audit(c, d, "issued", nil)
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}

// decision has the facts of a token request and its outcome.
type decision struct {
	clientID string // as sent
	method   string // of client authentication, as tried
	client   client.Client
	token    token.Token
}

// decide authenticates the client before it checks anything else, so that only the client itself learns what is
// registered for it.
func (s *Server) decide(ctx context.Context, req request, source string) (decision, error) {
	d := decision{clientID: req.clientID, method: req.method}
	var err error
	if req.method == client.MethodKey {
		d.client, d.method, err = s.c.Clients.AuthenticateAssertion(ctx, client.Assertion{
			ClientID: req.clientID, Token: req.assertion, Source: s.countedSource(source),
		})
		d.clientID = d.client.ClientID
	} else {
		d.client, err = s.c.Clients.Authenticate(ctx, client.Attempt{
			ClientID: req.clientID, Secret: req.clientSecret, RawID: req.rawID, RawSecret: req.rawSecret, Source: s.countedSource(source),
		})
		if err == nil {
			d.clientID = d.client.ClientID // a request can be read in two ways: the id of the one that is right
		}
	}
	switch {
	case err != nil:
		return d, err
	case req.grantType == "":
		return d, faultNoGrant
	case req.grantType != client.GrantType:
		return d, faultGrant
	case req.scope != "" && req.scope != d.client.Scope:
		return d, faultScope
	case !narrow(&d.client, req.resources):
		return d, faultTarget
	}
	d.token, err = s.c.Tokens.Issue(ctx, d.client, req.scope != "")
	return d, err
}

// narrow makes the resources that a request names the audience of its token (RFC 8707 section 2.2). It reports whether
// the client is registered for all of them.
func narrow(c *client.Client, resources []string) bool {
	if len(resources) == 0 {
		return true
	}
	registered := c.TokenAudience()
	var audience []string
	for _, r := range resources {
		if !slices.Contains(registered, r) {
			return false
		}
		if !slices.Contains(audience, r) {
			audience = append(audience, r)
		}
	}
	c.Audience = audience
	return true
}

func (s *Server) refuse(c echo.Context, d decision, err error) error {
	s.audit(c, d, faultOf(err).reason, err)
	return writeFault(c, err)
}
