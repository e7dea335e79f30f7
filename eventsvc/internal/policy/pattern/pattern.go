// Package pattern has the patterns of namespaces, as policies and rules of what to keep write them: a name, the beginning of
// names and a star, or a star.
package pattern

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Namespaces are patterns. They are safe for concurrent use.
type Namespaces []string

// Match reports whether a pattern matches a namespace. The empty namespace stands for a request across all of them: only the
// pattern "*" matches it.
func (n Namespaces) Match(namespace string) bool {
	for _, pattern := range n {
		prefix, open := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == namespace, pattern == "*":
			return true
		case open && namespace != "" && strings.HasPrefix(namespace, prefix):
			return true
		}
	}
	return false
}

// Covers reports whether one of the patterns matches everything that a pattern does.
func (n Namespaces) Covers(pattern string) bool {
	for _, wider := range n {
		prefix, open := strings.CutSuffix(wider, "*")
		if wider == pattern || open && strings.HasPrefix(pattern, prefix) {
			return true
		}
	}
	return false
}

// CoversAll reports whether the patterns match everything that others do.
func (n Namespaces) CoversAll(others Namespaces) bool {
	return !slices.ContainsFunc(others, func(pattern string) bool { return !n.Covers(pattern) })
}

// Intersect returns patterns for the namespaces that both lists match. If two patterns overlap, one covers the other.
func Intersect(a, b Namespaces) Namespaces {
	var both Namespaces
	add := func(pattern string, other Namespaces) {
		if other.Covers(pattern) && !slices.Contains(both, pattern) {
			both = append(both, pattern)
		}
	}
	for _, pattern := range a {
		add(pattern, b)
	}
	for _, pattern := range b {
		add(pattern, a)
	}
	return both
}

// Check returns an error if a pattern can match no namespace.
func Check(pattern string) error {
	prefix := strings.TrimSuffix(pattern, "*")
	switch {
	case pattern == "*":
		return nil
	case prefix == "" || strings.Contains(prefix, "*"):
		return fmt.Errorf("%q is no pattern: write a namespace, its beginning and a star (team-*), or \"*\"", pattern)
	}
	name := prefix
	if prefix != pattern {
		name = strings.TrimSuffix(prefix, "-") + "x" // a name that has this prefix
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("no namespace can match %q: names have lower case letters, digits and dashes, at most 63", pattern)
	}
	return nil
}
