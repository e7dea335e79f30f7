package rules_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/shared/randtest"
)

// naive is a rule, and how it is evaluated without package rules.
type naive struct {
	text string
	fits func(map[string]string) bool
	drop bool
	keep time.Duration
}

var names = []string{"type", "reason", "kind", "name", "namespace", "reporter", "cluster"}

// randomValue returns one of few values, so that rules and events meet.
func randomValue(r *rand.Rand, open bool) string {
	v := []string{"a", "ab", "abc", "b", "bc"}[r.IntN(5)]
	if open && r.IntN(3) == 0 {
		return v + "*"
	}
	return v
}

// randomRule returns a rule in YAML, and how it is evaluated by path.Match.
func randomRule(r *rand.Rand, name string) naive {
	var terms []string
	var checks []func(map[string]string) bool
	is := func(field string, values []string, not bool) {
		checks = append(checks, func(ev map[string]string) bool {
			return not != slices.ContainsFunc(values, func(v string) bool {
				ok, _ := path.Match(v, ev[field])
				return ok
			})
		})
	}
	for range r.IntN(4) {
		field, values := names[r.IntN(len(names))], []string{randomValue(r, true)}
		switch r.IntN(4) {
		case 0:
			terms = append(terms, field+"="+values[0])
			is(field, values, false)
		case 1:
			terms = append(terms, field+"!="+values[0])
			is(field, values, true)
		default:
			for range r.IntN(3) {
				values = append(values, randomValue(r, true))
			}
			not := r.IntN(2) == 0
			operator := " in ("
			if not {
				operator = " notin ("
			}
			terms = append(terms, field+operator+strings.Join(values, ", ")+")")
			is(field, values, not)
		}
	}
	n := naive{text: fmt.Sprintf("- {name: %s, where: %q", name, strings.Join(terms, ","))}
	if r.IntN(3) == 0 || len(terms) == 0 {
		patterns := []string{randomValue(r, true), randomValue(r, true)}
		n.text += fmt.Sprintf(", namespaces: ['%s', '%s']", patterns[0], patterns[1])
		is("namespace", patterns, false)
	}
	if n.drop = r.IntN(2) == 0; n.drop {
		n.text += ", drop: true}"
	} else {
		n.keep = time.Duration(r.IntN(rules.MaxDurations+1)) * time.Hour
		n.text += fmt.Sprintf(", keep: %s}", n.keep)
	}
	n.fits = func(ev map[string]string) bool {
		return !slices.ContainsFunc(checks, func(ok func(map[string]string) bool) bool { return !ok(ev) })
	}
	return n
}

// randomEvent returns the fields of an event, and the same as a stored one has them.
func randomEvent(r *rand.Rand) (map[string]string, rules.Facts) {
	ev := map[string]string{}
	for _, name := range names {
		ev[name] = randomValue(r, false)
	}
	var f [event.NumFields]string
	f[event.Type], f[event.Reason], f[event.RegardingKind], f[event.RegardingName] = ev["type"], ev["reason"], ev["kind"], ev["name"]
	if f[event.Source] = ev["reporter"]; r.IntN(2) == 0 {
		f[event.ReportingController], f[event.Source] = ev["reporter"], "other"
	}
	return ev, rules.FactsOf([]byte(ev["namespace"]), event.NewAttributes(f, map[string]string{event.ClusterLabel: ev["cluster"], "app": "a"}))
}

// TestRulesEqualNaive: random rules decide about random events what a naive evaluation of the same rules says, and a
// rule that is said never to count does not count for any of them.
func TestRulesEqualNaive(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	decided, unreachable := 0, 0
	for range 300 {
		var list []naive
		var text strings.Builder
		for i := range 1 + r.IntN(12) {
			n := randomRule(r, fmt.Sprintf("r%d", i))
			list = append(list, n)
			text.WriteString(n.text + "\n")
		}
		set, err := rules.Parse([]byte(text.String()))
		if err != nil {
			t.Fatalf("%s: %v", text.String(), err)
		}
		counts := map[string]bool{} // rules that have decided
		for range 300 {
			ev, facts := randomEvent(r)
			first, kept := slices.IndexFunc(list, func(n naive) bool { return n.fits(ev) }), slices.IndexFunc(list, func(n naive) bool { return !n.drop && n.fits(ev) })
			if first >= 0 {
				counts[fmt.Sprintf("r%d", first)] = true
			}
			if kept >= 0 {
				counts[fmt.Sprintf("r%d", kept)] = true
			}
			wantDrop, wantKeep := "", ""
			if first >= 0 && list[first].drop {
				wantDrop = fmt.Sprintf("r%d", first)
			}
			if kept >= 0 {
				wantKeep = fmt.Sprintf("r%d %s", kept, list[kept].keep)
			}
			gotDrop, gotKeep := "", ""
			if d := set.Dropped(&facts); d != nil {
				gotDrop = d.Name
				decided++
			}
			if k := set.Kept(&facts); k != nil {
				gotKeep = fmt.Sprintf("%s %s", k.Name, k.Keep)
				decided++
			}
			if gotDrop != wantDrop || gotKeep != wantKeep {
				t.Fatalf("%s%v: dropped by %q, kept by %q; want %q, %q", text.String(), ev, gotDrop, gotKeep, wantDrop, wantKeep)
			}
		}
		for _, warning := range set.Unreachable() {
			unreachable++
			name, _, _ := strings.Cut(strings.TrimPrefix(warning, "--rules-file: "), " ")
			if counts[name] {
				t.Errorf("%s%s, but it does", text.String(), warning)
			}
		}
	}
	if decided < 10_000 || unreachable < 100 {
		t.Errorf("only %d decisions and %d warnings", decided, unreachable)
	}
}

func facts(pairs ...string) *rules.Facts {
	f := new(rules.Facts)
	for i := 0; i < len(pairs); i += 2 {
		f[slices.Index(names, pairs[i])] = []byte(pairs[i+1])
	}
	return f
}

// TestNeverDropped: what mirrors themselves report is copied by every mirror, whatever the rules say.
func TestNeverDropped(t *testing.T) {
	t.Parallel()
	set, err := rules.Parse([]byte(`[{name: all, where: "reason=*", drop: true}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"Mirrored", "MirrorGap", "EventsDropped", "RulesChanged"} {
		if r := set.Dropped(facts("reason", reason, "reporter", event.GapReporter)); r != nil {
			t.Errorf("%s of the mirror is dropped", reason)
		}
		if r := set.Dropped(facts("reason", reason, "reporter", "other")); r == nil {
			t.Errorf("%s of another reporter is not dropped", reason)
		}
	}
}

// TestBadFiles: each mistake is refused, and named with its rule and field.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i, i+1)
		}
		return b.String()
	}
	for text, want := range map[string]string{
		"{}":  "into a list of rules",
		"- a": "into a rule",
		"[{name: a, keep: 1h}, {name: a, keep: 2h}]": `rule 2 ("a"): name: another rule`,
		"[{keep: 1h}]":                                          `rule 1 (""): name: must have`,
		"[{name: A, keep: 1h}]":                                 "name: must have",
		"[{name: a}]":                                           "exactly one of drop: true and keep",
		"[{name: a, drop: true, keep: 1h}]":                     "exactly one of drop: true and keep",
		"[{name: a, where: type=x, drop: false}]":               "drop: false does nothing",
		"[{name: a, drop: true}]":                               "would drop everything",
		"[{name: a, keep: 30D}]":                                `keep: "30D" is no duration`,
		"[{name: a, keep: -1h}]":                                "keep: -1h0m0s is negative",
		"[{name: a, keep: 1h, where: note=x}]":                  `where: there is no field "note": there are type, reason, kind, name, namespace, reporter, cluster`,
		"[{name: a, keep: 1h, where: reason}]":                  "where: invalid selector",
		"[{name: a, keep: 1h, where: 'reason in (A'}]":          "where: reason in: ",
		"[{name: a, keep: 1h, where: 'reason=*A'}]":             `where: "*A" of reason: only the last character`,
		"[{name: a, keep: 1h, where: 'reason=A ,type=B'}]":      `where: "A " of reason begins or ends with a blank`,
		"[{name: a, keep: 1h, namespaces: ['*-a']}]":            `namespaces: "*-a" is no pattern`,
		"[{name: a, keep: 1h, namespaces: [A]}]":                `namespaces: no namespace can match "A"`,
		"[{name: a, keep: 1h, when: x}]":                        "field when not found in a rule (there are name, where, namespaces, drop, keep)",
		"[]\n---\n[]":                                           "more than one YAML document",
		many(101, "- {name: r%d, keep: 1h, where: reason=r%d}"): "there are 101 rules: at most 100",
		many(9, "- {name: r%d, keep: %dh}"):                     "9 different times to keep events for",
		strings.Repeat("#", 300<<10):                            "more than 262144 bytes",
	} {
		if _, err := rules.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v; want an error with %q", text, err, want)
		}
	}
	for _, text := range []string{"", "# none\n", "[]", many(8, "- {name: r%d, keep: %dh}") + "- {name: ever, keep: 0}", many(100, "- {name: r%d, drop: true, where: reason=r%d}")} {
		if _, err := rules.Parse([]byte(text)); err != nil {
			t.Errorf("%.100s: %v", text, err)
		}
	}
}

// TestUnreachable: a rule that can never count is named, with the one before it that fits all of its events.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const because = " before it fits the same events: put it first, or take it out"
	for text, want := range map[string][]string{
		"[{name: a, where: reason=A, keep: 1h}, {name: b, where: type=B, keep: 1h}]":                             nil,
		"[{name: a, where: reason=A, keep: 1h}, {name: b, where: 'reason=A,type=B', drop: true}]":                {"--rules-file: b never counts, because a" + because},
		"[{name: a, where: reason=A, drop: true}, {name: b, where: 'reason=A,type=B', keep: 1h}]":                nil,
		"[{name: a, where: 'reason in (A*,B)', keep: 1h}, {name: b, where: 'reason in (AB,B)', keep: 1h}]":       {"--rules-file: b never counts, because a" + because},
		"[{name: a, where: 'reason notin (A,B)', keep: 1h}, {name: b, where: 'reason=C', keep: 1h}]":             {"--rules-file: b never counts, because a" + because},
		"[{name: a, where: 'reason notin (A,B)', keep: 1h}, {name: b, where: 'reason notin (A,B,C)', keep: 1h}]": {"--rules-file: b never counts, because a" + because},
		"[{name: a, where: 'reason notin (A,B)', keep: 1h}, {name: b, where: 'reason!=A', keep: 1h}]":            nil,
		"[{name: a, namespaces: ['ci-*'], keep: 1h}, {name: b, where: namespace=ci-a, keep: 1h}]":                {"--rules-file: b never counts, because a" + because},
		"[{name: a, where: 'reason=A,reason=B', keep: 1h}]":                                                      {"--rules-file: a never counts, because no event can meet all of its terms: take one out"},
		"[{name: a, where: 'reason=A,reason!=A*', keep: 1h}]":                                                    {"--rules-file: a never counts, because no event can meet all of its terms: take one out"},
		"[{name: a, where: 'reason!=*', keep: 1h}]":                                                              {"--rules-file: a never counts, because no event can meet all of its terms: take one out"},
		"[{name: a, keep: 2h}, {name: b, where: type=Warning, keep: 1h}]":                                        {"--rules-file: b never counts, because a" + because},
	} {
		set, err := rules.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Unreachable(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestLive: a bad file is refused at the start, and later changes nothing. A good one replaces the rules.
func TestLive(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	changes := 0
	c := rules.Config{Path: file, Log: slog.New(slog.NewTextHandler(&log, nil)), Registry: prometheus.NewRegistry(), Changed: func() { changes++ }}
	write("nonsense")
	if _, err := rules.NewLive(c); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("a bad file at the start: %v", err)
	}
	write("[{name: a, keep: 1h}]")
	c.Registry = prometheus.NewRegistry()
	live, err := rules.NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(summary string, changed int, logged string) {
		t.Helper()
		live.Reload()
		if got := live.Current().Summary(); got != summary || changes != changed || !strings.Contains(log.String(), logged) {
			t.Errorf("%s after %d changes, want %s after %d; the log lacks %q:\n%s", got, changes, summary, changed, logged, log.String())
		}
	}
	first := live.Current().Hash()
	expect("a (keep 1h0m0s)", 0, "")
	write("[{name: a, keep: 1h, drop: true}]")
	expect("a (keep 1h0m0s)", 0, "a file is bad, the version before stays in force")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("a (keep 1h0m0s)", 0, "no such file")
	write("[{name: b, where: reason=A, drop: true}, {name: c, where: reason=A, drop: true}, {name: d, keep: 0}]")
	expect("b (drop), c (drop), d (keep for ever)", 1, "c never counts, because b before it")
	if live.Current().Hash() == first {
		t.Error("other rules have the same hash")
	}
	write("")
	expect("none", 2, "")
}

// FuzzParse: a file is refused with an error, or its rules decide without panic and as their terms say.
func FuzzParse(f *testing.F) {
	f.Add([]byte("[{name: a, where: 'type=Normal', drop: true}, {name: b, keep: 0}]"))
	_, some := randomEvent(rand.New(rand.NewPCG(1, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := rules.Parse(data)
		if err != nil {
			return
		}
		if len(set.All()) > rules.MaxRules || len(set.Durations()) > rules.MaxDurations {
			t.Errorf("%d rules, %d times", len(set.All()), len(set.Durations()))
		}
		if d := set.Dropped(&some); d != nil && (!d.Drop || !d.Fits(&some)) {
			t.Errorf("dropped by %v", d)
		}
		if k := set.Kept(&some); k != nil && (k.Drop || !k.Fits(&some)) {
			t.Errorf("kept by %v", k)
		}
		set.Unreachable()
		set.Hash()
		if len(set.Summary()) > 1000 {
			t.Error("the summary is too long for a note")
		}
	})
}
