package oauth

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
)

// allowOrigin lets pages of the configured origins read the answer. Credentials travel in the body, so cookies are
// never allowed.
func (s *Server) allowOrigin(c echo.Context) bool {
	if len(s.c.Origins) == 0 {
		return false
	}
	h := c.Response().Header()
	h.Set(echo.HeaderVary, echo.HeaderOrigin)
	origin := c.Request().Header.Get(echo.HeaderOrigin)
	if !slices.Contains(s.c.Origins, origin) {
		return false
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, origin)
	return true
}

// handlePreflight answers browsers that ask before they post (Fetch standard, CORS protocol).
func (s *Server) handlePreflight(c echo.Context) error {
	if !s.allowOrigin(c) {
		return s.handleToken(c)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderAccessControlAllowMethods, http.MethodPost)
	h.Set(echo.HeaderAccessControlAllowHeaders, "Authorization, Content-Type")
	h.Set(echo.HeaderAccessControlMaxAge, "600")
	return c.NoContent(http.StatusNoContent)
}
