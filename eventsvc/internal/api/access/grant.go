package access

import (
	"fmt"
	"slices"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/shared/bearer"
)

// Grant is what the policy allows a request: a verb in a namespace, on the events of some clusters. Its zero value
// allows nothing.
//
// An event of another cluster must look as if it were not there. A handler that reads narrows its selector
// ([Grant.Narrow]) or asks about each version ([Grant.Sees]). One that writes answers 404 unless it sees the stored
// version, and asks about the version that it is about to store ([Grant.MayStore]), so that no event changes to another
// cluster.
type Grant struct {
	c         echo.Context
	of        schema.GroupResource
	verb      policy.Verb
	namespace string
	clusters  pattern.List
}

// Handler serves what a request is allowed.
type Handler func(c echo.Context, may Grant) error

// Grant returns what the caller may do with a verb in a namespace, or a 403 if that is nothing. The name is the
// object's; the audit log and the 403 show it. A request about one namespace gets its grant from [Guard.Allow]. A
// request whose body names several namespaces gets one for each from here.
func (g *Guard) Grant(c echo.Context, of schema.GroupResource, v policy.Verb, namespace, name string) (Grant, error) {
	ctx := c.Request().Context()
	caller, err := Caller(ctx)
	if err != nil {
		return Grant{}, err
	}
	d := g.Policy().Decide(caller, v, namespace)
	audit.Decided(ctx, audit.Decision{
		Verb: v.String(), Group: of.Group, Resource: of.Resource, Namespace: namespace, Name: name, Allowed: d.Allowed, Rule: d.Rule,
	})
	if d.Allowed {
		return Grant{c, of, v, namespace, d.Clusters}, nil
	}
	if of == Namespaces {
		name = namespace
	} else if name == "" {
		name = httpio.NameSelected(httpio.QueryOf(c.Request()))
	}
	return Grant{}, g.forbidden(caller, of, v, namespace, name, d.Rule)
}

// Limited reports whether there are events that the request must not learn of.
func (g Grant) Limited() bool { return !g.clusters.All() }

// Sees reports whether a version is of a cluster whose events the request may be about.
func (g Grant) Sees(a event.Attributes) bool {
	return g.clusters.All() || g.clusters.Match(a.Get(event.ClusterLabel))
}

// Narrow returns a selector for what s selects of these clusters.
func (g Grant) Narrow(s *event.Selector) *event.Selector {
	if !g.Limited() {
		return s
	}
	if s == nil {
		s = &event.Selector{}
	}
	s.Clusters = append([]string{}, g.clusters...) // never nil, which selects all clusters
	return s
}

// Holds reports whether a later decision allows the request for the same clusters.
func (g Grant) Holds(d policy.Decision) bool {
	return d.Allowed && slices.Equal(g.clusters, d.Clusters)
}

// MayStore returns the 403 for a version of an event that belongs to another cluster.
func (g Grant) MayStore(name, cluster string) error {
	if g.clusters.Match(cluster) {
		return nil
	}
	caller, _ := bearer.FromContext(g.c.Request().Context()) // the grant is for this one
	return Forbidden(caller.Subject, g.of, g.verb.String(), g.namespace, name, fmt.Sprintf(
		"the label %s is %q, and the policy allows this client the events of the clusters %q", event.ClusterLabel, cluster, []string(g.clusters)))
}
