package bearer

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/service"
)

// Token is the bearer token in the Authorization header of a request (RFC 6750 section 2.1). Tokens in the query or a
// form are never read: they end up in logs and histories.
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

// FromContext is the verified caller of the request that ctx belongs to.
func FromContext(ctx context.Context) (*Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(*Caller)
	return c, ok
}

// Middleware lets a request through when it is public or when verify accepts its token; the caller is then in the
// request's context. For any other request it sets WWW-Authenticate and calls refuse, which answers in the service's own
// form. A nil public means that nothing is.
func Middleware(
	verify func(ctx context.Context, token string) (*Caller, error),
	public func(*http.Request) bool,
	refuse func(echo.Context, error) error,
) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			if public != nil && public(r) {
				return next(c)
			}
			token, err := Token(r)
			if err != nil {
				return refused(c, err, refuse)
			}
			caller, err := verify(r.Context(), token)
			if err != nil {
				return refused(c, err, refuse)
			}
			c.SetRequest(service.WithValue(r, callerKey{}, caller))
			return next(c)
		}
	}
}

func refused(c echo.Context, err error, refuse func(echo.Context, error) error) error {
	if challenge := Challenge(err); challenge != "" {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	}
	return refuse(c, err)
}
