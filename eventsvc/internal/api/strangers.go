package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/bearer"
	"tidings.example/shared/service"
)

// strangers are all callers whose token is refused: one client of the turns, so
// that who sends such tokens by the thousand waits for others like himself, and
// no good client does. A good token is found good before any turn.
//
// No issuer has an empty name, so that no client is called so.
const strangers = "\x00"

// refusalWait is how long a refusal waits for its turn at most. Then it is
// answered all the same.
const refusalWait = time.Second

// refuse answers a request whose caller is not known, when it is the turn of
// all such callers. The reason is for the log only.
func (s *Server) refuse(c echo.Context, err error) error {
	req := c.Request()
	service.Annotate(req.Context(), slog.String("refused", err.Error()))
	if refused := (*bearer.Error)(nil); errors.As(err, &refused) && refused.Status >= http.StatusInternalServerError {
		return err // nothing is known of anybody
	}
	u, tooMany := s.turns.enter(refusals, strangers)
	if tooMany != nil {
		return tooMany
	}
	defer u.leave()
	ctx, cancel := context.WithTimeout(req.Context(), refusalWait)
	defer cancel()
	_ = u.resume(ctx)
	c.SetRequest(service.WithValue(req, turnKey{}, u))
	c.Error(err) // now, while it is its turn
	return nil
}
