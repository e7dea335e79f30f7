package logql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/logql"
)

// accepted are expressions and their normal forms, "" if they are in it.
var accepted = map[string]string{
	`{}`:                 ``,
	`{namespace="shop"}`: ``,
	` ( {namespace = "shop" ,kind!="Pod"} ) `:                                        `{namespace="shop", kind!="Pod"}`,
	"{reason=~`Back.*`, type!~\"N.*\"} # comment\n":                                  `{reason=~"Back.*", type!~"N.*"}`,
	`{a="b"} |= "x" != "y" |~ "z+" !~ "w"`:                                           ``,
	`{a="b"} |= "x" or "y" or "z"`:                                                   ``,
	`{a="b"} | json | logfmt | drop __error__, __error_details__`:                    ``,
	`{a="b"} | JSON | keep name, level="info" | drop level!~"w.*"`:                   `{a="b"} | json | keep name, level="info" | drop level!~"w.*"`,
	`{a="b"} | level="warning" or level="info"`:                                      `{a="b"} | ( level="warning" or level="info" )`,
	`{a="b"} | count > 5 and count<=10 or name=~"w.*"`:                               `{a="b"} | ( ( count>5 and count<=10 ) or name=~"w.*" )`,
	`{a="b"} | x="1" , y="2" or z="3"`:                                               `{a="b"} | ( x="1" and ( y="2" or z="3" ) )`,
	`{a="b"} | x="1" y="2"`:                                                          `{a="b"} | ( x="1" and y="2" )`,
	`{a="b"} | (x="1" or y="2") and z = 3`:                                           `{a="b"} | ( ( x="1" or y="2" ) and z==3 )`,
	`{a="b"} | d > 1m30s | d != 1.5s | n >= -1`:                                      `{a="b"} | d>1m30s | d!=1s500ms | n>=-1`,
	`count_over_time({a="b"}[5m])`:                                                   `count_over_time({a="b"} [5m])`,
	`count_over_time({a="b"}[5m] |= "x")`:                                            `count_over_time({a="b"} |= "x" [5m])`,
	`rate(({a="b"} | json)[1d12h] offset 90s)`:                                       `rate({a="b"} | json [1d12h] offset 1m30s)`,
	`rate({a="b"}[1m] offset -5m)`:                                                   `rate({a="b"} [1m] offset -5m)`,
	`sum by (level, detected_level) (count_over_time({a="b"} | drop __error__[1h]))`: `sum by (level, detected_level) (count_over_time({a="b"} | drop __error__ [1h]))`,
	`SUM(count_over_time({a="b"} [1s])) BY (level)`:                                  `sum by (level) (count_over_time({a="b"} [1s]))`,
	`topk(3, sum without (reason) (rate({a="b"}[1m])))`:                              `topk(3, sum without (reason) (rate({a="b"} [1m])))`,
	`bottomk by () (1, rate({a="b"}[1m]))`:                                           `bottomk by () (1, rate({a="b"} [1m]))`,
	`avg(max by (kind) (min(rate({a="b"}[1m]))))`:                                    `avg(max by (kind) (min(rate({a="b"} [1m]))))`,
	`vector(1)+vector(1)`:                                                            `(vector(1) + vector(1))`,
	`1 + 2 * 3 ^ 2 ^ 1`:                                                              `19`,
	`(1 - 2) - 3`:                                                                    `-4`,
	`sum(rate({a="b"}[1m])) * 60 / 2 % 7`:                                            `(((sum(rate({a="b"} [1m])) * 60) / 2) % 7)`,
	`-1.5e3`:                                                                         `-1500`,
	`sum(count_over_time({a="b"}[1m])) - -1`:                                         `(sum(count_over_time({a="b"} [1m])) - -1)`,
	`sum by (count) (count_over_time({a="b"} | count > 1 [1m]))`:                     `sum by (count) (count_over_time({a="b"} | count>1 [1m]))`,
}

func TestNormalForm(t *testing.T) {
	t.Parallel()
	for text, want := range accepted {
		expr, err := logql.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want == "" {
			want = text
		}
		if diff := cmp.Diff(want, expr.String()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}

// TestRefused: every construct that is not supported is named, with its place.
func TestRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60)
	for text, want := range map[string]string{
		``:                                       `parse error at line 1, col 1: syntax error: unexpected $end`,
		`{a="b"`:                                 `parse error at line 1, col 7: syntax error: unexpected $end, expecting } or ,`,
		`{a=}`:                                   `parse error at line 1, col 4: syntax error: unexpected }, expecting STRING`,
		`{a="b",}`:                               `parse error at line 1, col 8: syntax error: unexpected }, expecting IDENTIFIER`,
		`{a>"b"}`:                                `parse error at line 1, col 3: syntax error: unexpected >, expecting = or != or =~ or !~`,
		`{a="b}`:                                 `parse error at line 1, col 4: literal not terminated`,
		`{a="\q"}`:                               `parse error at line 1, col 4: invalid escape in the string "\q"`,
		"{a=\"b\"}\n | logfmt":                   `parse error at line 2, col 4: syntax error: unexpected logfmt, which is not supported here: supported are json, and label filters`,
		`{a="b"} | line_format "x"`:              `parse error at line 1, col 11: syntax error: unexpected line_format, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} | label_format a=b`:             `parse error at line 1, col 11: syntax error: unexpected label_format, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} | pattern "<x>"`:                `parse error at line 1, col 11: syntax error: unexpected pattern, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} | regexp "x"`:                   `parse error at line 1, col 11: syntax error: unexpected regexp, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} | decolorize`:                   `parse error at line 1, col 11: syntax error: unexpected decolorize, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} | unpack`:                       `parse error at line 1, col 11: syntax error: unexpected unpack, which is not supported here: supported are json, drop, keep, label filters`,
		`{a="b"} |= ip("::1")`:                   `parse error at line 1, col 12: syntax error: unexpected ip, which is not supported here`,
		`{a="b"} | a = ip("::1")`:                `parse error at line 1, col 15: syntax error: unexpected ip, which is not supported here`,
		`{a="b"} | json x="y"`:                   `parse error at line 1, col 16: syntax error: unexpected IDENTIFIER: json takes no expressions here, it makes all fields of the event labels`,
		`{a="b"} | size > 5KB`:                   `parse error at line 1, col 18: syntax error: unexpected BYTES (5KB), which is not supported here: supported are texts, numbers, durations`,
		`{a="b"} | a > "b"`:                      `parse error at line 1, col 13: syntax error: unexpected >, expecting = or != or =~ or !~`,
		`{a="b"} |`:                              `parse error at line 1, col 10: syntax error: unexpected $end, expecting IDENTIFIER`,
		`sum_over_time({a="b"} | unwrap x [1m])`: `parse error at line 1, col 1: syntax error: unexpected sum_over_time, which is not supported here: supported are count_over_time, rate`,
		`rate({a="b"} | unwrap x [1m])`:          `parse error at line 1, col 16: syntax error: unexpected unwrap, which is not supported here: supported are json, drop, keep, label filters`,
		`quantile_over_time(0.9, {a="b"}[1m])`:   `parse error at line 1, col 1: syntax error: unexpected quantile_over_time, which is not supported here: supported are count_over_time, rate`,
		`rate({a="b"}[5m:1m])`:                   `parse error at line 1, col 13: syntax error: unexpected RANGE [5m:1m]: subqueries are not supported`,
		`rate({a="b"}[5minutes])`:                `parse error at line 1, col 13: not a valid duration string: "5minutes"`,
		`rate({a="b"}[5m)`:                       `parse error at line 1, col 13: missing closing ']' in duration`,
		`rate({a="b"}[0ms])`:                     `parse error at line 1, col 13: the range [0ms] is empty`,
		`rate({a="b"})`:                          `parse error at line 1, col 13: syntax error: unexpected ), expecting RANGE`,
		`rate({a="b"}[1m]) by (a)`:               `parse error at line 1, col 19: grouping not allowed for rate aggregation`,
		`count(rate({a="b"}[1m]))`:               `parse error at line 1, col 1: syntax error: unexpected count, which is not supported here: supported are sum, min, max, avg, topk, bottomk`,
		`label_replace(vector(1), "a", "b", "c", "d")`:      `parse error at line 1, col 1: syntax error: unexpected label_replace, which is not supported here: supported are sum, min, max, avg, topk, bottomk`,
		`topk(rate({a="b"}[1m]))`:                           `parse error at line 1, col 6: parameter required for operation topk`,
		`topk(0, rate({a="b"}[1m]))`:                        `parse error at line 1, col 6: invalid parameter topk(0,`,
		`sum(3, rate({a="b"}[1m]))`:                         `parse error at line 1, col 5: unsupported parameter for operation sum(3,`,
		`rate({a="b"}[1m]) > 1`:                             `parse error at line 1, col 19: syntax error: unexpected >, which is not supported here: supported are +, -, *, /, %, ^`,
		`vector(1) or vector(2)`:                            `parse error at line 1, col 11: syntax error: unexpected or, which is not supported here: supported are +, -, *, /, %, ^`,
		`vector(1) + on (a) vector(2)`:                      `parse error at line 1, col 13: syntax error: unexpected on, which is not supported here`,
		`{a="b"} + 1`:                                       `parse error at line 1, col 9: syntax error: unexpected +`,
		`1 + {a="b"}`:                                       `parse error at line 1, col 5: syntax error: unexpected {: a log query is no number, use count_over_time or rate`,
		`1 / 0`:                                             `parse error at line 1, col 6: 1 / 0 is no number`,
		`foo({a="b"}[1m])`:                                  `parse error at line 1, col 1: syntax error: unexpected IDENTIFIER`,
		`{a=~"("}`:                                          "parse error at line 1, col 5: error parsing regexp: missing closing ): `(`",
		`{a=~"(?=x)"}`:                                      "parse error at line 1, col 5: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
		`{a=~"(x{50}){50}{3}"}`:                             "parse error at line 1, col 5: error parsing regexp: invalid repeat count: `{50}`",
		`{a=~".{900}.{900}.{900}.{900}.{900}.{900}"}`:       `parse error at line 1, col 5: the regular expressions of the query have 5400 instructions up to this one, more than 5000`,
		`{a=~"(?:` + strings.Repeat("x", 3900) + `){800}"}`: `parse error at line 1, col 5: the regular expressions of the query have 3120000 instructions up to this one, more than 5000`,
		`{a=~"x{900}"} |~ "x{900}" or "x{900}" | a!~"x{900}" | drop a=~"x{900}" | keep a=~"x{900}"`:                          `parse error at line 1, col 82: the regular expressions of the query have 5400 instructions up to this one, more than 5000`,
		`rate({a=~"x{900}"} |~ "x{900}" [5m]) + rate({a=~"x{900}"} |~ "x{900}" [5m]) + rate({a=~"x{900}"} |~ "x{900}" [5m])`: `parse error at line 1, col 101: the regular expressions of the query have 5400 instructions up to this one, more than 5000`,
		`{a="b"} |= "x"` + strings.Repeat(` or "x"`, 49) + ` |~ "x"` + strings.Repeat(` or "x"`, 50):                         `parse error at line 1, col 712: the line filters of the query have more than 100 alternatives: a regular expression such as a|b|c is one`,
		`{a=~"` + strings.Repeat("x", 5000) + `"}`:                                                                           `parse error at line 1, col 5: the regular expression has 5000 bytes, more than 4096`,
		`{a="` + strings.Repeat("x", 20000) + `"}`:                                                                           `parse error : the expression has 20006 bytes, more than 16384`,
		"{a=\"\xff\"}": `parse error : invalid UTF-8 encoding`,
		deep:           `parse error at line 1, col 51: the expression is nested more than 50 levels deep`,
		`{` + strings.Repeat(`a="b",`, 600) + `a="b"}`: `parse error at line 1, col 3003: the expression has more than 500 matchers, filters and operands`,
		`{a='b'}`: `parse error at line 1, col 4: syntax error: unexpected character '\''`,
	} {
		if _, err := logql.Parse(text); err == nil || err.Error() != want {
			t.Errorf("%.60s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := logql.ParseSelector(`{a="b"} |= "x"`); err == nil || err.Error() != "parse error : only label matchers are supported" {
		t.Error(err)
	}
	if _, err := logql.ParseLog(`vector(1)`); err == nil || !strings.Contains(err.Error(), "only a log query") {
		t.Error(err)
	}
}

// FuzzParse: no text makes the parser panic, and the normal form of an expression is its
// own normal form.
func FuzzParse(f *testing.F) {
	for text := range accepted {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		expr, err := logql.Parse(text)
		if err != nil {
			return
		}
		normal := expr.String()
		if len(normal) > logql.MaxLength {
			return // quotes and parentheses have made it too long
		}
		again, err := logql.Parse(normal)
		if err != nil {
			t.Fatalf("%q has the normal form %q: %v", text, normal, err)
		}
		if again.String() != normal {
			t.Fatalf("%q has the normal form %q, and that has %q", text, normal, again)
		}
	})
}

// entry is one of a stream with structured metadata.
func entry() *logql.Entry {
	return &logql.Entry{
		Line: `Back-off restarting failed container app=web took="1m 5s" x=5`,
		Labels: []logql.Label{
			{Name: "namespace", Value: "shop"}, {Name: "level", Value: "warning"},
			{Name: "name", Value: "web-0", Category: logql.Metadata}, {Name: "count", Value: "7", Category: logql.Metadata},
			{Name: "took", Value: "1m30s", Category: logql.Metadata},
		},
		Event: func() []byte {
			return []byte(`{"metadata":{"name":"e1","labels":{"app.kubernetes.io/name":"web"}},"level":"x","series":{"count":7},"ok":true,"list":[1],"none":null,"1st":"a","empty":""}`)
		},
	}
}

// TestProcess runs pipelines on one entry: what is left of it, with the labels that were
// found.
func TestProcess(t *testing.T) {
	t.Parallel()
	const out = "left out"
	for pipeline, want := range map[string]string{
		`|= "Back-off"`:              ``,
		`|= "back-off"`:              out,
		`|~ "(?i)back-OFF"`:          ``,
		`!= "Back-off"`:              out,
		`!~ "x{3}"`:                  ``,
		`|= "nothing" or "failed"`:   ``,
		`!= "nothing" or "failed"`:   out,
		`| level="warning"`:          ``,
		`| level=~"warn"`:            out,
		`| missing=""`:               ``,
		`| missing!=""`:              out,
		`| count > 6 and count < 8`:  ``,
		`| count >= 8 or count == 7`: ``,
		`| count != 7`:               out,
		`| missing > 1`:              out,
		`| took > 1m`:                ``,
		`| took <= 1m`:               out,
		`| name > 5`:                 `__error__=LabelFilterErr __error_details__=strconv.ParseFloat: parsing "web-0": invalid syntax`,
		`| name > 5 | count > 100`:   `__error__=LabelFilterErr __error_details__=strconv.ParseFloat: parsing "web-0": invalid syntax`,
		`| name > 5 | __error__=""`:  out,
		`| name > 5 | drop __error__, __error_details__`: ``,
		`| json`:                             `_1st=a level_extracted=x metadata_labels_app_kubernetes_io_name=web metadata_name=e1 ok=true series_count=7`,
		`| json | keep metadata_name, level`: `metadata_name=e1 -namespace -name -count -took`,
		`| json | logfmt | drop metadata_labels_app_kubernetes_io_name, _1st, ok, series_count, metadata_name, level_extracted`: `app=web took_extracted=1m 5s x=5`,
		`| json | metadata_name="e1" | drop metadata_name="e2" | keep metadata_name="e1"`:                                       `metadata_name=e1 -namespace -level -name -count -took`,
		`| drop level="info", name`: `-name`,
	} {
		l, err := logql.ParseLog(`{namespace="shop"} ` + pipeline)
		if err != nil {
			t.Errorf("%s: %v", pipeline, err)
			continue
		}
		e := entry()
		e.Turns = flow.NewTurns(t.Context())
		got := out
		if l.Process(e) {
			got = found(e)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", pipeline, got, want)
		}
	}
}

// found lists the labels that were parsed and, behind a minus, those that are gone.
func found(e *logql.Entry) string {
	var words []string
	for _, l := range e.Labels {
		if l.Category == logql.Parsed {
			words = append(words, l.Name+"="+l.Value)
		}
	}
	for _, l := range entry().Labels {
		if e.Get(l.Name) == "" {
			words = append(words, "-"+l.Name)
		}
	}
	return strings.Join(words, " ")
}

// TestNeeds: a pipeline says what it depends on.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for pipeline, want := range map[string]string{
		``:                                 "true",
		`| drop __error__, level`:          "true",
		`| level="x" or (a > 5 and b="1")`: "true level a b",
		`| keep name`:                      "true name",
		`|= "x"`:                           "false",
		`| json | a="b"`:                   "false a",
	} {
		l, err := logql.ParseLog(`{} ` + pipeline)
		if err != nil {
			t.Fatal(err)
		}
		names, only := l.Needs()
		got := strings.Join(append([]string{map[bool]string{true: "true", false: "false"}[only]}, names...), " ")
		if got != want {
			t.Errorf("%s: got %s, want %s", pipeline, got, want)
		}
	}
}

// TestSelects: a label that is not set has the empty value, and regular expressions match
// whole values.
func TestSelects(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"namespace": "shop", "reason": "Back\nOff"}
	for selector, want := range map[string]bool{
		`{}`: true, `{namespace="shop"}`: true, `{namespace!="shop"}`: false, `{namespace=~"sh"}`: false, `{namespace=~"sh.*"}`: true,
		`{namespace!~"a|shop"}`: false, `{reason=~"Back.Off"}`: true, `{missing=""}`: true, `{missing=~".+"}`: false, `{namespace="shop", missing!=""}`: false,
	} {
		l, err := logql.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Selects(flow.NewTurns(t.Context()), func(name string) string { return labels[name] }); got != want {
			t.Errorf("%s: %v", selector, got)
		}
	}
}

// TestBest: topk and bottomk choose at each point, and of equal values the first by labels.
func TestBest(t *testing.T) {
	t.Parallel()
	count := func(*logql.RangeAggregation, *logql.Grouping) ([]*logql.Series, error) {
		var all []*logql.Series
		for name, values := range map[string][]float64{"a": {1, 3}, "b": {2, 2}, "c": {3, 2}} {
			s := logql.NewSeries([]logql.Label{{Name: "name", Value: name}}, len(values))
			copy(s.Values, values)
			s.Has = []bool{true, true}
			all = append(all, s)
		}
		return all, nil
	}
	for text, want := range map[string]string{
		`topk(1, count_over_time({}[1m]))`:    "a[0 3] c[3 0]",
		`bottomk(1, count_over_time({}[1m]))`: "a[1 0] b[0 2]",
		`topk(2, count_over_time({}[1m]))`:    "a[0 3] b[2 2] c[3 0]",
		`bottomk(2, count_over_time({}[1m]))`: "a[1 0] b[2 2] c[0 2]",
		`max(count_over_time({}[1m]))`:        "[3 3]",
		`min(count_over_time({}[1m]))`:        "[1 2]",
	} {
		m, err := logql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := logql.Evaluate(m.(logql.Metric), 2, count)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			name := ""
			for _, l := range s.Labels {
				name = l.Value
			}
			got = append(got, fmt.Sprint(name, s.Values))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
