package access

import (
	"fmt"
	"log/slog"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// Namespaces names namespaces in errors. A right on the events of a namespace is the
// same right on the namespace itself.
var Namespaces = schema.GroupResource{Resource: "namespaces"}

// Allow lets the requests of a verb through to their handler if the policy allows
// them. That is decided before anything is looked up, so that a refusal tells
// nothing. A write is refused, too, while the audit log cannot be written, if that is the
// setting. The handler runs with a seat, see [Guard.Seated].
func (g *Guard) Allow(of schema.GroupResource, v policy.Verb, next Handler) echo.HandlerFunc {
	return g.allow(v, func(c echo.Context) (Grant, error) { return g.Authorize(c, of, v) }, next)
}

// AllowSome is Allow for requests that name their namespaces in their body: the caller needs the right in some
// namespace, and the handler asks about each.
func (g *Guard) AllowSome(of schema.GroupResource, v policy.Verb, next echo.HandlerFunc) echo.HandlerFunc {
	return g.allow(v, func(c echo.Context) (Grant, error) {
		_, err := g.Readable(c, of, v, nil)
		return Grant{}, err
	}, func(c echo.Context, _ Grant) error { return next(c) })
}

func (g *Guard) allow(v policy.Verb, authorize func(echo.Context) (Grant, error), next Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		may, err := authorize(c)
		if err != nil {
			return err
		}
		if levelOf(v) == flow.Writes {
			if err := g.audit.Writable(); err != nil {
				httpserver.Annotate(c.Request().Context(), slog.String("refused", "audit log: "+err.Error()))
				return httpio.Beyond("audit", apierrors.NewServiceUnavailable("the audit log cannot be written at present and writes are refused without it: "+
					"reads and watches go on, writes will once the operator has mended it"))
			}
		}
		seat, err := g.sit(c, v)
		if err != nil {
			return err
		}
		defer seat.Release()
		return next(c, may)
	}
}

// Authorize returns what the caller may do with the verb of its request on what the path
// names, or an error if that is nothing.
func (g *Guard) Authorize(c echo.Context, of schema.GroupResource, v policy.Verb) (Grant, error) {
	httpserver.SetVerb(c.Request().Context(), v.String())
	return g.Grant(c, of, v, c.Param("namespace"), c.Param("name"))
}

// forbidden is the 403 for a caller that lacks a right, and the scope that would give it.
func (g *Guard) forbidden(caller *bearer.Caller, of schema.GroupResource, v policy.Verb, namespace, name, rule string) error {
	err := Forbidden(caller.Subject, of, v.String(), namespace, name, rule)
	if scope := g.Policy().Scope(v); scope != "" {
		const path = "" // of the API as a whole: no path has scopes of its own
		return &scopeError{err, bearer.Challenge(bearer.InsufficientScope(g.Resource.Scope(path, scope)), g.Resource.Metadata(path))}
	}
	return err
}

// Forbidden is a 403 in the words of kube-apiserver, followed by the reason.
func Forbidden(user string, of schema.GroupResource, verb, namespace, name, reason string) *apierrors.StatusError {
	where := "at the cluster scope"
	if namespace != policy.AllNamespaces {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	return apierrors.NewForbidden(of, name, fmt.Errorf("User %q cannot %s resource %q in API group %q %s: %s", //nolint:staticcheck // clients know this text
		user, verb, of.Resource, of.Group, where, reason))
}

// scopeError is a 403 for a caller that lacks a scope, with the challenge that says so (RFC 6750 section 3.1).
type scopeError struct {
	*apierrors.StatusError
	challenge string
}

// Challenge is sent by [httpio.IO.Fail].
func (e *scopeError) Challenge() string { return e.challenge }
