package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// once joins middleware to one that is made now, and not anew for every request
// as echo does it. It ends in the handler that the router has found.
func once(all ...echo.MiddlewareFunc) echo.MiddlewareFunc {
	h := func(c echo.Context) error { return c.Handler()(c) }
	for _, m := range slices.Backward(all) {
		h = m(h)
	}
	return func(echo.HandlerFunc) echo.HandlerFunc { return h }
}

// prepare sets the headers that every answer has.
func (s *Server) prepare(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h["Cache-Control"] = noCache
		h["X-Content-Type-Options"] = noSniff
		h["Content-Security-Policy"] = noPage
		return next(c)
	}
}

// strict refuses long queries, and what the router is generous about: names
// with slashes in them, namespaces without a name, and OPTIONS.
func (s *Server) strict(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch {
		case len(c.Request().URL.RawQuery) > s.MaxQuery:
			return beyond("query", apierrors.NewBadRequest(fmt.Sprintf("the query has more than %d bytes: shorten the selectors", s.MaxQuery)))
		case strings.Contains(c.Param("name"), "/"), strings.Contains(c.Request().URL.Path, "//"):
			return echo.ErrNotFound
		case c.Request().Method == http.MethodOptions:
			return echo.ErrMethodNotAllowed
		}
		return next(c)
	}
}

var (
	noCache = []string{"no-cache, private"}
	noSniff = []string{"nosniff"}
	noPage  = []string{"default-src 'none'; frame-ancestors 'none'"} // nothing here is a page
)

// public tells which requests need no token: the bare probes, and the version,
// which clients ask for before they have one.
func (s *Server) public(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz", "/version", "/version/":
		return true
	}
	return false
}
