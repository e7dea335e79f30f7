package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/console"
)

// withConsole serves the console before any token is asked for, and leads browsers there
// from /. It passes on everything else, and every request if there is no console.
func withConsole(page http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if page == nil {
			return next
		}
		return func(c echo.Context) error {
			r, h := c.Request(), c.Response().Header()
			switch {
			case httpio.Under(r.URL.Path, console.Folder):
				page.ServeHTTP(c.Response(), r)
				return nil
			case r.URL.Path == "/" && r.Method == http.MethodGet:
				h.Set("Vary", "Accept")
				if prefersPage(r) {
					return c.Redirect(http.StatusFound, console.Folder+"/")
				}
			}
			return next(c)
		}
	}
}

// prefersPage reports whether a client would rather have a page than the index of paths,
// as browsers do. Clients of the API accept anything, or JSON.
func prefersPage(r *http.Request) bool {
	const page, index = "page", "index"
	return httpio.Preferred(r.Header.Get("Accept"), map[string]string{
		"text/html": page, "application/json": index, "application/*": index, "*/*": index,
	}) == page
}
