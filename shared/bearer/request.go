package bearer

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/httpserver"
)

// Token returns the bearer token in the Authorization header of a request (RFC 6750 section 2.1). Tokens in the query
// or in a form are never read, because they would end up in logs and browser histories. An error is an *[Error].
func Token(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	switch {
	case len(values) == 0:
		return "", noToken("no token")
	case len(values) > 1:
		return "", invalidRequest("several Authorization headers")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", noToken("other scheme than Bearer")
	case token == "":
		return "", invalidRequest("empty token")
	case strings.Contains(r.URL.RawQuery, "access_token") && r.URL.Query().Has("access_token"):
		return "", invalidRequest("tokens in header and query")
	}
	return token, nil
}

type callerKey struct{}

// FromContext returns the verified caller of the request that ctx belongs to.
func FromContext(ctx context.Context) (*Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(*Caller)
	return c, ok
}

// Middleware passes a request on if it is public or if verify accepts its token; in the latter case [FromContext]
// returns the caller. For any other request it sets WWW-Authenticate and calls refuse, which writes the answer. If
// public is nil, no request is public.
func Middleware(
	verify func(ctx context.Context, token string) (*Caller, error),
	public func(*http.Request) bool,
	refuse func(echo.Context, error) error,
) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if public != nil && public(c.Request()) {
				return next(c)
			}
			if err := Authenticate(c, verify, ""); err != nil {
				return refuse(c, err)
			}
			return next(c)
		}
	}
}

// Authenticate verifies the token of a request, and admits its caller or refuses it, see [Admit].
func Authenticate(c echo.Context, verify func(ctx context.Context, token string) (*Caller, error), metadata string) error {
	r := c.Request()
	token, err := Token(r)
	var caller *Caller
	if err == nil {
		caller, err = verify(r.Context(), token)
	}
	return Admit(c, caller, err, metadata)
}

// Admit makes [FromContext] return the caller of a request. With an error there is none: Admit sets WWW-Authenticate to
// the [Challenge] and returns the error.
func Admit(c echo.Context, caller *Caller, err error, metadata string) error {
	if err != nil {
		if challenge := Challenge(err, metadata); challenge != "" {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
		}
		return err
	}
	c.SetRequest(httpserver.WithValue(c.Request(), callerKey{}, caller))
	return nil
}
