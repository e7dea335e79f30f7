package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// Readable is the set of namespaces that a request may look at. The zero value is empty.
type Readable struct {
	names []string    // sorted, if the request has named them
	rule  policy.Rule // with the patterns that the caller has been granted, if it has not
}

// Readable returns the namespaces in which the caller may use a verb: those that the
// request has asked for, or all that the policy grants if it has asked for none. The
// decision is for this request only. It is recorded as that of [Guard.Authorize].
//
// A namespace that was asked for and is not granted is the 403 that its list would be.
// So is the request of a caller without any rights, at the cluster scope. The answer to
// any other must say what it is restricted to, see [Readable.Namespaces].
func (g *Guard) Readable(c echo.Context, of schema.GroupResource, v policy.Verb, asked []string) (Readable, error) {
	ctx := c.Request().Context()
	httpserver.SetVerb(ctx, v.String())
	caller, ok := bearer.FromContext(ctx)
	if !ok {
		return Readable{}, apierrors.NewUnauthorized("Unauthorized")
	}
	in, refused, d := readable(g.Policy(), caller, v, asked)
	audit.Decided(ctx, audit.Decision{
		Verb: v.String(), Group: of.Group, Resource: of.Resource,
		Namespace: cmp.Or(refused, strings.Join(in.Namespaces(), ",")), Allowed: d.Allowed, Rule: d.Rule,
	})
	if !d.Allowed {
		return Readable{}, g.forbidden(caller, of, v, refused, "", d.Rule)
	}
	return in, nil
}

// readable decides on the namespaces of a request. It returns the first that is refused,
// or [policy.AllNamespaces] if the caller has no rights at all.
func readable(p *policy.Policy, caller *bearer.Caller, v policy.Verb, asked []string) (in Readable, refused string, d policy.Decision) {
	if len(asked) > 0 {
		for _, namespace := range asked {
			if d = p.Decide(caller, v, namespace); !d.Allowed {
				return Readable{}, namespace, d
			}
		}
		return Readable{names: sorted(slices.Clone(asked))}, "", d
	}
	if d = p.Decide(caller, v, policy.AllNamespaces); d.Allowed {
		in.rule.Namespaces = []string{"*"}
		return in, "", d
	}
	var rules []string
	for _, rule := range p.Rules(caller) {
		if rule.Verbs&v == v {
			in.rule.Namespaces = append(in.rule.Namespaces, rule.Namespaces...)
			rules = append(rules, rule.Name)
		}
	}
	if len(rules) == 0 {
		return Readable{}, policy.AllNamespaces, d
	}
	in.rule.Namespaces = sorted(in.rule.Namespaces)
	return in, "", policy.Decision{Allowed: true, Rule: strings.Join(sorted(rules), "; ")}
}

// sorted sorts texts and drops those that are there twice.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Allows reports whether a namespace belongs to the set.
func (r Readable) Allows(namespace string) bool {
	if r.names != nil {
		_, found := slices.BinarySearch(r.names, namespace)
		return found
	}
	return r.rule.Covers(namespace)
}

// Namespaces returns what the set is restricted to, sorted: names, or patterns as the
// policy has them (team-*). It is nil if nothing is left out.
func (r Readable) Namespaces() []string {
	switch {
	case r.names != nil:
		return r.names
	case r.rule.Covers(policy.AllNamespaces):
		return nil
	}
	return r.rule.Namespaces
}
