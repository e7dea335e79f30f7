package oauth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/keyring"
	"tidings.example/tokensvc/internal/token"
)

// The paths that are served.
const (
	pathToken    = "/oauth2/token"
	pathJWKS     = "/oauth2/jwks"
	pathMetadata = "/.well-known/oauth-authorization-server"
	pathOpenID   = "/.well-known/openid-configuration"
	pathClient   = "/oauth2/client"
)

// Config has the parts and settings of the API. Basic, Assertions, Origins and TrustedProxies are optional.
type Config struct {
	Issuer    string // as in the tokens
	PublicURL string // URL under which clients reach the service

	Clients       *client.Authenticator
	Registrations client.Store
	Tokens        *token.Issuer
	Keys          *keyring.Keyring
	Verify        func(ctx context.Context, token string) (*bearer.Caller, error) // verifies tokens of this service

	Basic          bool           // accept client_secret_basic too
	Assertions     bool           // accept signed assertions too
	Origins        []string       // web pages that may ask for tokens (CORS)
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For is used

	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Server has the handlers of the API.
type Server struct {
	c        Config
	metadata published
	served   map[string]string // see paths
	outcomes *prometheus.CounterVec
}

// New returns the handler of the API.
func New(c Config) (http.Handler, error) {
	if c.Clients == nil || c.Registrations == nil || c.Tokens == nil || c.Keys == nil || c.Verify == nil || c.Log == nil || c.Registry == nil {
		return nil, errors.New("oauth: Config is incomplete")
	}
	s := &Server{c: c, served: paths(c), outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tokensvc_token_requests_total", Help: "Token requests by outcome and by the method of client authentication.",
	}, []string{"outcome", "method"})}
	c.Registry.MustRegister(s.outcomes)
	var err error
	if s.metadata, err = newMetadata(c); err != nil {
		return nil, err
	}
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := s.served[echo.GetPath(r)]; path != "" && path != r.URL.Path {
			u := *r.URL
			u.Path, u.RawPath = path, ""
			r = r.WithContext(r.Context()) // a copy: the caller's stays as it is
			r.URL = &u
		}
		routes.ServeHTTP(w, r)
	}), nil
}

// routes lists every resource. Public paths are answered without a token. Every other path requires one, even if it
// does not exist, so that the answer does not show which paths exist.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.handleError
	e.IPExtractor = httpserver.Source(s.c.TrustedProxies)
	public := []string{pathToken, pathJWKS}
	if s.served[pathMetadata] != "" {
		public = append(public, pathMetadata)
		e.Match(reading(), pathMetadata, s.handleMetadata)
	}
	// The path is compared as the router does, which distinguishes %2F from a slash.
	isPublic := func(r *http.Request) bool { return slices.Contains(public, echo.GetPath(r)) }
	e.Use(harden, bearer.Middleware(s.c.Verify, isPublic, refuseToken))

	e.Match([]string{http.MethodPost, http.MethodOptions}, pathToken, s.handleToken, s.cors())
	e.Match(reading(), pathJWKS, s.handleJWKS)
	e.Match(reading(), pathClient, s.handleClient)
	return e
}

func reading() []string { return []string{http.MethodGet, http.MethodHead} }

// harden sets the headers of every answer. Handlers of published documents replace Cache-Control.
func harden(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'") // no answer is a web page
		h.Set(echo.HeaderCacheControl, "no-store")
		if c.Request().URL.Path == pathToken {
			h.Set("Pragma", "no-cache") // RFC 6749 section 5.1
		}
		return next(c)
	}
}
