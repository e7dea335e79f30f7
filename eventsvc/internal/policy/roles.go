package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/policy/pattern"
)

// maxFile is the largest policy file in bytes.
const maxFile = 1 << 20

// Options are what a policy file may refer to.
type Options struct {
	// Issuers are those whose tokens are accepted.
	Issuers []string
	// Default is the one of subjects that name none, and of the tokens whose scopes
	// give built-in roles. Empty: subjects must name theirs, and no scopes do that.
	Default string
	// Aliases are other names of some of them, which subjects may use.
	Aliases map[string]string
	// Claims are the claims that are read from the tokens of each issuer. A subject with
	// another claim would never match, so it is an error.
	Claims map[string][]string
}

// file is a policy file as it is written.
type file struct {
	roles         []role
	bindings      []binding
	builtinScopes bool
}

type role struct {
	line  int
	name  string
	rules []rule
}

type rule struct {
	line     int
	verbs    Verb
	in       pattern.List // namespaces
	clusters pattern.List
}

type binding struct {
	line     int
	role     string
	in       pattern.List // namespaces to which it limits the role
	clusters pattern.List // likewise
	subjects []subject
}

type subject struct {
	line                          int
	issuer                        string
	clientID, scope, claim, value string
	anyone                        bool
}

// Parse reads a policy file. The error names each wrong line, its field, and what to
// write instead.
func Parse(data []byte, o Options) (*Policy, error) {
	if len(o.Issuers) == 0 {
		return nil, errors.New("policy: no issuer is configured")
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	f, err := decode(data)
	if err != nil {
		return nil, err
	}
	return f.compile(o)
}

// builtin returns the roles that every policy has.
func builtin() []role {
	everywhere := func(v Verb) []rule { return []rule{{verbs: v, in: pattern.Everything, clusters: pattern.Everything}} }
	return []role{
		{name: RoleRead, rules: everywhere(reading)},
		{name: RoleWrite, rules: everywhere(writing)},
		{name: RoleAdmin, rules: everywhere(all)},
	}
}

// compile resolves the references of the file and orders its grants by subject.
func (f *file) compile(o Options) (*Policy, error) {
	p := &Policy{scopes: f.builtinScopes, issuers: map[string]*table{}}
	for _, issuer := range o.Issuers {
		p.issuers[issuer] = &table{
			clients: map[string][]*grant{}, scopes: map[string][]*grant{},
		}
	}
	var errs []error
	roles := map[string]role{}
	for _, r := range slices.Concat(builtin(), f.roles) {
		if _, taken := roles[r.name]; taken {
			errs = append(errs, at(r.line, "roles.name", "%q is there already: choose another name", r.name))
		}
		roles[r.name] = r
	}
	if t := p.issuers[o.Default]; t != nil && f.builtinScopes {
		for _, r := range builtin() {
			t.scopes[r.name] = grants(r, fmt.Sprintf("the token's scope %q", r.name), binding{in: pattern.Everything, clusters: pattern.Everything})
		}
	}
	for _, b := range f.bindings {
		r, ok := roles[b.role]
		if !ok {
			errs = append(errs, at(b.line, "bindings.role", "there is no role %q: define it under roles, or use %s, %s or %s",
				b.role, RoleRead, RoleWrite, RoleAdmin))
			continue
		}
		given := grants(r, fmt.Sprintf("role %q, bound in line %d", r.name, b.line), b)
		for _, s := range b.subjects {
			errs = append(errs, p.bind(s, given, o))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err // never apply a part of a policy
	}
	p.unreachable = f.unreachable(roles)
	return p, nil
}

// unreachable names each role, rule and binding that can allow nothing, or nothing that is not allowed before it.
func (f *file) unreachable(roles map[string]role) (texts []string) {
	warn := func(line int, field, format string, args ...any) {
		texts = append(texts, at(line, field, format, args...).Error())
	}
	bound, reached := map[string]bool{}, map[string]map[int]bool{} // by role; the latter the indexes of its rules
	for _, b := range f.bindings {
		bound[b.role] = true
		reaches := map[int]bool{}
		for i, rule := range roles[b.role].rules {
			if in, clusters := b.limit(rule); len(in) > 0 && len(clusters) > 0 {
				reaches[i] = true
			}
		}
		if len(reaches) == 0 {
			warn(b.line, "bindings", "the binding allows nothing: no rule of role %q is for any of its namespaces and clusters", b.role)
			continue
		}
		if reached[b.role] == nil {
			reached[b.role] = map[int]bool{}
		}
		maps.Copy(reached[b.role], reaches)
	}
	for _, r := range f.roles {
		if !bound[r.name] {
			warn(r.line, "roles", "no binding gives role %q to anybody: add one, or take the role out", r.name)
			continue
		}
		for i, own := range r.rules {
			wider := slices.IndexFunc(r.rules[:i], func(before rule) bool { return before.includes(own) })
			switch {
			case wider >= 0:
				warn(own.line, "roles.rules", "rule %d of role %q can never decide: rule %d before it allows all of it", i+1, r.name, wider+1)
			case len(reached[r.name]) > 0 && !reached[r.name][i]:
				warn(own.line, "roles.rules", "rule %d of role %q allows nothing: no binding gives the role in any of its namespaces and clusters", i+1, r.name)
			}
		}
	}
	return texts
}

// includes reports whether a rule allows everything that another one allows.
func (r rule) includes(other rule) bool {
	return r.verbs&other.verbs == other.verbs && r.in.CoversAll(other.in) && r.clusters.CoversAll(other.clusters)
}

// limit returns the namespaces and clusters of a rule that are those of the binding too.
func (b binding) limit(r rule) (in, clusters pattern.List) {
	return pattern.Intersect(r.in, b.in), pattern.Join(pattern.Intersect(r.clusters, b.clusters), nil)
}

// grants returns the rules of a role that allow something within the limits of a binding.
func grants(r role, name string, b binding) []*grant {
	var list []*grant
	for i, rule := range r.rules {
		g := &grant{name: name, verbs: rule.verbs}
		if g.in, g.clusters = b.limit(rule); len(g.in) == 0 || len(g.clusters) == 0 {
			continue
		}
		if len(r.rules) > 1 {
			g.name = fmt.Sprintf("%s, rule %d", name, i+1)
		}
		if !g.clusters.All() {
			g.name += fmt.Sprintf(", for events of the clusters %q", []string(g.clusters))
		}
		list = append(list, g)
	}
	return list
}

// bind adds the grants of a binding to one of its subjects.
func (p *Policy) bind(s subject, given []*grant, o Options) error {
	if issuer, ok := o.Aliases[s.issuer]; ok {
		s.issuer = issuer
	}
	issuers := []string{s.issuer}
	switch {
	case s.issuer == "" && o.Default == "":
		return at(s.line, "subjects.issuer", "is missing, and --issuer is not set: name the issuer of the subject, one of %s or \"*\"", strings.Join(o.Issuers, ", "))
	case s.issuer == "":
		issuers = []string{o.Default}
	case s.issuer == "*":
		issuers = o.Issuers
	case p.issuers[s.issuer] == nil:
		return at(s.line, "subjects.issuer", "%q is no issuer whose tokens are accepted: use %s or \"*\"", s.issuer, strings.Join(o.Issuers, ", "))
	}
	if s.claim != "" && !slices.ContainsFunc(issuers, func(issuer string) bool { return slices.Contains(o.Claims[issuer], s.claim) }) {
		return at(s.line, "subjects.claim", "the claim %q is not read from tokens of %s: add it to --claims, or to the claims of the issuer in --issuers-file", s.claim, strings.Join(issuers, ", "))
	}
	for _, issuer := range issuers {
		t := p.issuers[issuer]
		switch {
		case s.anyone:
			t.everyone = append(t.everyone, given...)
		case s.clientID != "":
			t.clients[s.clientID] = append(t.clients[s.clientID], given...)
		case s.scope != "":
			t.scopes[s.scope] = append(t.scopes[s.scope], given...)
		default:
			i := slices.IndexFunc(t.claims, func(of claim) bool { return of.name == s.claim })
			if i < 0 {
				i, t.claims = len(t.claims), append(t.claims, claim{s.claim, map[string][]*grant{}})
			}
			t.claims[i].values[s.value] = append(t.claims[i].values[s.value], given...)
		}
	}
	return nil
}
