package oauth

import (
	"errors"
	"log/slog"

	"github.com/labstack/echo/v4"

	"tidings.example/tokensvc/internal/client"
)

// maxLoggedID is the longest client_id that is logged; a longer one is left out.
const maxLoggedID = 128

// audit logs a decision in one line, and counts it. The line has no secret and no token, and a client_id only if its
// characters are valid.
func (s *Server) audit(c echo.Context, d decision, outcome string, err error) {
	s.outcomes.WithLabelValues(outcome, d.method).Inc()
	attrs := append(make([]slog.Attr, 0, 10), // with room for the rest
		slog.String("outcome", outcome),
		slog.String("source", c.RealIP()),
		slog.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)),
	)
	if d.clientID != "" && len(d.clientID) <= maxLoggedID && client.ValidID(d.clientID) {
		attrs = append(attrs, slog.String("client_id", d.clientID))
	}
	if d.method != "" {
		attrs = append(attrs, slog.String("method", d.method))
	}
	level := slog.LevelInfo
	if err == nil {
		attrs = append(attrs,
			slog.String("registration", d.client.ID),
			slog.String("jti", d.token.Claims.ID),
			slog.String("kid", d.token.KeyID),
			slog.String("scope", d.client.Scope))
		if d.client.Subject != "" {
			attrs = append(attrs, slog.String("sub", d.client.Subject))
		}
	} else {
		f := faultOf(err)
		level = f.level()
		var rejected *client.RejectedError
		switch {
		case errors.As(err, &rejected) && rejected.Detail != "":
			attrs = append(attrs, slog.String("detail", rejected.Detail))
		case f == faultBusy || level == slog.LevelError:
			attrs = append(attrs, slog.String("detail", err.Error()))
		}
	}
	s.c.Log.LogAttrs(c.Request().Context(), level, "token request", attrs...)
}

// level is error for a fault of this service and warn for a refusal.
func (f *fault) level() slog.Level {
	if f.status >= 500 && f != faultGone {
		return slog.LevelError
	}
	return slog.LevelWarn
}
