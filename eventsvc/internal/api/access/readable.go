package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// Readable is the set of namespaces that a request may look at, and of the clusters whose events it
// may look at in each. The zero value is empty.
type Readable struct {
	names    []string       // sorted, if the request has named them
	clusters []pattern.List // of each of the names
	rules    []policy.Rule  // granted to the caller, if it has named none
}

// Readable returns the namespaces in which the caller may use a verb: those that the
// request has asked for, or all that the policy grants if it has asked for none. The
// decision is for this request only. It is recorded as [Guard.Authorize] records its own.
//
// A namespace that was asked for and is not granted is the 403 that its list would be.
// So is the request of a caller without any rights, at the cluster scope. The answer to
// any other must say what it is restricted to, see [Readable.Namespaces] and [Readable.Clusters].
func (g *Guard) Readable(c echo.Context, of schema.GroupResource, v policy.Verb, asked []string) (Readable, error) {
	ctx := c.Request().Context()
	httpserver.SetVerb(ctx, v.String())
	caller, err := Caller(ctx)
	if err != nil {
		return Readable{}, err
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
		in.names = sorted(slices.Clone(asked))
		in.clusters = make([]pattern.List, len(in.names))
		for _, namespace := range asked {
			if d = p.Decide(caller, v, namespace); !d.Allowed {
				return Readable{}, namespace, d
			}
			at, _ := slices.BinarySearch(in.names, namespace)
			in.clusters[at] = d.Clusters
		}
		return in, "", d
	}
	if d = p.Decide(caller, v, policy.AllNamespaces); d.Allowed && d.Clusters.All() {
		in.rules = []policy.Rule{{Namespaces: pattern.Everything, Clusters: pattern.Everything}}
		return in, "", d
	}
	var names []string
	for _, rule := range p.Rules(caller) {
		if rule.Verbs&v == v {
			in.rules = append(in.rules, rule)
			names = append(names, rule.Name)
		}
	}
	if len(in.rules) == 0 {
		return Readable{}, policy.AllNamespaces, d
	}
	return in, "", policy.Decision{Allowed: true, Rule: strings.Join(sorted(names), "; ")}
}

// sorted sorts texts and drops those that are there twice.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Allows reports whether the events of a cluster in a namespace belong to the set. The cluster is
// empty for those without one.
func (r Readable) Allows(namespace, cluster string) bool {
	if r.names != nil {
		at, found := slices.BinarySearch(r.names, namespace)
		return found && r.clusters[at].Match(cluster)
	}
	for i := range r.rules {
		if r.rules[i].Namespaces.Match(namespace) && r.rules[i].Clusters.Match(cluster) {
			return true
		}
	}
	return false
}

// Namespaces returns what the set is restricted to, sorted: names, or patterns as the
// policy has them (team-*). It is nil if no namespace is left out.
func (r Readable) Namespaces() []string {
	if r.names != nil {
		return r.names
	}
	return restricted(r.rules, func(rule policy.Rule) pattern.List { return rule.Namespaces })
}

// Clusters returns the clusters to which the set is restricted, sorted: names, or patterns as the
// policy has them (eu-*). It is nil if no cluster is left out. If some rules are for all clusters
// and others are not, it has "*" and the patterns of the others.
func (r Readable) Clusters() []string {
	rules := slices.Clone(r.rules)
	for _, clusters := range r.clusters {
		rules = append(rules, policy.Rule{Clusters: clusters})
	}
	return restricted(rules, func(rule policy.Rule) pattern.List { return rule.Clusters })
}

// restricted returns the patterns of all rules, sorted, or nil if each rule matches everything.
func restricted(rules []policy.Rule, of func(policy.Rule) pattern.List) (all []string) {
	whole := true
	for _, rule := range rules {
		whole = whole && of(rule).All()
		all = append(all, of(rule)...)
	}
	if whole {
		return nil
	}
	return sorted(all)
}
