package ctl

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/shared/cli"
)

// termFields are the fields that terms can name, with those of the API's field selectors.
var termFields = map[string]string{
	"type": "type", "reason": "reason", "kind": "kind", "namespace": "namespace", "reporter": "reporter", "cluster": "cluster", "owner": "owner",
	"name": "regarding.name", "uid": "regarding.uid",
	"regarding.kind": "regarding.kind", "regarding.namespace": "regarding.namespace", "regarding.name": "regarding.name",
	"regarding.uid": "regarding.uid", "regarding.apiVersion": "regarding.apiVersion", "regarding.fieldPath": "regarding.fieldPath",
	"regarding.resourceVersion": "regarding.resourceVersion", "reportingController": "reportingController",
	"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace",
}

// shortFields are those that completion offers.
var shortFields = []string{"type", "reason", "kind", "name", "namespace", "reporter", "cluster", "owner", "uid"}

// labelPrefix begins a term on a label.
const labelPrefix = "label:"

// termForm is the form of a term on a field. What has another form is text.
var termForm = regexp.MustCompile(`^([A-Za-z][A-Za-z.]*)(!?==?)(.*)$`)

// terms are what the arguments of a query ask for.
type terms struct {
	namespaces []string
	fields     []string // terms of a field selector
	labels     []string // terms of a label selector
	text       []string // words, and phrases in quotation marks
}

// parseTerms reads arguments: field=value, field!=value, label:key=value, and text for the note. An argument with blanks is a
// phrase, as the shell has taken away the quotation marks.
func parseTerms(args []string) (t terms, err error) {
	values := map[string]string{}
	for _, arg := range args {
		if label, ok := strings.CutPrefix(arg, labelPrefix); ok {
			if _, err := labels.Parse(label); err != nil || label == "" {
				return t, cli.Usagef("%q is no term on a label: write label:key=value, label:key!=value or label:key", arg)
			}
			t.labels = append(t.labels, label)
			continue
		}
		parts := termForm.FindStringSubmatch(arg)
		if parts == nil {
			t.text = append(t.text, phrase(arg))
			continue
		}
		name, operator, value := parts[1], strings.Replace(parts[2], "==", "=", 1), parts[3]
		field, known := termFields[name]
		switch earlier, twice := values[field]; {
		case !known:
			return t, cli.Usagef("there is no field %q, only: %s; to search for this text, write '\"%s\"'",
				name, strings.Join(slices.Sorted(maps.Keys(termFields)), ", "), arg)
		case field == "namespace" && operator == "=" && !strings.Contains(value, "*"):
			t.namespaces = append(t.namespaces, value)
			continue
		case operator == "=" && twice && earlier != value && !strings.Contains(earlier+value, "*"):
			return t, cli.Usagef("%s=%s and %s=%s exclude each other: an event has one %s", name, earlier, name, value, name)
		}
		if operator == "=" {
			values[field] = value
		}
		t.fields = append(t.fields, field+operator+fields.EscapeValue(value))
	}
	return t, nil
}

// phrase returns an argument as a part of a text.
func phrase(arg string) string {
	if strings.ContainsAny(arg, " \t\n") && !strings.Contains(arg, `"`) {
		return `"` + arg + `"`
	}
	return arg
}

// set adds the terms to the parameters of a query.
func (t *terms) set(q url.Values) {
	q["namespace"] = append(q["namespace"], t.namespaces...)
	for name, all := range map[string][]string{"fieldSelector": t.fields, "labelSelector": t.labels} {
		if text := strings.Join(all, ","); text != "" {
			if before := q.Get(name); before != "" {
				text = before + "," + text
			}
			q.Set(name, text)
		}
	}
	if len(t.text) > 0 {
		q.Set("text", strings.Join(t.text, " "))
	}
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

// in reports whether a note contains all words and phrases, and none that is excluded.
func (w words) in(note string) bool {
	note = fold(note)
	contained := func(word string) bool { return strings.Contains(note, word) }
	return !slices.ContainsFunc(w.excluded, contained) &&
		!slices.ContainsFunc(w.wanted, func(word string) bool { return !contained(word) })
}

// fold makes texts equal that differ in upper and lower case only. Some characters have two forms in lower case and one in
// upper case.
func fold(text string) string { return strings.ToLower(strings.ToUpper(text)) }
