package ctl

import (
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/shared/cli"
)

// shortFields are those that completion offers.
var shortFields = []string{"type", "reason", "kind", "name", "namespace", "reporter", "cluster", "owner", "node", "uid"}

// searchOf returns arguments as the search of a query. An argument of several words is a phrase, as the shell has taken
// away the quotation marks, unless it has more in it than words.
func searchOf(args []string) (string, error) {
	parts := make([]string, len(args))
	for i, arg := range args {
		parts[i] = arg
		if !strings.ContainsAny(arg, " \t\n") {
			continue
		}
		if e, err := search.Parse(arg); err == nil && onlyWords(e) && !strings.Contains(arg, `"`) {
			parts[i] = `"` + arg + `"`
		} else {
			parts[i] = "(" + arg + ")"
		}
	}
	text := strings.Join(parts, " ")
	if _, err := search.Parse(text); err != nil {
		return "", cli.Usagef("search %s: %w", text, err)
	}
	return text, nil
}

// onlyWords reports whether an expression is words, all of which have to match.
func onlyWords(e *search.Expr) bool {
	return !slices.ContainsFunc(e.Conjuncts(), func(part *search.Expr) bool { return part.Kind != search.Word || part.Note })
}
