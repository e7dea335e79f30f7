package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tidings.example/eventsvc/internal/policy/pattern"
)

// at returns an error about a line of the file.
func at(line int, field, format string, args ...any) error {
	return fmt.Errorf("line %d: %s: %s", line, field, fmt.Sprintf(format, args...))
}

// decode parses the YAML of a policy file. It walks the YAML tree instead of filling
// structs, so that it finds every mistake and names it with its line and field.
func decode(data []byte) (*file, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty: write at least {}, which leaves the built-in roles to the token's scope")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one YAML document: keep one")
	}
	f := &file{builtinScopes: true}
	r := &reader{}
	r.fields(doc.Content[0], "the file", fields{
		"roles":         func(n *yaml.Node) { f.roles = list(r, n, "roles", r.role) },
		"bindings":      func(n *yaml.Node) { f.bindings = list(r, n, "bindings", r.binding) },
		"builtinScopes": func(n *yaml.Node) { f.builtinScopes = r.boolean(n, "builtinScopes") },
	})
	return f, errors.Join(r.errs...)
}

// reader collects the errors of a file.
type reader struct{ errs []error }

// fields are the known fields of an object, with the function that reads each.
type fields map[string]func(*yaml.Node)

func (r *reader) fail(n *yaml.Node, field, format string, args ...any) {
	const most = 20 // more would not be read
	if len(r.errs) < most {
		r.errs = append(r.errs, at(n.Line, field, format, args...))
	}
}

// fields reads an object. Unknown and duplicate fields are errors.
func (r *reader) fields(n *yaml.Node, where string, known fields) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, where, "must be an object with the fields %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			r.fail(key, where, "unknown field %q: there are %s", key.Value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[key.Value]:
			r.fail(key, key.Value, "is there twice: keep one")
		default:
			seen[key.Value] = true
			read(value)
		}
	}
}

// list reads a list. It returns what read returns for each item.
func list[T any](r *reader, n *yaml.Node, field string, read func(*yaml.Node) T) (items []T) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, field, "must be a list")
		return nil
	}
	for _, item := range n.Content {
		items = append(items, read(item))
	}
	return items
}

// text reads a string that is not empty. A scalar that YAML takes for a number or a
// boolean must be quoted: 1e3 and "1e3" would otherwise mean different names.
func (r *reader) text(n *yaml.Node, field string) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		r.fail(n, field, "must be a text that is not empty: put it in quotation marks")
		return ""
	}
	return n.Value
}

// cluster reads a pattern of clusters, which may be empty.
func (r *reader) cluster(n *yaml.Node, field string) string {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "" {
		return ""
	}
	return r.text(n, field)
}

func (r *reader) boolean(n *yaml.Node, field string) bool {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		r.fail(n, field, "must be true or false")
	}
	return b
}

func (r *reader) role(n *yaml.Node) role {
	out := role{line: n.Line}
	r.fields(n, "roles", fields{
		"name":  func(n *yaml.Node) { out.name = r.text(n, "roles.name") },
		"rules": func(n *yaml.Node) { out.rules = list(r, n, "roles.rules", r.rule) },
	})
	r.required(n, "roles.name", out.name != "")
	r.required(n, "roles.rules", len(out.rules) > 0)
	return out
}

func (r *reader) rule(n *yaml.Node) rule {
	out := rule{line: n.Line, clusters: pattern.Everything}
	r.fields(n, "rules", fields{
		"verbs": func(n *yaml.Node) {
			for _, v := range list(r, n, "rules.verbs", r.verb) {
				out.verbs |= v
			}
		},
		"namespaces": func(n *yaml.Node) { out.in = r.namespaces(n, "rules.namespaces") },
		"clusters":   func(n *yaml.Node) { out.clusters = r.clusters(n, "rules.clusters") },
	})
	r.required(n, "rules.verbs", out.verbs != 0)
	r.required(n, "rules.namespaces", len(out.in) > 0)
	return out
}

func (r *reader) verb(n *yaml.Node) Verb {
	v, err := ParseVerb(r.text(n, "rules.verbs"))
	if err != nil {
		r.fail(n, "rules.verbs", "%v", err)
	}
	return v
}

func (r *reader) binding(n *yaml.Node) binding {
	out := binding{line: n.Line, in: pattern.Everything, clusters: pattern.Everything}
	r.fields(n, "bindings", fields{
		"role":       func(n *yaml.Node) { out.role = r.text(n, "bindings.role") },
		"namespaces": func(n *yaml.Node) { out.in = r.namespaces(n, "bindings.namespaces") },
		"clusters":   func(n *yaml.Node) { out.clusters = r.clusters(n, "bindings.clusters") },
		"subjects":   func(n *yaml.Node) { out.subjects = list(r, n, "bindings.subjects", r.subject) },
	})
	r.required(n, "bindings.role", out.role != "")
	r.required(n, "bindings.subjects", len(out.subjects) > 0)
	return out
}

func (r *reader) subject(n *yaml.Node) subject {
	out := subject{line: n.Line}
	into := func(name string, to *string) func(*yaml.Node) {
		return func(n *yaml.Node) { *to = r.text(n, "subjects."+name) }
	}
	r.fields(n, "subjects", fields{
		"issuer": into("issuer", &out.issuer), "clientID": into("clientID", &out.clientID), "scope": into("scope", &out.scope),
		"claim": into("claim", &out.claim), "value": into("value", &out.value),
		"anyone": func(n *yaml.Node) { out.anyone = r.boolean(n, "subjects.anyone") },
	})
	ways := 0
	for _, way := range []bool{out.clientID != "", out.scope != "", out.claim != "" || out.value != "", out.anyone} {
		if way {
			ways++
		}
	}
	if ways != 1 || (out.claim == "") != (out.value == "") {
		r.fail(n, "subjects", "needs exactly one of clientID, scope, claim with value, or anyone: true")
	}
	return out
}

func (r *reader) namespaces(n *yaml.Node, field string) pattern.List {
	return r.patterns(n, field, r.text, pattern.Check)
}

func (r *reader) clusters(n *yaml.Node, field string) pattern.List {
	return r.patterns(n, field, r.cluster, pattern.CheckCluster)
}

// patterns reads a list of patterns, which must not be empty.
func (r *reader) patterns(n *yaml.Node, field string, read func(*yaml.Node, string) string, check func(string) error) pattern.List {
	out := list(r, n, field, func(n *yaml.Node) string {
		text := read(n, field)
		if err := check(text); err != nil {
			r.fail(n, field, "%v", err)
		}
		return text
	})
	r.required(n, field, len(out) > 0)
	return out
}

// required reports a missing field, unless there is another error, which may be the
// reason.
func (r *reader) required(n *yaml.Node, field string, ok bool) {
	if !ok && len(r.errs) == 0 {
		r.fail(n, field, "is missing or empty")
	}
}
