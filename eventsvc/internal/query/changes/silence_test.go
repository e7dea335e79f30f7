package changes_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/query/changes"
)

// TestSilence: a namespace, a reporter or everything from which nothing comes any more is the first row, for as long as
// that lasts, and what has stopped there has no rows of its own. What is silent at this hour each day is not.
func TestSilence(t *testing.T) {
	t.Parallel()
	const start = 2 * 24 * 60 // minutes before noon
	say := func(m *memory, namespace, reporter string, from, to float64) {
		for before := from; before > to; before -= 0.5 {
			m.say(minutes(before), namespace, "Pod", "web-0", normal, "Pulled", reporter, "note")
		}
	}
	for _, test := range []struct {
		name   string
		record func(*memory)
		want   string
	}{
		{"nothing", func(m *memory) { say(m, "shop", "kubelet", start, 0) }, ""},
		{"everything since four hours", func(m *memory) {
			say(m, "shop", "kubelet", start, 240)
			say(m, "mail", "kubelet", start, 250)
		}, "all that you may list, whose newest event came 4h0m ago"},
		{"a namespace", func(m *memory) {
			say(m, "shop", "kubelet", start, 0)
			say(m, "mail", "kubelet", start, 60)
		}, "namespace mail, whose newest event came 1h0m ago"},
		{"a reporter", func(m *memory) {
			say(m, "shop", "kubelet", start, 0)
			say(m, "shop", "other", start, 0)
			for before := float64(start); before > 60; before -= 0.5 {
				m.say(minutes(before), "shop", "Node", "node-1", normal, "Ready", "monitor", "note")
			}
		}, "reporter monitor, whose newest event came 1h0m ago"},
		{"a namespace that comes in bursts", func(m *memory) {
			say(m, "shop", "kubelet", start, 0)
			for before := float64(start); before > 300; before -= 420 {
				say(m, "mail", "kubelet", before, before-20)
			}
		}, ""},
		{"a namespace whose last burst was hours ago", func(m *memory) {
			say(m, "shop", "kubelet", start, 0)
			for _, before := range []float64{2700, 2200, 1900, 1400, 900, 300} {
				say(m, "mail", "kubelet", before, before-60)
			}
		}, ""},
		{"a namespace that is silent at this hour each day", func(m *memory) {
			say(m, "shop", "kubelet", 5*24*60, 0)
			for day := 5.0; day > 0; day-- {
				say(m, "mail", "kubelet", day*24*60-120, (day-1)*24*60+180)
			}
		}, ""},
		{"a namespace that says something at this hour each day", func(m *memory) {
			say(m, "shop", "kubelet", 5*24*60, 0)
			say(m, "mail", "kubelet", 5*24*60, 120)
		}, "namespace mail, whose newest event came 2h0m ago"},
	} {
		a := rank(t, small(t, test.record), changes.Query{At: noon, Allows: everywhere})
		got := ""
		for i := range a.Rows {
			if r := &a.Rows[i]; r.Kind == changes.Silent {
				got += r.Why[strings.Index(r.Why, "; ")+2:]
			}
		}
		if want := strings.ReplaceAll(test.want, "h0m", "h"); got != want || len(a.Rows) > 1 {
			t.Errorf("%s: %q, want %q; %d rows; %s", test.name, got, want, len(a.Rows), a.Verdict.Text)
		}
	}
}
