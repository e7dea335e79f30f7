package logql

import (
	"context"
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/flow"
)

// expressions are of every kind that is counted.
var expressions = []string{
	``, `a`, `abc`, `(?i)abc`, `[a-z]`, `\pL+`, `.`, `(?s).`, `^a$`, `\bx\B`, `a|bc|d`, `(a)`, `(a|b)*`, `a?`, `a+`, `a*?`, `a{3}`, `a{0}`, `a{0,1}`, `a{2,4}`, `a{3,}`,
	`(?:ab|c){2,5}`, `(?:(?:.{0,30}){0,30})zzN`, `(?:a{2,}b){3,}`, `^(?:web|api)-[0-9a-f]{8,10}-[a-z0-9]{5}$`, `x{900}`,
}

// TestInstructions: no expression is compiled to more instructions than were counted, but
// for those at its two ends and a start of each.
func TestInstructions(t *testing.T) {
	t.Parallel()
	for _, text := range expressions {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		n := instructions(parsed)
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(program.Inst) - 3; got > n {
			t.Errorf("%q has %d instructions, and %d were counted", text, got, n)
		}
	}
}

// TestMatchesInTurns: a text that is matched piece by piece matches as one that is not.
func TestMatchesInTurns(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "a", "abc", "xABCx", "web-0123456789-abcde", "web-0123456789-abcde\n", "aaab aaab aaab", "\xff\xfea", "für x", "x", strings.Repeat("x", 1000), "zzN",
	}
	for _, text := range expressions {
		for _, anchored := range []bool{false, true} {
			p, err := compile(text, anchored, 0)
			if err != nil {
				t.Fatal(err)
			}
			slow := &pattern{p.re, pieceOfWork}
			for _, line := range texts {
				if got, want := slow.matches(flow.NewTurns(t.Context()), line), p.re.MatchString(line); got != want {
					t.Errorf("%q in %q, anchored %t: %t, want %t", text, line, anchored, got, want)
				}
			}
		}
	}
}

// counted is a context that ends when it has been asked so many times.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestMatchesEndInTurns: whatever is matched, of a long line too little for more than a few
// turns is done after the client has gone.
func TestMatchesEndInTurns(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x a=1 ", 1<<17)
	labels := func(string) string { return line }
	for _, query := range []string{
		`{} |~ "(?:(?:.{0,30}){0,30})zzN"`, `{} !~ "(?:(?:.{0,30}){0,30})zzN"`, `{a=~"(?:(?:.{0,30}){0,30})zzN"}`, `{a!~"(?:(?:.{0,30}){0,30})zzN"}`,
		`{} | a=~"(?:(?:.{0,30}){0,30})zzN" or b=~"(?:(?:.{0,30}){0,30})zzN"`, `{} | drop a=~"(?:(?:.{0,30}){0,30})zzN"`, `{} | keep a!~"(?:(?:.{0,30}){0,30})zzN"`,
		`{} |= "y"` + strings.Repeat(` or "y"`, 99), `{}` + strings.Repeat(` | json`, 400), `{} | json | logfmt`,
	} {
		l, err := ParseLog(query)
		if err != nil {
			t.Fatal(err)
		}
		turns := flow.NewTurns(&counted{t.Context(), 5})
		events := 0
		e := &Entry{Line: line, Labels: []Label{{Name: "a", Value: line}, {Name: "b", Value: line}}, Turns: turns, Event: func() []byte { events++; return []byte("{}") }}
		selected := l.Selects(turns, labels)
		if selected && l.Process(e) || turns.Err() == nil || events > 5 {
			t.Errorf("%.60s: passed, %v, %d times parsed", query, turns.Err(), events)
		}
		for _, lines := range []bool{false, true} {
			if ended := flow.NewTurns(&counted{t.Context(), 0}); lines && strings.Contains(query, "|~") && l.MatchesLine(ended, line) {
				t.Errorf("%.60s: a line matches after the end", query)
			}
		}
	}
}

// TestSelectorsTogether: the selectors of one request have the bounds of one.
func TestSelectorsTogether(t *testing.T) {
	t.Parallel()
	texts := []string{`{a=~"x{900}"}`, `{a=~"x{900}"}`, `{a=~"x{900}"}`, `{a=~"x{900}"}`, `{a=~"x{900}"}`}
	all, err := ParseSelectors(texts)
	if err != nil || len(all) != len(texts) {
		t.Fatal(all, err)
	}
	if _, err := ParseSelectors(append(texts, `{a=~"x{900}"}`)); err == nil || !strings.Contains(err.Error(), "5400 instructions") {
		t.Error(err)
	}
	if _, err := ParseSelectors([]string{`{a="b"} |= "c"`}); err == nil {
		t.Error("a line filter is in a selector")
	}
}

// TestLabelsOfManyStages: each stage goes over the labels of those before it, so they are bounded together.
func TestLabelsOfManyStages(t *testing.T) {
	t.Parallel()
	var line, object strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&line, "k%d=1 ", i)
		fmt.Fprintf(&object, `"k%d":"1",`, i)
	}
	for _, stage := range []string{` | json`, ` | json | logfmt`} {
		l, err := ParseLog(`{}` + strings.Repeat(stage, 100))
		if err != nil {
			t.Fatal(err)
		}
		e := &Entry{Line: line.String(), Turns: flow.NewTurns(t.Context()), Event: func() []byte { return []byte("{" + object.String() + `"z":"1"}`) }}
		if !l.Process(e) || len(e.Labels) != maxLabels {
			t.Errorf("%s: %d labels", stage, len(e.Labels))
		}
	}
}
