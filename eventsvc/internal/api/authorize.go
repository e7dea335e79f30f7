package api

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/service"
)

// access is one thing that a caller does with a resource. A right on the events
// of a namespace is the same right on the namespace itself.
type access struct {
	resource  schema.GroupResource
	verb      policy.Verb
	namespace string // "": across all
	name      string
}

// namespacesResource names namespaces in errors.
var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// guard lets a request through to its handler if the policy allows it. That is
// decided before anything is looked up, so that a refusal tells nothing.
func (s *Server) guard(of schema.GroupResource, v policy.Verb, next echo.HandlerFunc) echo.HandlerFunc {
	next = s.seated(v, next)
	return func(c echo.Context) error {
		if err := s.authorize(c, of, v); err != nil {
			return err
		}
		if err := s.auditable(c, v); err != nil {
			return err
		}
		return next(c)
	}
}

// auditable refuses a write while the audit log cannot be written, if that is
// the setting.
func (s *Server) auditable(c echo.Context, v policy.Verb) error {
	if !writes(v) {
		return nil
	}
	err := s.Audit.Writable()
	if err == nil {
		return nil
	}
	service.Annotate(c.Request().Context(), slog.String("refused", "audit log: "+err.Error()))
	return beyond("audit", apierrors.NewServiceUnavailable("the audit log cannot be written at present and writes are refused without it: reads and watches go on, "+
		"writes will once the operator has mended it"))
}

// may guards a handler of events.
func (r *resource) may(v policy.Verb, next echo.HandlerFunc) echo.HandlerFunc {
	return r.guard(r.groupResource, v, next)
}

// authorize is an error unless the caller may use the verb that the request is
// for.
func (s *Server) authorize(c echo.Context, of schema.GroupResource, v policy.Verb) error {
	service.SetVerb(c.Request().Context(), v.String())
	return s.allow(c, of, v)
}

// allow is an error unless the caller may use a verb on what the path names.
func (s *Server) allow(c echo.Context, of schema.GroupResource, v policy.Verb) error {
	caller, ok := bearer.FromContext(c.Request().Context())
	if !ok {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	a := access{resource: of, verb: v, namespace: c.Param("namespace"), name: c.Param("name")}
	d := s.Policy().Decide(caller, v, a.namespace)
	audit.Decided(c.Request().Context(), audit.Decision{
		Verb: v.String(), Group: of.Group, Resource: of.Resource, Namespace: a.namespace, Name: a.name, Allowed: d.Allowed, Rule: d.Rule,
	})
	if d.Allowed {
		return nil
	}
	if of == namespacesResource {
		a.name = a.namespace
	} else if a.name == "" {
		a.name = nameSelected(c)
	}
	return s.forbidden(caller, a, d.Rule)
}

// nameSelected is the name that a list or watch selects. The original takes it
// for the name of the request.
func nameSelected(c echo.Context) string {
	text := query(c.Request()).Get("fieldSelector")
	if text == "" {
		return ""
	}
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// forbiddenError is a 403, with the scope of a token that would help.
type forbiddenError struct {
	*apierrors.StatusError
	scope string
}

// forbidden is the original's text for something that is not allowed, followed
// by what is missing.
func (s *Server) forbidden(caller *bearer.Caller, a access, missing string) error {
	where := "at the cluster scope"
	if a.namespace != policy.AllNamespaces {
		where = fmt.Sprintf("in the namespace %q", a.namespace)
	}
	return &forbiddenError{
		StatusError: apierrors.NewForbidden(a.resource, a.name, fmt.Errorf("User %q cannot %s resource %q in API group %q %s: %s", //nolint:staticcheck // clients know this text
			caller.Subject, a.verb, a.resource.Resource, a.resource.Group, where, missing)),
		scope: s.Policy().Scope(a.verb),
	}
}

// challenge names the scope that a refused caller lacks (RFC 6750 section 3.1),
// "" if it is something else.
func challenge(err error) string {
	var refused *forbiddenError
	if !errors.As(err, &refused) || refused.scope == "" {
		return ""
	}
	return bearer.Challenge(bearer.InsufficientScope(refused.scope))
}
