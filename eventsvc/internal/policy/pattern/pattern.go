// Package pattern has the patterns of namespaces and of clusters, as policies and rules of what to keep write them: a
// name, the beginning of names and a star, or a star.
package pattern

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// List is a list of patterns. An empty one matches nothing. It is safe for concurrent use.
type List []string

// Everything matches every name.
var Everything = List{"*"}

// Match reports whether a pattern matches a name. A beginning and a star does not match the empty name, which stands
// for a request across all namespaces, or for events without a cluster.
func (l List) Match(name string) bool {
	for _, pattern := range l {
		prefix, open := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == name, pattern == "*":
			return true
		case open && name != "" && strings.HasPrefix(name, prefix):
			return true
		}
	}
	return false
}

// All reports whether the patterns match every name.
func (l List) All() bool { return slices.Contains(l, "*") }

// Join returns patterns for the names that one of the lists matches. Lists that match the same names are equal
// afterwards: the patterns are sorted, and none covers another.
func Join(a, b List) List {
	both := slices.Concat(a, b)
	slices.Sort(both)
	both = slices.Compact(both)
	return slices.DeleteFunc(slices.Clone(both), func(pattern string) bool {
		return slices.ContainsFunc(both, func(wider string) bool { return wider != pattern && covers(wider, pattern) })
	})
}

// covers reports whether a pattern matches everything that another one does.
func covers(wider, pattern string) bool {
	prefix, open := strings.CutSuffix(wider, "*")
	return wider == pattern || open && strings.HasPrefix(pattern, prefix)
}

// Covers reports whether one of the patterns matches everything that a pattern does.
func (l List) Covers(pattern string) bool {
	return slices.ContainsFunc(l, func(wider string) bool { return covers(wider, pattern) })
}

// CoversAll reports whether the patterns match everything that others do.
func (l List) CoversAll(others List) bool {
	return !slices.ContainsFunc(others, func(pattern string) bool { return !l.Covers(pattern) })
}

// Intersect returns patterns for the names that both lists match. If two patterns overlap, one covers the other.
func Intersect(a, b List) List {
	var both List
	add := func(pattern string, other List) {
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

// CheckCluster returns an error if a pattern can match no cluster. The empty pattern matches events without a cluster.
func CheckCluster(pattern string) error {
	prefix, open := strings.CutSuffix(pattern, "*")
	if open {
		prefix += "x" // a name that has this prefix
	}
	if strings.Contains(prefix, "*") || len(validation.IsValidLabelValue(prefix)) > 0 {
		return fmt.Errorf("no cluster can match %q: write the name of a cluster, its beginning and a star (eu-*), or \"\" for events without the label of clusters", pattern)
	}
	return nil
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
