package apitest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// Right is a rule of a policy.
type Right struct {
	Verbs                string // * or names, separated by commas
	Namespaces, Clusters []string
}

// ClusteredPolicy writes a policy that gives rights to clients.
func ClusteredPolicy(of map[string][]Right) string {
	var roles, bindings strings.Builder
	for client, rights := range of {
		fmt.Fprintf(&roles, "- name: %s\n  rules:\n", client)
		for _, r := range rights {
			fmt.Fprintf(&roles, "  - {verbs: [%s], namespaces: %s", quoted(strings.Split(r.Verbs, ",")), "["+quoted(r.Namespaces)+"]")
			if r.Clusters != nil {
				fmt.Fprintf(&roles, ", clusters: [%s]", quoted(r.Clusters))
			}
			roles.WriteString("}\n")
		}
		fmt.Fprintf(&bindings, "- {role: %s, subjects: [{clientID: %s}]}\n", client, client)
	}
	return "builtinScopes: false\nroles:\n" + roles.String() + "bindings:\n" + bindings.String() + "- {role: events:admin, subjects: [{clientID: root}]}\n"
}

func quoted(texts []string) string {
	var out []string
	for _, text := range texts {
		out = append(out, "'"+text+"'")
	}
	return strings.Join(out, ", ")
}

// Issuer issues the tokens that [ByName] knows.
const Issuer = "https://issuer.example"

// ByName makes of a token "client scope scope…" the caller who says so.
func ByName(_ context.Context, token string) (*bearer.Caller, error) {
	words := strings.Fields(strings.ReplaceAll(token, "+", " "))
	return &bearer.Caller{Issuer: Issuer, Subject: words[0], ClientID: words[0], Scopes: words[1:], KeyID: "k1"}, nil
}

// ParsePolicy parses a policy for the callers of [ByName].
func ParsePolicy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), policy.Options{Issuers: []string{Issuer}, Default: Issuer})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// NewPolicyWorld has a policy that can be replaced. The caller "root" may do everything.
func NewPolicyWorld(t *testing.T, text string, changes ...func(*api.Config)) (*World, *atomic.Pointer[policy.Policy]) {
	t.Helper()
	var current atomic.Pointer[policy.Policy]
	current.Store(ParsePolicy(t, text))
	changes = append(changes, func(c *api.Config) { c.Verify, c.Policy = ByName, current.Load })
	return New(t, changes...), &current
}

// As sends a request in the name of a caller.
func (w *World) As(token, method, path, body string, headers ...string) *Answer {
	w.T.Helper()
	return w.Do(method, path, body, append(headers, "Authorization", "Bearer "+token)...)
}

// Rights says what a caller of the matrix may do in a namespace, "" for all. It
// is written by hand, apart from the policy.
func Rights(caller, namespace string) []string {
	reading, writing := []string{"get", "list", "watch"}, []string{"create", "update", "patch"}
	name, scopes, _ := strings.Cut(caller, "+")
	var out []string
	for scope := range strings.SplitSeq(scopes, "+") {
		switch scope {
		case "events:read":
			out = append(out, reading...)
		case "events:write":
			out = append(out, writing...)
		case "events:admin":
			out = slices.Concat(out, reading, writing, []string{"delete", "deletecollection"})
		}
	}
	switch {
	case name == "root":
		return append(out, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
	case strings.HasPrefix(name, "only-"):
		return append(out, strings.TrimPrefix(name, "only-"))
	case name == "team" && namespace == "team-a":
		return slices.Concat(out, reading, writing)
	case name == "prefix" && strings.HasPrefix(namespace, "team-"):
		return slices.Concat(out, reading, []string{"delete"})
	}
	return out
}

const matrixPolicy = `
roles:
  - {name: team, rules: [{verbs: [get, list, watch, create, update, patch], namespaces: [team-a]}]}
  - {name: prefix, rules: [{verbs: [get, list, watch, delete], namespaces: [team-*]}]}
`

// Verbs are those of events.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// FullMatrixPolicy has a client for each verb, and some for namespaces.
func FullMatrixPolicy() string {
	var roles, bindings strings.Builder
	for _, verb := range Verbs {
		fmt.Fprintf(&roles, "  - {name: only-%s, rules: [{verbs: [%s], namespaces: ['*']}]}\n", verb, verb)
		fmt.Fprintf(&bindings, "  - {role: only-%s, subjects: [{clientID: only-%s}]}\n", verb, verb)
	}
	return matrixPolicy + roles.String() + "bindings:\n  - {role: 'events:admin', subjects: [{clientID: root}]}\n" +
		"  - {role: team, subjects: [{clientID: team}]}\n  - {role: prefix, subjects: [{clientID: prefix}]}\n" + bindings.String()
}
