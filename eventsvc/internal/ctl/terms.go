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

// phrase returns an argument as a part of a text.
func phrase(arg string) string {
	if strings.ContainsAny(arg, " \t\n") && !strings.Contains(arg, `"`) {
		return `"` + arg + `"`
	}
	return arg
}

// words are what a note has to contain, and what it must not: all of them, in upper or lower case.
type words struct{ wanted, excluded []string }

// parseWords reads text as the API does: words, and phrases in quotation marks. A minus before one of them excludes it.
func parseWords(args []string) (w words, err error) {
	for _, arg := range args {
		parts := strings.Split(phrase(arg), `"`)
		if len(parts)%2 == 0 {
			return w, cli.Usagef("%s has a quotation mark without a second one: close the phrase", arg)
		}
		minus := false // before the phrase that follows
		for i, part := range parts {
			if i%2 == 1 {
				w.add(part, minus)
				continue
			}
			all := strings.Fields(part)
			last := len(all) - 1
			if minus = i+1 < len(parts) && last >= 0 && all[last] == "-" && strings.HasSuffix(part, "-"); minus {
				all = all[:last]
			}
			for _, word := range all {
				rest, excluded := strings.CutPrefix(word, "-")
				if rest == "" { // a minus alone is a word
					rest, excluded = word, false
				}
				w.add(rest, excluded)
			}
		}
	}
	return w, nil
}

func (w *words) add(word string, excluded bool) {
	if excluded {
		w.excluded = append(w.excluded, fold(word))
		return
	}
	w.wanted = append(w.wanted, fold(word))
}

// search is the search for these words, in notes alone.
func (w words) search() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	var terms []string
	for _, word := range w.wanted {
		terms = append(terms, `note:"`+quote(word)+`"`)
	}
	for _, word := range w.excluded {
		terms = append(terms, `-note:"`+quote(word)+`"`)
	}
	return strings.Join(terms, " ")
}

// in reports whether a note contains all words and phrases, and none that is excluded.
func (w words) in(note string) bool {
	note = fold(note)
	contained := func(word string) bool { return strings.Contains(note, word) }
	return !slices.ContainsFunc(w.excluded, contained) &&
		!slices.ContainsFunc(w.wanted, func(word string) bool { return !contained(word) })
}

// fold makes texts equal that differ in upper and lower case only. Some characters have two forms in lower case and one
// in upper case.
func fold(text string) string { return strings.ToLower(strings.ToUpper(text)) }
