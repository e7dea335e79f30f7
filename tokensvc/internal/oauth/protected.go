package oauth

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/client"
)

// plainError is the body of errors outside the token endpoint.
type plainError struct {
	Error string `json:"error"`
}

// refuseToken answers a request without a valid token (RFC 6750 section 3). The challenge is set already.
func refuseToken(c echo.Context, err error) error {
	status, code := http.StatusUnauthorized, ""
	if refusal, ok := errors.AsType[*bearer.Error](err); ok {
		status, code = refusal.Status, refusal.Code
	}
	return c.JSON(status, plainError{cmp.Or(code, "unauthorized")}) // no code: no token at all
}

// handleError answers requests that no handler has answered: unknown paths, wrong methods, and panics.
func (s *Server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status := http.StatusInternalServerError
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		status = he.Code
	}
	if status == http.StatusMethodNotAllowed && c.Request().URL.Path == pathToken {
		err = s.handleToken(c)
	} else {
		err = s.writePlain(c, status)
	}
	if err != nil {
		s.c.Log.Debug("answer not sent", "error", err)
	}
}

func (s *Server) writePlain(c echo.Context, status int) error {
	code := serverError
	switch status {
	case http.StatusNotFound:
		code = "not_found"
	case http.StatusMethodNotAllowed:
		code = "method_not_allowed"
	case http.StatusServiceUnavailable:
		code = unavailable
	}
	return c.JSON(status, plainError{code})
}

// registration is the part of a registration that its client may see (field names of RFC 7591 section 2): not the
// secret.
type registration struct {
	ID              string   `json:"id"`
	ClientID        string   `json:"client_id"`
	ClientName      string   `json:"client_name"`
	Scope           string   `json:"scope"`
	GrantTypes      []string `json:"grant_types"`
	TokenAuthMethod string   `json:"token_endpoint_auth_method"`
	Audience        []string `json:"audience"`
}

// handleClient answers with the caller's registration.
func (s *Server) handleClient(c echo.Context) error {
	caller, _ := bearer.FromContext(c.Request().Context())
	reg, err := s.c.Registrations.ByClientID(c.Request().Context(), caller.ClientID)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return s.writePlain(c, http.StatusNotFound) // removed since the token was issued
	case err != nil:
		s.c.Log.Error("registration not read", "error", err)
		return s.writePlain(c, http.StatusServiceUnavailable)
	}
	return c.JSON(http.StatusOK, registration{
		ID: reg.ID, ClientID: reg.ClientID, ClientName: reg.Name, Scope: reg.Scope,
		GrantTypes: []string{client.GrantType}, TokenAuthMethod: reg.Method(), Audience: reg.TokenAudience(),
	})
}
