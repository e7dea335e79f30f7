package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/service"
)

// maxAudited bounds what a caller sends into an audit entry.
const maxAudited = 256

type auditKey struct{}

// audited writes an audit entry for every request, refused ones too.
func (s *Server) audited(next echo.HandlerFunc) echo.HandlerFunc {
	if s.Audit == nil {
		return next
	}
	return func(c echo.Context) error {
		start := time.Now()
		r := c.Request()
		e := &audit.Entry{
			ID: service.RequestID(r.Context()), Method: shorten(r.Method), Path: shorten(r.URL.Path),
			Remote: r.RemoteAddr, Agent: shorten(r.UserAgent()),
		}
		c.SetRequest(service.WithValue(r, auditKey{}, e))
		defer func() { // also when the answer has to be cut off
			ctx := c.Request().Context()
			if caller, ok := bearer.FromContext(ctx); ok {
				e.Issuer, e.User, e.Client = caller.Issuer, shorten(caller.Subject), shorten(caller.ClientID)
			}
			e.Code = c.Response().Status
			service.AtEnd(ctx, func() {
				e.Time, e.Millis = s.Now(), float64(time.Since(start).Microseconds())/1000
				s.Audit.Record(e)
			})
		}()
		if err := next(c); err != nil {
			c.Error(err) // answers now, so that the code is known
		}
		return nil
	}
}

// decided notes a decision of the policy. Of several for one request, those of
// a write that may create, the first counts; the code tells of the second.
func (s *Server) decided(r *http.Request, a access, d policy.Decision) {
	e, ok := r.Context().Value(auditKey{}).(*audit.Entry)
	if !ok || e.Allowed != nil {
		return
	}
	e.Verb, e.Group, e.Resource = a.verb.String(), a.resource.Group, a.resource.Resource
	e.Namespace, e.Name = shorten(a.namespace), shorten(a.name)
	e.Allowed, e.Rule = &d.Allowed, d.Rule
}

func shorten(text string) string {
	if len(text) > maxAudited {
		return text[:maxAudited] + "…"
	}
	return text
}
