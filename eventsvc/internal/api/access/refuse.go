package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// refusalWait is how long a refusal waits for its seat at most. Then it is
// answered without one.
const refusalWait = time.Second

// Refuse answers a request whose token is refused, in the flow of all such
// callers. A valid token is verified before its request enters any flow, so that
// a flood of bad tokens delays no good client. The reason is for the log only.
func (g *Guard) Refuse(c echo.Context, err error) error {
	req := c.Request()
	httpserver.Annotate(req.Context(), slog.String("refused", err.Error()))
	if refused, ok := errors.AsType[*bearer.Error](err); ok && refused.Status >= http.StatusInternalServerError {
		return err // the keys are not known, so nothing is known about the caller
	}
	seat, tooMany := g.enter(flow.Refusals, flow.Anonymous)
	if tooMany != nil {
		return tooMany
	}
	defer seat.Release()
	ctx, cancel := context.WithTimeout(req.Context(), refusalWait)
	defer cancel()
	_ = seat.Acquire(ctx)
	c.SetRequest(httpserver.WithValue(req, flow.Key{}, seat))
	c.Error(err) // while it holds the seat
	return nil
}
