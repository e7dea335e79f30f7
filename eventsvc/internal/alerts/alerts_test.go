package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReady(t *testing.T) {
	t.Parallel()
	rules, err := Parse(Ready)
	if err != nil || len(rules) < 10 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
}

// TestWrongRules: a mistake is refused with its line and what is right.
func TestWrongRules(t *testing.T) {
	t.Parallel()
	const good = "- name: A\n  search: reason:A\n"
	for text, want := range map[string]string{
		"a: b":                                  "line 1: this is no list of rules",
		"- name: [":                             "line 1",
		"- 1":                                   "line 1: a rule must be a mapping",
		good + "  serch: x":                     "line 3: serch: is unknown: a rule has name, search,",
		good + "  name: B":                      "line 3: a rule has name twice",
		good + good:                             `line 3: another rule before it is named "A"`,
		"- name: A b\n  search: x":              "line 1: name: must begin with a letter",
		"- name: A":                             "line 1: a rule needs a name",
		"- name: A\n  search: ''":               "line 2: search: is empty",
		"- name: A\n  search: 'a ('":            "line 2: search: at character 4",
		good + "  endedBy: 'type:a type:b'":     "line 3: endedBy: at character 8",
		good + "  occurrences: 0":               `line 3: occurrences: "0" is no number from 1 to 1000`,
		good + "  occurrences: many":            "line 3: occurrences",
		good + "  within: 5":                    "line 3: within: \"5\" is no duration",
		good + "  silence: 1s":                  "line 3: silence: \"1s\" must be from 1m0s",
		good + "  for: -1s":                     "line 3: for: \"-1s\"",
		good + "  for: 1h":                      "line 1: silence 15m0s is shorter",
		good + "  occurrences: 2\n  within: 1h": "line 1: silence 15m0s is shorter",
		good + "  labels: [a]":                  "line 3: labels must be a mapping",
		good + "  labels:\n    a-b: x":          "line 4: labels: a-b: a name has letters",
		good + "  labels: {alertname: x}":       "line 3: labels: alertname: a name has",
		good + "  labels: {a: x, a: y}":         "line 3: labels has a twice",
		good + "  labels: {a: [x]}":             "line 3: labels: a: a name has",
		good + "  annotations: {a: '{{.Pod}}'}": "line 3: annotations: a: template: a:1:2: executing \"a\" at <.Pod>: can't evaluate field Pod",
		good + "  annotations: {a: '{{.Name'}":  "line 3: annotations: a: template: a:1: unclosed action",
		good + "  annotations: {a: '{{if .Name}}{{else}}{{.Pod}}{{end}}'}": "can't evaluate field Pod",
		good + "  annotations: {a: '{{slice .Note 0 9}}'}":                 "line 3: annotations: a: template: a:1:2: executing \"a\" at <slice .Note 0 9>: error calling slice",
		good + "  annotations: {a: '{{.Labels.team}}'}":                    "map has no entry for key \"team\"",
		good + "  endedBy: reason:B\n  labels: {r: '{{.Reason}}'}":         "line 1: labels differ between an alert and the event that ends it",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis refused with %v, want %s", text, err, want)
		}
	}
	if _, err := Parse([]byte(good + "  for: x\n- name: B\n  search: '('\n")); err == nil || strings.Count(err.Error(), "line ") != 2 {
		t.Errorf("%v, want both mistakes", err)
	}
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// about makes an event about a pod that was observed minutes after the begin.
func about(name, reason string, minute float64) *eventsv1.Event {
	at := begin.Add(time.Duration(minute * float64(time.Minute)))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s.%s.%v", name, reason, minute), UID: "1", ResourceVersion: "7"},
		EventTime:  metav1.NewMicroTime(at), Reason: reason, Note: "note of " + name, Type: "Warning", ReportingController: "kubelet", ReportingInstance: "node-1",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name},
	}
}

// series makes it one that was observed several times.
func series(ev *eventsv1.Event, count int32, minute float64) *eventsv1.Event {
	ev.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(begin.Add(time.Duration(minute * float64(time.Minute))))}
	return ev
}

const testRules = `
- name: Once
  search: reason:Broken
  endedBy: reason:Mended
  silence: 10m
  labels: {pod: "{{.Name}}"}
- name: Often
  search: reason:Restarted
  occurrences: 3
  within: 5m
  silence: 10m
  labels: {pod: "{{.Name}}"}
- name: Stays
  search: reason:FailedScheduling
  endedBy: reason:Scheduled
  for: 5m
  silence: 45m
  labels: {pod: "{{.Name}}"}
`

// spans are the times of alerts, in minutes after the begin: -1 for none yet.
func (b *book) spans() (all []string) {
	minutes := func(t time.Time) float64 {
		if t.IsZero() {
			return -1
		}
		return t.Sub(begin).Minutes()
	}
	for _, a := range b.Alerts {
		for _, s := range a.times() {
			if !s.StartsAt.IsZero() {
				all = append(all, fmt.Sprintf("%s %s %v %v", s.Labels["alertname"], s.Labels["pod"], minutes(s.StartsAt), minutes(s.EndsAt)))
			}
		}
	}
	slices.Sort(all)
	return all
}

func rulesFor(t testing.TB, text string) []*Rule {
	t.Helper()
	rules, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestRules: when alerts begin and end. Each step of a case is an event, or a minute up to which everything is known.
func TestRules(t *testing.T) {
	t.Parallel()
	growing := func(count int32, minute float64) *eventsv1.Event {
		return series(about("p", "Restarted", 0), count, minute)
	}
	for name, c := range map[string]struct {
		steps []any
		want  []string
	}{
		"at once":              {[]any{about("p", "Broken", 1)}, []string{"Once p 1 -1"}},
		"another reason":       {[]any{about("p", "Created", 1)}, nil},
		"ends by silence":      {[]any{about("p", "Broken", 1), 10.9, about("p", "Broken", 5), 14.9, 15.0}, []string{"Once p 1 15"}},
		"goes on":              {[]any{about("p", "Broken", 1), about("p", "Broken", 5), 14.9}, []string{"Once p 1 -1"}},
		"mended":               {[]any{about("p", "Broken", 1), about("p", "Mended", 3), 60.0}, []string{"Once p 1 3"}},
		"another is mended":    {[]any{about("p", "Broken", 1), about("q", "Mended", 3)}, []string{"Once p 1 -1"}},
		"mended before":        {[]any{about("p", "Broken", 3), about("p", "Mended", 1)}, []string{"Once p 3 -1"}},
		"late part of it":      {[]any{about("p", "Broken", 1), about("p", "Mended", 3), about("p", "Broken", 2)}, []string{"Once p 1 3"}},
		"twice":                {[]any{about("p", "Broken", 1), about("p", "Mended", 3), about("p", "Broken", 4)}, []string{"Once p 1 3", "Once p 4 -1"}},
		"twice by silence":     {[]any{about("p", "Broken", 1), about("p", "Broken", 30)}, []string{"Once p 1 11", "Once p 30 -1"}},
		"three":                {[]any{about("p", "Restarted", 1), about("p", "Restarted", 2), about("p", "Restarted", 3)}, []string{"Often p 3 -1"}},
		"three of two":         {[]any{about("p", "Restarted", 1), about("p", "Restarted", 2), about("q", "Restarted", 3)}, nil},
		"three too slowly":     {[]any{about("p", "Restarted", 1), about("p", "Restarted", 4), about("p", "Restarted", 7)}, nil},
		"a series":             {[]any{series(about("p", "Restarted", 0), 3, 4)}, []string{"Often p 4 -1"}},
		"a slow series":        {[]any{series(about("p", "Restarted", 0), 3, 20)}, nil},
		"a growing series":     {[]any{growing(0, 0), growing(2, 1), growing(3, 2)}, []string{"Often p 2 -1"}},
		"only a label":         {[]any{growing(0, 0), growing(2, 1), growing(2, 1), growing(2, 1)}, nil},
		"a place in time":      {[]any{about("p", "FailedScheduling", 0), 4.0, about("p", "Scheduled", 4.5), 60.0}, nil},
		"no place":             {[]any{about("p", "FailedScheduling", 0), 4.0, 5.0}, []string{"Stays p 5 -1"}},
		"a place too late":     {[]any{about("p", "FailedScheduling", 0), about("p", "Scheduled", 7)}, []string{"Stays p 5 7"}},
		"no place, much later": {[]any{about("p", "FailedScheduling", 0), 100.0}, []string{"Stays p 5 45"}},
	} {
		b := newBook(rulesFor(t, testRules), "")
		for _, step := range c.steps {
			switch s := step.(type) {
			case float64:
				b.advance(begin.Add(time.Duration(s * float64(time.Minute))))
			case *eventsv1.Event:
				b.observe(s, true, begin.Add(time.Hour))
			}
			text, err := json.Marshal(&b) // as if it were killed and started again
			if err != nil {
				t.Fatal(err)
			}
			again := newBook(b.rules, "")
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			b = again
		}
		if diff := cmp.Diff(c.want, b.spans()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUnknownSeries: of a series whose beginning this process did not see, one observation counts.
func TestUnknownSeries(t *testing.T) {
	t.Parallel()
	b := newBook(rulesFor(t, testRules), "")
	b.observe(series(about("p", "Restarted", 0), 100, 4), false, begin)
	if got := b.spans(); got != nil {
		t.Error(got)
	}
	b.observe(series(about("p", "Restarted", 0), 102, 5), false, begin)
	if diff := cmp.Diff([]string{"Often p 5 -1"}, b.spans()); diff != "" {
		t.Error(diff)
	}
}

// TestSent: what is sent when. An alert that is over before anybody took it is held open, and then ended with its own
// time.
func TestSent(t *testing.T) {
	t.Parallel()
	b, now := newBook(rulesFor(t, testRules), ""), begin.Add(2*time.Hour)
	b.observe(about("p", "Broken", 1), true, now)
	b.observe(about("p", "Mended", 3), true, now)
	b.observe(about("p", "Broken", 20), true, now)
	b.observe(about("p", "Mended", 21), true, now)
	a := b.Alerts[keyOf(map[string]string{"alertname": "Once", "pod": "p"})]
	sent := func(at time.Time) string {
		all, closed := b.post(a, at)
		var texts []string
		for _, s := range all {
			texts = append(texts, fmt.Sprintf("%v-%v", s.StartsAt.Sub(begin), s.EndsAt.Sub(begin)))
		}
		return fmt.Sprint(texts, closed, all[len(all)-1].Annotations["over"])
	}
	for _, c := range []struct{ got, want string }{
		{sent(now), "[1m0s-3m0s 20m0s-2h6m0s] false2026-03-01T12:21:00Z"},
		{sent(now.Add(time.Hour)), "[1m0s-3m0s 20m0s-3h6m0s] false2026-03-01T12:21:00Z"}, // nobody has taken it
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	a.Told, a.Earlier = now, nil
	for after, want := range map[time.Duration]string{
		4 * time.Minute: "[20m0s-2h6m0s] false2026-03-01T12:21:00Z", 5 * time.Minute: "[20m0s-21m0s] true2026-03-01T12:21:00Z",
	} {
		if got := sent(now.Add(after)); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	a.Closed = now
	if b.clean(now.Add(keepClosed), time.Hour); len(b.Alerts) == 0 {
		t.Error("it is forgotten too soon")
	}
	if b.clean(now.Add(keepClosed+1), time.Hour); len(b.Alerts) != 0 {
		t.Error("it is not forgotten")
	}
	b.observe(about("q", "Broken", 119), true, now)
	a = b.Alerts[keyOf(map[string]string{"alertname": "Once", "pod": "q"})]
	if got, want := sent(now), "[1h59m0s-2h9m0s] false"; got != want { // by silence, whoever is left
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := sent(now.Add(8*time.Minute)), "[1h59m0s-2h12m0s] false"; got != want { // until it is known to be over
		t.Errorf("%s, want %s", got, want)
	}
}

// TestGivenUp: what nobody takes is kept for as long as was asked for, then it is counted, each time that it was.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	b, now := newBook(rulesFor(t, testRules), ""), begin.Add(2*time.Hour)
	for _, step := range []*eventsv1.Event{about("p", "Broken", 1), about("p", "Mended", 3), about("p", "Broken", 20), about("q", "Broken", 20)} {
		b.observe(step, true, now)
	}
	for _, a := range b.Alerts {
		a.Waits = now
	}
	if lost := b.clean(now.Add(48*time.Hour), time.Hour); lost != 0 {
		t.Errorf("%d are given up that go on", lost)
	}
	b.advance(now)
	if lost := b.clean(now.Add(time.Hour), time.Hour); lost != 0 {
		t.Errorf("%d are given up too soon", lost)
	}
	if lost := b.clean(now.Add(time.Hour+1), time.Hour); lost != 3 || len(b.Alerts) != 0 {
		t.Errorf("%d are given up, %d are left", lost, len(b.Alerts))
	}
}

// TestFull: there is room for so many alerts, and the others are counted.
func TestFull(t *testing.T) {
	t.Parallel()
	b := newBook(rulesFor(t, testRules), "")
	for i := range maxAlerts + 3 {
		b.observe(about(fmt.Sprint("p", i), "Broken", 1), true, begin)
	}
	if lost := b.clean(begin, time.Hour); lost != 3 || len(b.Alerts) != maxAlerts {
		t.Errorf("%d are given up, %d are kept", lost, len(b.Alerts))
	}
}

// TestRuleGone: the alerts of a rule that is taken out are over.
func TestRuleGone(t *testing.T) {
	t.Parallel()
	b := newBook(rulesFor(t, testRules), "")
	b.observe(about("p", "Broken", 1), true, begin)
	b.rules = nil
	b.advance(begin.Add(2 * time.Minute))
	if diff := cmp.Diff([]string{"Once p 1 1"}, b.spans()); diff != "" {
		t.Error(diff)
	}
}

// hostile are texts that anybody may write into an event.
var hostile = []string{
	"{{.Labels}} {{template \"x\"}} {{/*", "<script>alert(1)</script> <!channel> <http://evil.example|Log in>", "[Log in](http://evil.example) `code`",
	"@everyone @here @channel @all", "a\x00b\x1b[31m\r\nfake: line\u202e\u2028", "\xff\xfe half \xe2\x82", strings.Repeat("é", 3000), strings.Repeat("\xff", 3000),
	`", evil="1`, "a=b&revision=1#/x?y", "", "   ",
}

const hostileRule = `
- name: H
  search: type:warning
  labels: {pod: "{{.Name}}", note: "{{.Note}}", owner: "{{.Owner}}", team: '{{index .Labels "team"}}'}
  annotations: {summary: "{{.Note}} {{.Reason}}", sliced: '{{if .Note}}{{slice .Note 0 20}}{{else}}none{{end}}', link: "{{.Link}}"}
`

// checkHarmless fails the test unless an alert of an event is what Alertmanager takes, whatever the event says.
func checkHarmless(t *testing.T, text string) {
	t.Helper()
	ev := about("p", "Broken", 1)
	ev.Note, ev.Reason, ev.Regarding.Name, ev.Name = text, text, text, text
	ev.Labels = map[string]string{"team": text, text: text, "tidings.example/owner-name": text, "tidings.example/owner-kind": "Deployment"}
	b := newBook(rulesFor(t, hostileRule), "https://events.example/console/")
	b.observe(ev, true, begin)
	if len(b.Alerts) != 1 {
		t.Fatalf("%q: %d alerts", text, len(b.Alerts))
	}
	for _, a := range b.Alerts {
		a.Earlier = nil
		all, _ := b.post(a, begin)
		for _, texts := range []map[string]string{all[0].Labels, all[0].Annotations} {
			for name, value := range texts {
				most := map[bool]int{true: 4096, false: 512}[name == "summary" || name == "link"]
				if name == "sliced" {
					most = 4096
				}
				if !utf8.ValidString(value) || len(value) > most || value == "" || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%q: %s is %q", text, name, value)
				}
				for _, bad := range []string{"<", ">", "](", "@everyone", "@here", "@channel", "`"} {
					if strings.Contains(value, bad) {
						t.Errorf("%q: %s is %q, with %s", text, name, value, bad)
					}
				}
			}
		}
		if !strings.HasPrefix(all[0].Link, "https://events.example/console/#/events?event=") || strings.Count(all[0].Link, "revision=") != 1 || strings.ContainsAny(all[0].Link, " \"<>\n") {
			t.Errorf("%q: %s", text, all[0].Link)
		}
		if _, err := json.Marshal(all); err != nil {
			t.Error(err)
		}
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		checkHarmless(t, text)
	}
}

func FuzzHarmless(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(checkHarmless)
}

// TestFacts: what templates can use.
func TestFacts(t *testing.T) {
	t.Parallel()
	ev := about("web-0", "Broken", 1)
	ev.Labels = map[string]string{"tidings.example/cluster": "east", "tidings.example/owner-kind": "Deployment", "tidings.example/owner-name": "web", "tidings.example/node": "node-7", "app": "web"}
	b := newBook(rulesFor(t, `
- name: A
  search: owner:Deployment/web cluster:east
  labels: {cluster: "{{.Cluster}}", owner: "{{.Owner}}", node: "{{.Node}}", none: '{{index .Labels "none"}}', app: '{{index .Labels "app"}}'}
  annotations: {all: "{{.Kind}} {{.Namespace}} {{.Name}} {{.Type}} {{.Reason}} {{.Reporter}} {{.Note}} {{.Event}} {{.Count}} {{.Time}}"}
`), "https://x/")
	b.observe(ev, true, begin)
	for _, a := range b.Alerts {
		want := map[string]string{"alertname": "A", "cluster": "east", "owner": "Deployment/web", "node": "node-7", "app": "web"}
		if !maps.Equal(a.Labels, want) || a.Annotations["all"] != "Pod shop web-0 Warning Broken kubelet note of web-0 web-0.Broken.1 1 2026-03-01T12:01:00Z" {
			t.Errorf("%v", a)
		}
		if want := "https://x/#/events?event=shop%2Fweb-0.Broken.1&from=2026-03-01T11%3A31%3A00Z&q=kind%3A%22Pod%22+name%3A%22web-0%22&revision=7&to=2026-03-01T12%3A31%3A00Z"; a.Link != want {
			t.Errorf("%s, want %s", a.Link, want)
		}
	}
	if len(b.Alerts) != 1 {
		t.Errorf("%d alerts", len(b.Alerts))
	}
}
