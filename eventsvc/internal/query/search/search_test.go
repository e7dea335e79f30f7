package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/shared/randtest"
)

// crash is an event to search for.
var crash = &eventsv1.Event{
	ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e", Labels: map[string]string{
		"app": "web", event.ClusterLabel: "east", event.OwnerKindLabel: "Deployment", event.OwnerNameLabel: "web", event.NodeLabel: "node-7",
	}},
	Note: `MountVolume.SetUp failed: "no space" left (code 5)`, Type: "Warning", Reason: "FailedMount", ReportingController: "kubelet",
	Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "cassandra-3", UID: "uid-1"},
}

// finds reports whether a search finds an event.
func finds(e *search.Expr, ev *eventsv1.Event) bool { return e.Filter().Matches(event.SubjectOf(ev)) }

func TestMatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"FailedMount": true, "failedmount": true, "cassandra-3": true, "cassandra": true, "node-7": true, "setup": true, "shop": false,
		`"no space"`: true, "no space": true, `"space no"`: false, "-pulled": true, "-setup": false, "NOT pulled": true, "NOT NOT setup": true,
		"type:warning": true, "type=Warning": true, "type==warning": true, "type!=warning": false, "-type:normal": true, "kind:pod": true,
		"ns:shop": true, "ns:mail": false, "NS:shop": true, "reason:Failed*": true, "reason:failed*": true, "reason:Failed": false, "reason:*mount*": true,
		"reason:BackOff,FailedMount": true, "reason!=BackOff,FailedMount": false, `reason:"BackOff",failedmount`: true,
		"node:node-7": true, "host:node-7": true, "owner:deployment/web": true, "owner:": false, `owner:""`: false, "owner=": false, "owner!=": true,
		"name:cassandra-3": true, "name:cassandra-*": true, "name:Cassandra-3": false, "object:Pod/cassandra-3": true, "object:job/cassandra-3": false,
		"object:cassandra-3": true, "uid:uid-1": true, "regarding.name=cassandra-3": true, "regarding.kind!=Pod": false, "metadata.name:e": true,
		"note:setup": true, "note:cassandra-3": false, "message:x,setup": true, "-note:FailedMount": true,
		`pattern:"MountVolume.SetUp failed: \"no space\" left (code <num>)"`: true, "pattern:MountVolume*": true, "pattern:mountvolume*": false, `pattern!=""`: true,
		"label:app=web": true, "label:app!=web": false, "label:app": true, "label:b": false, "label.app:web": true, "-label:b": true, "label:app=w*": true,
		"zz OR setup": true, "zz OR yy": false, "setup OR yy zz": true, "(setup OR yy) zz": false, "(zz OR setup) kind:pod": true, "NOT (zz OR yy)": true,
		"NOT (zz OR setup)": false, "-(zz OR yy)": true, "zz AND setup": false, "no AND space": true, "type:normal OR cassandra-3": true,
		"(code": false, `"(code"`: true, "(setup)": true, "(code 5)": true, "code:5": false, "http://x": false, "or": false, "x-y": false, "-": true, "( setup )": true, "reason:a\x00b": false, "a\x00b": false,
	} {
		e, err := search.Parse(text)
		if err != nil {
			if text != "(code" && text != "owner:" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if finds(e, crash) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}

// TestPatternOfNote: the pattern is that of the note, and a word of a note is in it alone.
func TestPatternOfNote(t *testing.T) {
	t.Parallel()
	ev := &eventsv1.Event{Note: "Scaled up web-7d9f8 to 3", Reason: "Scaled", Regarding: corev1.ObjectReference{Kind: "ReplicaSet", Name: "web-7d9f8"}}
	for text, want := range map[string]bool{
		`pattern:"Scaled up <name> to <num>"`: true, `pattern:"Scaled up"`: false, "reason:scaled kind:replicaset name:web-7d9f8": true, "note:web-7d9f8 -note:scaled": false,
	} {
		if finds(parse(t, text), ev) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}

// sentence is a row of testdata/sentences.json, which has what a text means. The console writes terms, and has the same
// rows in its tests.
type sentence struct {
	Text    string
	Terms   []search.Part
	Written *string // by the console for these terms, if not as in Text
	Refused bool
}

// meaning writes an expression without the marks of how it was written.
func meaning(e *search.Expr) string {
	if e == nil {
		return "[]"
	}
	switch e.Kind {
	case search.And, search.Or:
		var parts []string
		for _, part := range e.Parts {
			parts = append(parts, meaning(part))
		}
		return fmt.Sprint(e.Kind, parts)
	case search.Not:
		if part := e.Parts[0]; part.Kind == search.Not {
			return meaning(part.Parts[0])
		}
		return "not " + meaning(e.Parts[0])
	case search.Word:
		return fmt.Sprintf("word %q %t", e.Word, e.Note)
	}
	return fmt.Sprintf("%d %s %q", e.Kind, e.Name, e.Values)
}

// expression makes the expression for a term.
func expression(t *testing.T, w *search.Part) *search.Expr {
	t.Helper()
	folded := func(text string) []byte { return event.Fold(nil, []byte(text)) }
	e := &search.Expr{Kind: search.Field, Name: w.Field, Values: w.Values}
	switch key, label := strings.CutPrefix(w.Field, "label."); {
	case label:
		e = &search.Expr{Kind: search.Label, Name: key, Values: w.Values}
	case w.Field == "()":
		e = parse(t, w.Values[0])
	case w.Field == "" || w.Field == "note":
		e = &search.Expr{Kind: search.Or}
		for _, value := range w.Values {
			e.Parts = append(e.Parts, &search.Expr{Kind: search.Word, Word: folded(value), Note: w.Field != ""})
		}
		if len(e.Parts) == 1 {
			e = e.Parts[0]
		}
	case slices.Contains(event.DimensionNames, w.Field):
		e.Values = nil
		for _, value := range w.Values {
			e.Values = append(e.Values, string(folded(value)))
		}
	}
	if w.Not {
		return &search.Expr{Kind: search.Not, Parts: []*search.Expr{e}}
	}
	return e
}

func parse(t *testing.T, text string) *search.Expr {
	t.Helper()
	e, err := search.Parse(text)
	if err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return e
}

func TestSentences(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sentences.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []sentence
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Refused {
			if _, err := search.Parse(row.Text); err == nil {
				t.Errorf("%q is not refused", row.Text)
			}
			continue
		}
		want := &search.Expr{Kind: search.And}
		for _, w := range row.Terms {
			want.Parts = append(want.Parts, expression(t, &w).Conjuncts()...)
		}
		switch len(want.Parts) {
		case 0:
			want = nil
		case 1:
			want = want.Parts[0]
		}
		texts := []string{row.Text}
		if row.Written != nil {
			texts = append(texts, *row.Written)
		}
		for _, text := range texts {
			e := parse(t, text)
			if got := meaning(e); got != meaning(want) {
				t.Errorf("%q is %s, want %s", text, got, meaning(want))
			}
			if got := e.Written(); !reflect.DeepEqual(got, row.Terms) {
				t.Errorf("%q has the terms %+v, want %+v", text, got, row.Terms)
			}
		}
	}
	if len(rows) < 100 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`a "b`:                               "at character 3: the quotation mark has no second one: close the phrase",
		`""`:                                 "at character 1: the phrase is empty",
		"a *":                                `at character 3: * fits everything: take it away, or write "*" for the character`,
		"web-*-0":                            "at character 1: there is no * within a word, and there are no regular expressions: write name:web-*-0 or",
		`ä ""`:                               "at character 3: the phrase is empty",
		"(a OR b":                            "at character 1: this parenthesis is not closed",
		"a )":                                "at character 3: there is no parenthesis that ) closes",
		"a OR":                               "at character 5: OR has nothing behind it",
		"OR a":                               "at character 1: OR has nothing before it",
		"a OR OR b":                          "at character 6: OR has nothing behind it",
		"AND a":                              "at character 1: AND has nothing before it",
		"a AND":                              "at character 6: AND has nothing behind it",
		"NOT":                                "at character 4: NOT has nothing behind it",
		"()":                                 "at character 2: a term is missing",
		"type: warning":                      "at character 6: type has no value",
		"reason:a,":                          "at character 10: there is nothing behind the comma",
		"type:a kind:b type:c":               "at character 15: an event has one type",
		"label:":                             "at character 7: the key of a label is missing",
		"label:a:":                           "at character 9: label has no value",
		"reason:" + strings.Repeat("*a", 17): "at character 8: the pattern has more than 16 *",
		strings.Repeat("(", 17) + "a":        "at character 18: there are more than 16 parentheses",
		strings.Repeat("NOT ", 17) + "a":     "there are more than 16 parentheses",
		strings.Repeat("a ", 65):             "there are more than 64 words",
		strings.Repeat("a", 1025):            "longer than 1024 bytes",
		"\xff":                               "UTF-8",
	} {
		_, err := search.Parse(text)
		if wrong, ok := errors.AsType[*search.Error](err); !ok || !strings.Contains(wrong.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestPatternFindsItsNotes: the term on a pattern matches each note that has it, whatever characters they have in
// common.
func TestPatternFindsItsNotes(t *testing.T) {
	t.Parallel()
	for _, note := range []string{
		strings.Repeat("*", 60) + " 17 of 18", `Said "<b>no</b>, \" (to) 17`, "* a, b:c OR -d *", "two\nlines\t17", strings.Repeat("a*b ", 400), `\`, "",
	} {
		ev := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Note: note}
		pattern := event.Pattern([]byte(note), nil, []byte("shop"))
		if !finds(parse(t, search.Term("pattern", pattern)), ev) {
			t.Errorf("%q has the pattern %q, which does not find it", note, pattern)
		}
	}
}

// model is an expression that was made at random, with the text for it and what it must be.
func model(rng *rand.Rand, depth int) (text string, want bool) {
	leaves := []struct {
		text string
		is   bool
	}{
		{"failedmount", true}, {"setup", true}, {"nothing", false}, {`"left (code"`, true}, {"type:warning", true}, {"kind:job,pod", true}, {"ns:mail", false},
		{"reason:Failed*", true}, {"name:cassandra-3", true}, {"name:*-4", false}, {"label:app=web", true}, {"label:app=x", false}, {"note:node-7", false}, {"node-7", true},
	}
	if n := rng.IntN(6); depth > 0 && n > 1 {
		a, is := model(rng, depth-1)
		b, also := model(rng, depth-1)
		switch n {
		case 2:
			return "(" + a + " OR " + b + ")", is || also
		case 3:
			return "(" + a + " " + b + ")", is && also
		case 4:
			return "(" + a + " AND " + b + ")", is && also
		}
		return "NOT " + a, !is
	}
	leaf := leaves[rng.IntN(len(leaves))]
	return leaf.text, leaf.is
}

// TestModel: expressions have the value that their parts give them.
func TestModel(t *testing.T) {
	t.Parallel()
	rng := randtest.New(t)
	read := 0
	for range 3000 {
		text, want := model(rng, 4)
		e, err := search.Parse(text)
		if err != nil {
			continue // too long, or two values of one field
		}
		read++
		if finds(e, crash) != want {
			t.Fatalf("%s: %t", text, !want)
		}
	}
	if read < 1000 {
		t.Errorf("only %d were read", read)
	}
}

// FuzzParse: any text is read or refused with a place in it, and what is read can be evaluated.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`type:warning (reason:Failed* OR "no space") -ns:dev`, "label:a=b,c NOT (a)", "a)b((", "-(-a)", `x:"a\"b",c`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := search.Parse(text)
		if wrong, ok := errors.AsType[*search.Error](err); err != nil && (!ok || wrong.At < 1 || wrong.At > len([]rune(text))+1) {
			t.Fatalf("%q: %v", text, err)
		}
		if e != nil {
			finds(e, crash)
		}
	})
}

// TestNamesWithASlash: an object is found by kind/name and namespace/name as kubectl and tables write them, and text
// with a slash stays text.
func TestNamesWithASlash(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pod/shop-api":  `0 [4 kind ["POD"] 4 name ["*shop-api*"]]`,
		"po/shop-*-0":   `0 [4 kind ["POD"] 4 name ["*shop-*-0*"]]`,
		"Deploy/web":    `0 [4 kind ["DEPLOYMENT"] 4 name ["*web*"]]`,
		"Rollout/web":   `0 [4 kind ["ROLLOUT"] 4 name ["*web*"]]`,
		"ingresses/web": `0 [4 kind ["INGRESS"] 4 name ["*web*"]]`,
		"shop/web-*":    `1 [0 [4 namespace ["SHOP"] 4 name ["*web-*"]] 0 [4 kind ["SHOP"] 4 name ["*web-*"]] word "SHOP/WEB-" false]`,
		"shop/w*-0":     `1 [0 [4 namespace ["SHOP"] 4 name ["*w*-0*"]] 0 [4 kind ["SHOP"] 4 name ["*w*-0*"]]]`,
		"24/7":          `word "24/7" false`,
		"a/b/c":         `word "A/B/C" false`,
		"/var/lib":      `word "/VAR/LIB" false`,
	} {
		if got := meaning(parse(t, text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
