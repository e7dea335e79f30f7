package event_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/randtest"
)

// fieldSet returns the value of each selectable field. It is written independently of package event.
func fieldSet(v event.View, ev *eventsv1.Event) fields.Set {
	set := fields.Set{
		"metadata.name": ev.Name, "metadata.namespace": ev.Namespace, "reason": ev.Reason, "type": ev.Type,
	}
	prefix, controller := "regarding.", "reportingController"
	if v == event.CoreV1 {
		prefix, controller = "involvedObject.", "reportingComponent"
		set["source"] = ev.DeprecatedSource.Component
		if set["source"] == "" {
			set["source"] = ev.ReportingController
		}
	}
	set[controller] = ev.ReportingController
	set[prefix+"kind"], set[prefix+"namespace"] = ev.Regarding.Kind, ev.Regarding.Namespace
	set[prefix+"name"], set[prefix+"uid"] = ev.Regarding.Name, string(ev.Regarding.UID)
	set[prefix+"apiVersion"], set[prefix+"resourceVersion"] = ev.Regarding.APIVersion, ev.Regarding.ResourceVersion
	set[prefix+"fieldPath"] = ev.Regarding.FieldPath
	return set
}

func matches(sel event.Selection, ev *eventsv1.Event) bool {
	if sel.Namespace != "" && sel.Namespace != ev.Namespace || sel.Name != "" && sel.Name != ev.Name {
		return false
	}
	return sel.Selector.Matches(ev.Namespace, ev.Name, event.AttributesOf(ev))
}

// Random selectors of both kinds match what a naive evaluation with the
// library says.
func TestSelectorsEqualNaive(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	word := func() string { return []string{"", "a", "b", "c", "1", "2"}[r.IntN(6)] }
	for _, v := range []event.View{event.EventsV1, event.CoreV1} {
		if got, want := len(fieldSet(v, valid())), 12+int(v); got != want {
			t.Fatalf("view %d has %d field labels, not %d", v, got, want)
		}
		var names []string
		for name := range fieldSet(v, valid()) {
			names = append(names, name)
		}
		found := 0
		for range 5000 {
			ev := &eventsv1.Event{Reason: word(), Type: word(), ReportingController: word()}
			ev.Name, ev.Namespace, ev.Labels = word(), word(), map[string]string{"k": word(), word() + "l": word()}
			ev.DeprecatedSource.Component = word()
			ev.Regarding = corev1.ObjectReference{
				Kind: word(), Namespace: word(), Name: word(), UID: types.UID(word()), APIVersion: word(),
				ResourceVersion: word(), FieldPath: word(),
			}
			var terms []string
			for range r.IntN(3) {
				op := []string{"=", "==", "!="}[r.IntN(3)]
				terms = append(terms, names[r.IntN(len(names))]+op+word())
			}
			byField := strings.Join(terms, ",")
			byLabel := []string{"", "k", "!k", "k=" + word(), "k!=" + word(), "k in (a,b)", "al notin (a,1)", "k>1,k<3"}[r.IntN(8)]
			sel, err := event.ParseSelector(v, byField, byLabel)
			if err != nil {
				t.Fatalf("%q %q: %v", byField, byLabel, err)
			}
			want := fields.ParseSelectorOrDie(byField).Matches(fieldSet(v, ev))
			parsed, _ := labels.Parse(byLabel)
			want = want && parsed.Matches(labels.Set(ev.Labels))
			if got := matches(sel, ev); got != want {
				t.Fatalf("fields %q labels %q: %v for %+v", byField, byLabel, got, ev)
			}
			if want {
				found++
			}
		}
		if found < 250 {
			t.Errorf("view %d: only %d of 5000 matched: the test does not tell", v, found)
		}
	}
}

func TestParseSelectorNarrows(t *testing.T) {
	t.Parallel()
	other := event.FieldRequirement{Field: event.FieldName, Value: "other"}
	for text, want := range map[string]event.Selection{
		"":                                    {},
		"metadata.name=a":                     {Name: "a"},
		"metadata.namespace=n":                {Namespace: "n"},
		"metadata.name=a,metadata.name=other": {Name: "a", Selector: &event.Selector{Fields: []event.FieldRequirement{other}}},
		"metadata.name!=other": {Selector: &event.Selector{Fields: []event.FieldRequirement{
			{Field: event.FieldName, Value: "other", Not: true}}}},
		"metadata.name=": {Selector: &event.Selector{Fields: []event.FieldRequirement{{Field: event.FieldName}}}},
		`reason=a\,b\=c`: {Selector: &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "a,b=c"}}}},
	} {
		got, err := event.ParseSelector(event.EventsV1, text, "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestParseSelectorErrors: a bad selector is a 400 with the text of kube-apiserver.
func TestParseSelectorErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		view           event.View
		fields, labels string
		want           string
	}{
		{event.EventsV1, "foo=bar", "", "field label not supported: foo"},
		{event.EventsV1, "source=x", "", "field label not supported: source"},
		{event.EventsV1, "involvedObject.name=x", "", "field label not supported: involvedObject.name"},
		{event.CoreV1, "regarding.name=x", "", "field label not supported: regarding.name"},
		{event.CoreV1, "reportingController=x", "", "field label not supported: reportingController"},
		{event.EventsV1, "bogus", "", "invalid selector: 'bogus'; can't understand 'bogus'"},
		{event.EventsV1, "", "a in", "unable to parse requirement: found '' expected: '('"},
		{event.EventsV1, "", "!", "unable to parse requirement: found '', expected: identifier"},
	} {
		_, err := event.ParseSelector(tt.view, tt.fields, tt.labels)
		if !apierrors.IsBadRequest(err) || err.Error() != tt.want {
			t.Errorf("%q %q: %v, want %q", tt.fields, tt.labels, err, tt.want)
		}
	}
}

// The conformance suite finds an event by source that only has a
// reportingController.
func TestSourceFallsBackToController(t *testing.T) {
	t.Parallel()
	sel, err := event.ParseSelector(event.CoreV1, "source=example.com/controller", "")
	if err != nil || !matches(sel, valid()) {
		t.Errorf("not found by its controller: %v", err)
	}
	ev := valid()
	ev.DeprecatedSource.Component = "kubelet"
	if matches(sel, ev) {
		t.Error("found by its controller although it has a source")
	}
}

// Whatever a client sends, there is a selector or a 400, and a selector that
// can be asked.
func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"reason=a,type!=b", `metadata.name=x\,y`, "=", ",", "a", `\`, "reason==="} {
		f.Add(s, "a in (b,c),!d,e>1")
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, byField, byLabel string) {
		for _, v := range []event.View{event.EventsV1, event.CoreV1} {
			sel, err := event.ParseSelector(v, byField, byLabel)
			if err != nil {
				if !apierrors.IsBadRequest(err) {
					t.Errorf("%q %q: %v", byField, byLabel, err)
				}
				continue
			}
			matches(sel, valid())
		}
	})
}

// TestMatchPattern: * stands for any text, and all other characters for themselves.
func TestMatchPattern(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern string
		yes, no []string
	}{
		{"", []string{""}, []string{"a"}},
		{"web", []string{"web"}, []string{"", "we", "web-0", "Web"}},
		{"web-*", []string{"web-", "web-0", "web-*"}, []string{"web", "aweb-0"}},
		{"*-web", []string{"-web", "a-web", "-web-web"}, []string{"web", "a-web-0"}},
		{"web-*-x", []string{"web--x", "web-0-x", "web-x-x-x"}, []string{"web-x", "web-0-y"}},
		{"a*a", []string{"aa", "aba"}, []string{"a", "ab"}},
		{"*a*b*", []string{"ab", "xaxbx", "baab"}, []string{"ba", "a", "b"}},
		{"*", []string{"", "a", "*"}, nil},
		{"**", []string{"", "a"}, nil},
		{"w?b[.]*", []string{"w?b[.]x"}, []string{"web.x", "w?b.x"}},
	} {
		for _, text := range tc.yes {
			if !event.MatchPattern(tc.pattern, text) {
				t.Errorf("%q does not match %q", tc.pattern, text)
			}
		}
		for _, text := range tc.no {
			if event.MatchPattern(tc.pattern, text) {
				t.Errorf("%q matches %q", tc.pattern, text)
			}
		}
	}
}

// FuzzMatchPattern compares it with a regular expression.
func FuzzMatchPattern(f *testing.F) {
	f.Add("web-*-x", "web-0-x")
	f.Add("*a*ab*b", "aaabb")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) {
			return
		}
		want := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`).MatchString(text)
		if event.MatchPattern(pattern, text) != want {
			t.Errorf("%q, %q: want %t", pattern, text, want)
		}
	})
}
