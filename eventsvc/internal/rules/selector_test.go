package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string][]selectorTerm{
		"":                                nil,
		"type=Warning":                    {{Field: "type", Values: []string{"Warning"}}},
		"type==Warning, reason!=Killing":  {{Field: "type", Values: []string{"Warning"}}, {Field: "reason", Values: []string{"Killing"}, Not: true}},
		"reason in (Pulled, Created)":     {{Field: "reason", Values: []string{"Pulled", "Created"}}},
		" reason notin(A,B) , kind=Pod":   {{Field: "reason", Values: []string{"A", "B"}, Not: true}, {Field: "kind", Values: []string{"Pod"}}},
		"reason in (A),kind in (B*)":      {{Field: "reason", Values: []string{"A"}}, {Field: "kind", Values: []string{"B*"}}},
		`name in (a\,b,c\)d,e\\f)`:        {{Field: "name", Values: []string{"a,b", "c)d", `e\f`}}},
		"reporter in (example.com/a)":     {{Field: "reporter", Values: []string{"example.com/a"}}},
		"reason=in (A,kind=Pod":           {{Field: "reason", Values: []string{"in (A"}}, {Field: "kind", Values: []string{"Pod"}}},
		"reason=,type=x":                  {{Field: "reason", Values: []string{""}}, {Field: "type", Values: []string{"x"}}},
		"in in (notin),notin notin (in),": {{Field: "in", Values: []string{"notin"}}, {Field: "notin", Values: []string{"in"}, Not: true}},
	} {
		got, err := parseSelector(selector)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", selector, err, diff)
		}
	}
	for selector, want := range map[string]string{
		"reason":              "can't understand",
		"reason in (A":        "has no closing parenthesis",
		"reason in ()":        "there is an empty value",
		"reason in (A,)":      "there is an empty value",
		"reason in (A) kind":  "is no further term",
		`reason in (a=b)`:     "",
		`reason in (A\x)`:     "",
		"reason in A":         "can't understand",
		"reason notin (A)B=C": "is no further term",
	} {
		if got, err := parseSelector(selector); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", selector, got, err, want)
		}
	}
}

// FuzzSelector: terms that are read and written again are the same, and without sets they are what Kubernetes' parser
// reads.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{"type=Normal,reason in (Pulled,Created),kind!=Pod", `a in (b\,c,d\)),e notin (f*)`, "a in (", ",=,", `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, selector string) {
		terms, err := parseSelector(selector)
		if err != nil {
			return
		}
		var written []string
		sets := false
		for _, term := range terms {
			written = append(written, term.String())
			sets = sets || len(term.Values) > 1
		}
		again, err := parseSelector(strings.Join(written, ","))
		if diff := cmp.Diff(terms, again); err != nil || diff != "" {
			t.Errorf("%q is written %q: %v\n%s", selector, written, err, diff)
		}
		if sets || strings.Contains(selector, "(") || strings.ContainsAny(selector, " \t\n\r") {
			return
		}
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			t.Fatalf("%q: %v", selector, err)
		}
		var want []string
		for _, r := range parsed.Requirements() {
			want = append(want, selectorTerm{Field: r.Field, Values: []string{r.Value}, Not: r.Operator == selection.NotEquals}.String())
		}
		slices.Sort(want)
		slices.Sort(written)
		if !slices.Equal(want, written) {
			t.Errorf("%q: %q, want %q", selector, written, want)
		}
	})
}

// String is the term as it is written.
func (t selectorTerm) String() string {
	operator := "="
	if t.Not {
		operator = "!="
	}
	if len(t.Values) == 1 {
		return t.Field + operator + fields.EscapeValue(t.Values[0])
	}
	operator = " in ("
	if t.Not {
		operator = " notin ("
	}
	var values []string
	for _, v := range t.Values {
		values = append(values, strings.ReplaceAll(fields.EscapeValue(v), ")", `\)`))
	}
	return t.Field + operator + strings.Join(values, ",") + ")"
}
