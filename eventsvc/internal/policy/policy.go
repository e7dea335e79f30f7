// Package policy decides who may do what: which callers may use which verbs on
// the events of which namespaces, and of which clusters.
//
// A policy file ([Parse]) resembles Kubernetes' RBAC. A role is a list of rules, a rule allows
// verbs in namespaces, and bindings give roles to callers. No rule denies anything: a
// request that no rule allows is refused.
//
//	roles:
//	  - name: build-writer
//	    rules:
//	      - verbs: [create, patch]
//	        namespaces: [build, ci-*]
//	bindings:
//	  - role: build-writer
//	    subjects:
//	      - clientID: build-server
//	  - role: events:read          # built in
//	    namespaces: [team-a-*]     # limits the role to these
//	    clusters: [eu-*]           # and to events of these
//	    subjects:
//	      - claim: groups
//	        value: team-a
//
// The pattern "*" matches every namespace, and only it allows requests across all namespaces. "ci-*" matches every
// namespace with that prefix, but allows no requests across them. Rules and bindings that name no clusters are for
// events of all of them. A subject matches tokens of the first issuer only, unless it names an issuer, because
// different issuers may give the same client id to different clients.
package policy

import (
	"fmt"

	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/shared/bearer"
)

// The built-in roles. A token whose scope has the name of one has the role in
// all namespaces, unless the policy file says builtinScopes: false.
const (
	RoleRead  = "events:read"  // get, list, watch
	RoleWrite = "events:write" // create, update, patch
	RoleAdmin = "events:admin" // every verb
)

// AllNamespaces is the namespace of a request across all namespaces.
const AllNamespaces = ""

// Decision says whether a request is allowed.
type Decision struct {
	Allowed bool
	// Clusters are those whose events it is allowed for, as [pattern.Join] writes them; the name of those without one
	// is empty. A refused request has none.
	Clusters pattern.List
	// Rule has the rules that allow the request, or the reason of a refusal.
	Rule string
}

// Of narrows a decision to the events of one cluster; nil: it stays as it is.
func (d Decision) Of(cluster *string) Decision {
	if cluster == nil || !d.Allowed || d.Clusters.Match(*cluster) {
		return d
	}
	return Decision{Rule: fmt.Sprintf("no rule allows this for events of the cluster %q, only these do for others: %s", *cluster, d.Rule)}
}

// Policy is an immutable set of rules. It is safe for concurrent use.
type Policy struct {
	open    bool
	scopes  bool              // scopes give built-in roles
	issuers map[string]*table // by the issuer of the token

	unreachable []string
}

// Unreachable returns the rules and bindings that can never allow anything, with line and reason.
func (p *Policy) Unreachable() []string { return p.unreachable }

// table has the grants of the callers of one issuer, by kind of subject.
type table struct {
	clients, scopes map[string][]*grant
	claims          []claim // in the order of the file
	everyone        []*grant
}

// claim has the grants of one claim.
type claim struct {
	name   string
	values map[string][]*grant
}

// grant is one rule of a role as one binding gives it.
type grant struct {
	name     string // of the rule and the binding, for explanations
	verbs    Verb
	in       pattern.List // namespaces
	clusters pattern.List
}

func (g *grant) allows(v Verb, namespace string) bool { return g.verbs&v == v && g.in.Match(namespace) }

// AllowAll returns the policy that is in force without a file: every authenticated caller
// may do everything.
func AllowAll() *Policy { return &Policy{open: true} }

// openRule is the rule of the open policy.
const openRule = "there is no policy file: every authenticated caller may do everything"

// Decide reports whether a caller may use a verb on the events of a namespace, or of
// [AllNamespaces], and of which clusters. It costs a few map lookups, and allocates nothing
// if one rule allows the request.
func (p *Policy) Decide(c *bearer.Caller, v Verb, namespace string) (d Decision) {
	if p.open {
		return Decision{Allowed: true, Clusters: pattern.Everything, Rule: openRule}
	}
	for g := range p.grants(c) {
		switch {
		case !g.allows(v, namespace):
		case g.clusters.All():
			return Decision{Allowed: true, Clusters: g.clusters, Rule: g.name}
		case !d.Allowed:
			d = Decision{Allowed: true, Clusters: g.clusters, Rule: g.name}
		case !d.Clusters.CoversAll(g.clusters):
			d.Clusters, d.Rule = pattern.Join(d.Clusters, g.clusters), d.Rule+"; "+g.name
		}
	}
	if !d.Allowed {
		d.Rule = p.missing(v, namespace)
	}
	return d
}

// Scope returns the scope that would allow a verb everywhere, or "" if the policy gives
// no roles to scopes.
func (p *Policy) Scope(v Verb) string {
	if !p.scopes {
		return ""
	}
	return v.scope()
}

// missing returns the reason of a refusal, with what the caller would need.
func (p *Policy) missing(v Verb, namespace string) string {
	where := fmt.Sprintf("in the namespace %q", namespace)
	if namespace == AllNamespaces {
		where = `across all namespaces (namespaces: ["*"])`
	}
	text := fmt.Sprintf("no rule of the policy allows this client to %s %s", v, where)
	if p.scopes {
		text += fmt.Sprintf(", nor has its token the scope %q", v.scope())
	}
	return text
}

// grants iterates over the grants of one caller.
func (p *Policy) grants(c *bearer.Caller) func(yield func(*grant) bool) {
	return func(yield func(*grant) bool) {
		t := p.issuers[c.Issuer]
		if t == nil {
			return
		}
		each := func(list []*grant) bool {
			for _, g := range list {
				if !yield(g) {
					return false
				}
			}
			return true
		}
		if !each(t.clients[c.ClientID]) || !each(t.everyone) {
			return
		}
		for _, scope := range c.Scopes {
			if !each(t.scopes[scope]) {
				return
			}
		}
		for _, of := range t.claims {
			for _, value := range c.Claims[of.name] {
				if !each(of.values[value]) {
					return
				}
			}
		}
	}
}

// Rule is a set of verbs that a caller may use in some namespaces, on events of some clusters.
type Rule struct {
	Verbs      Verb
	Namespaces pattern.List
	Clusters   pattern.List
	Name       string
}

// Rules returns everything that a caller may do, for self subject reviews. If a binding
// limits a rule, its namespaces and clusters are those of both.
func (p *Policy) Rules(c *bearer.Caller) []Rule {
	if p.open {
		return []Rule{{Verbs: all, Namespaces: pattern.Everything, Clusters: pattern.Everything, Name: openRule}}
	}
	var rules []Rule
	for g := range p.grants(c) {
		rules = append(rules, Rule{Verbs: g.verbs, Namespaces: g.in, Clusters: g.clusters, Name: g.name})
	}
	return rules
}
