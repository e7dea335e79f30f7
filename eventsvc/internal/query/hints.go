package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/nearest"
)

// maxHintValues bounds the values of a dimension that are compared with a term.
const maxHintValues = 20_000

// FindHints looks for terms of the search that fit nothing in the range, and for what may have been meant. It is for answers that
// are empty. Values are those of the namespaces that the caller may list.
func (s *Snapshot) FindHints(ctx context.Context, allows func(namespace, cluster string) bool) error {
	if s.query.Terms.search == nil {
		return nil
	}
	values := map[string]map[string]bool{}
	for _, name := range event.DimensionNames {
		values[name] = map[string]bool{}
	}
	onNodes := false // which take longer to look at
	s.query.Terms.search.Terms(func(term *search.Expr, _ bool) { onNodes = onNodes || Dimension(term.Name) == Node })
	err := s.reading(func() error {
		return s.occurrences(ctx, store.Range{Nodes: onNodes, Hours: true}, func(d event.Dimensions) int { // of any namespace: one may be mistyped
			if allows(d.Namespace, d.Cluster) {
				for _, name := range event.DimensionNames {
					if known := values[name]; len(known) < maxHintValues {
						known[*d.Text(name)] = true
					}
				}
			}
			return -1
		}, nil)
	})
	s.query.Terms.search.Terms(func(term *search.Expr, wanted bool) {
		if hint := hintOf(term, values); wanted && hint != "" {
			s.Head.Hints = append(s.Head.Hints, hint)
		}
	})
	return err
}

// hintOf says what may have been meant by a term, empty if nothing is known.
func hintOf(term *search.Expr, values map[string]map[string]bool) string {
	switch {
	case term.Kind == search.Word && !term.Note:
		return hintOfWord(term.Text, values)
	case !term.Dimensional() || term.Kind != search.Field:
		return ""
	}
	known := slices.Sorted(maps.Keys(values[term.Name]))
	if slices.ContainsFunc(known, term.Fits) {
		return ""
	}
	hint := term.Text + " fits nothing in this range"
	for _, value := range term.Values {
		if best := nearest.Name(value, slices.Values(known)); best != "" {
			return hint + ": probably " + best + " was meant"
		}
	}
	return hint
}

// hintOfWord looks for a word among the dimensions that people search for by bare words, and the fields.
func hintOfWord(word string, values map[string]map[string]bool) string {
	if name, _, ok := strings.Cut(word, ":"); ok {
		if best := nearest.Name(name, slices.Values(search.Fields())); best != "" && !strings.Contains(name, " ") {
			return fmt.Sprintf("%s is a word, as there is no field %s: probably %s was meant", word, name, best)
		}
	}
	for _, d := range []Dimension{Reason, Node, Namespace, Kind, Cluster} {
		known := slices.Sorted(maps.Keys(values[string(d)]))
		best := nearest.Name(word, slices.Values(known))
		if best != "" && !strings.Contains(strings.ToLower(best), strings.ToLower(word)) {
			return fmt.Sprintf("%s is perhaps a mistyped %s, which is a %s", word, best, d)
		}
	}
	return ""
}
