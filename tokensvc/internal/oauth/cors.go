package oauth

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// cors allows web pages of the configured origins to ask for tokens and to read the answers (Fetch standard, CORS
// protocol). Credentials are in the body, so cookies are never allowed.
func (s *Server) cors() echo.MiddlewareFunc {
	allowed := func(origin string) bool { return slices.Contains(s.c.Origins, origin) }
	return middleware.CORSWithConfig(middleware.CORSConfig{
		// echo answers every OPTIONS with 204. For other origins it is answered like any wrong method instead.
		Skipper: func(c echo.Context) bool {
			r := c.Request()
			return len(s.c.Origins) == 0 || r.Method == http.MethodOptions && !allowed(r.Header.Get(echo.HeaderOrigin))
		},
		AllowOriginFunc: func(origin string) (bool, error) { return allowed(origin), nil }, // AllowOrigins would be patterns
		AllowMethods:    []string{http.MethodPost},
		AllowHeaders:    []string{echo.HeaderAuthorization, echo.HeaderContentType},
		MaxAge:          600,
	})
}
