package changes_test

import (
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
)

// TestSeldom: a search for what came seldom or never before, and came, has a row and a verdict about it, and one for
// what comes as usual says how much was compared with what.
func TestSeldom(t *testing.T) {
	t.Parallel()
	lost := func(before ...float64) func(*memory, func(float64) float64) {
		return func(m *memory, ago func(float64) float64) {
			for _, hours := range before {
				m.say(ago(hours), "default", "Node", "node-41", normal, "NodeNotReady", "node-controller", "Node node-41 status is now: NodeNotReady")
			}
		}
	}
	for _, test := range []struct {
		name, reason string // all reasons, if it is empty
		record       func(*memory, func(float64) float64)
		kind         changes.Kind
		verdict, why string
		object       string // that is asked about, instead of the reason
	}{
		{"never before", "NodeNotReady", lost(5), changes.New, "NodeNotReady of Node node-41: once since 2026-05-13T07:00:00Z, 5h ago.", "once in 1d, never before in 14d", ""},
		{"once before", "NodeNotReady", lost(5, 29), changes.Again, "NodeNotReady of Node node-41: once since 2026-05-13T07:00:00Z, 5h ago; again, as on Tuesday 2026-05-12 07:00 UTC (once).", "against 0 expected", ""},
		{"twice before", "NodeNotReady", lost(5, 149, 150), changes.Again, "NodeNotReady of Node node-41: once since 2026-05-13T07:00:00Z, 5h ago; again, as on Thursday 2026-05-07 06:00 UTC (2 times in 1h).", "once in 1d", ""},
		{"each third day", "NodeNotReady", lost(5, 77, 149, 221, 293), "", "Nothing in these 1d differs from what is usual: 1 event of NodeNotReady, compared with the 14d before.", "", ""},
		{"all the time", "Unhealthy", lost(), "", "Nothing in these 1d differs from what is usual: 24 events of Unhealthy, compared with the 14d before.", "", ""},
		{"not at all", "OOMKilling", lost(), "", "Nothing in these 1d differs from what is usual: no events, compared with the 14d before.", "", ""},
		{"beside what comes all the time", "", lost(5), changes.New, "NodeNotReady of Node node-41: once since 2026-05-13T07:00:00Z, 5h ago.", "never before", ""},
		{"about an object", "", lost(5), changes.New, "NodeNotReady of Node node-41: once since 2026-05-13T07:00:00Z, 5h ago.", "once about node-41", "node-41"},
		{"about an object of which nothing came", "", lost(5), "", "Nothing in these 1d differs from what is usual: no events, compared with the 14d before.", "", "node-42"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := fortnight(t, test.record)
			q := changes.Query{At: noon, Window: 24 * time.Hour, Allows: everywhere}
			if a := rank(t, m, q); len(a.Rows) != 0 {
				t.Errorf("without a search: %+v", a.Rows)
			}
			q.Wanted = func(d event.Dimensions) bool { return test.reason == "" || d.Reason == test.reason }
			if test.object != "" {
				q.Wanted, q.Object = nil, query.Subject{Kind: "Node", Name: test.object}
			}
			a := rank(t, m, q)
			if text := strings.TrimPrefix(a.Verdict.Text, "In what the search finds: "); text != test.verdict {
				t.Errorf("verdict %q, want %q", text, test.verdict)
			}
			if test.kind == "" && len(a.Rows) == 0 {
				return
			}
			if len(a.Rows) != 1 || a.Rows[0].Kind != test.kind || !strings.Contains(a.Rows[0].Why, test.why) {
				t.Errorf("rows %+v, want one, %s, %s", a.Rows, test.kind, test.why)
			}
		})
	}
}

// TestSeldomBetweenOutages: what came between two former outages, and seldom else, is left out of what is usual once.
func TestSeldomBetweenOutages(t *testing.T) {
	t.Parallel()
	m := fortnight(t, func(m *memory, _ func(float64) float64) {
		end := 15 * day
		for n := range 3 {
			for reason, window := range map[string]float64{"Evicted": 6, "FailedMount": 8} {
				m.say(end-60*(15*window+5)+float64(n), "shop", "Pod", "api-0", warning, reason, "kubelet", "note")
				m.say(end-300+float64(n), "shop", "Pod", "api-0", warning, reason, "kubelet", "note")
			}
		}
		for _, before := range []float64{60 * (15*7 + 5), 600} {
			m.say(end-before, "shop", "Pod", "web-0", normal, "Preempted", "kubelet", "note")
		}
	})
	a := rank(t, m, changes.Query{At: noon, Allows: everywhere, Wanted: func(d event.Dimensions) bool { return d.Reason == "Preempted" }})
	if len(a.Rows) != 1 || a.Rows[0].Kind != changes.Again || !(a.Rows[0].Score > 0) || a.Rows[0].Before < 0 {
		t.Errorf("%+v", a.Rows)
	}
}
