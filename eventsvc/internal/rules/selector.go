package rules

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// selectorTerm requires that a field has one of some values or, with Not, none of them.
type selectorTerm struct {
	Field  string
	Values []string
	Not    bool
}

// termOfSet is the begin of a term on several values.
var termOfSet = regexp.MustCompile(`^\s*([A-Za-z.]+)\s+(in|notin)\s*\(`)

// parseSelector reads the terms of a selector, in their order. They are those of Kubernetes' field selectors,
// field=value and field!=value, besides field in (a,b) and field notin (a,b). As there, a backslash stands before a
// comma, an equal sign or a backslash that belongs to a value; between parentheses, also before a closing one. Blanks
// around the terms and the values between parentheses do not count.
func parseSelector(selector string) ([]selectorTerm, error) {
	var terms []selectorTerm
	for rest := selector; rest != ""; {
		var (
			t   selectorTerm
			err error
		)
		if begin := termOfSet.FindStringSubmatch(rest); begin != nil {
			t.Field, t.Not = begin[1], begin[2] == "notin"
			if t.Values, rest, err = cutSet(rest[len(begin[0]):]); err != nil {
				return nil, fmt.Errorf("%s %s: %w", begin[1], begin[2], err)
			}
			terms = append(terms, t)
			continue
		}
		end := indexUnescaped(rest, ",")
		one, err := fields.ParseSelector(strings.TrimLeft(rest[:end], " \t\n\r"))
		if err != nil {
			return nil, err
		}
		for _, r := range one.Requirements() { // none between two commas
			terms = append(terms, selectorTerm{r.Field, []string{r.Value}, r.Operator == selection.NotEquals})
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return terms, nil
}

// cutSet splits off the values up to a closing parenthesis, and the comma behind it.
func cutSet(text string) (values []string, rest string, err error) {
	for {
		end := indexUnescaped(text, ",)")
		if end == len(text) {
			return nil, "", fmt.Errorf("%q has no closing parenthesis", text)
		}
		value, err := fields.UnescapeValue(strings.ReplaceAll(strings.TrimSpace(text[:end]), `\)`, `)`))
		switch {
		case err != nil:
			return nil, "", err
		case value == "":
			return nil, "", fmt.Errorf("there is an empty value: take it out, or write field= for events without one")
		}
		values = append(values, value)
		closed := text[end] == ')'
		if text = text[end+1:]; closed {
			break
		}
	}
	rest = strings.TrimLeft(text, " \t\n\r")
	if rest != "" && !strings.HasPrefix(rest, ",") {
		return nil, "", fmt.Errorf("%q behind the closing parenthesis is no further term: write a comma before it", rest)
	}
	return values, strings.TrimPrefix(rest, ","), nil
}

// indexUnescaped returns the place of the first of some characters before which there is no backslash, or the length of
// the text.
func indexUnescaped(text, characters string) int {
	escaped := false
	for i := range len(text) {
		switch {
		case escaped:
			escaped = false
		case text[i] == '\\':
			escaped = true
		case strings.IndexByte(characters, text[i]) >= 0:
			return i
		}
	}
	return len(text)
}
