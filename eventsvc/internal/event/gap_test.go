package event

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report is an event that reports a gap of an hour.
func report(change func(*eventsv1.Event)) *eventsv1.Event {
	ev := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{ClusterLabel: "east", "a": "b"},
			Annotations: map[string]string{GapFrom: "2026-03-04T10:00:00+02:00", GapTo: "2026-03-04T09:00:00.5Z"},
		},
		Reason: GapReason, ReportingController: GapReporter, DeprecatedCount: 7,
	}
	if change != nil {
		change(ev)
	}
	return ev
}

// TestGaps: an event reports a gap by its reason, reporter and annotations. Its attributes are marked only where the
// server marks them, and keep the mark with another occurrence.
func TestGaps(t *testing.T) {
	t.Parallel()
	want := Gap{From: time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC), Cluster: "east"}
	got, ok := GapOf(report(nil))
	if !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, change := range map[string]func(*eventsv1.Event){
		"reason":   func(ev *eventsv1.Event) { ev.Reason = "Mirrored" },
		"reporter": func(ev *eventsv1.Event) { ev.ReportingController = "example.com/other" },
		"source": func(ev *eventsv1.Event) {
			ev.ReportingController, ev.DeprecatedSource.Component = "", GapReporter
		},
		"copied":   func(ev *eventsv1.Event) { ev.Annotations["mirror.tidings.example/uid"] = "1-2-3" },
		"no begin": func(ev *eventsv1.Event) { delete(ev.Annotations, GapFrom) },
		"no end":   func(ev *eventsv1.Event) { ev.Annotations[GapTo] = "soon" },
		"backward": func(ev *eventsv1.Event) { ev.Annotations[GapTo] = "2026-03-04T08:00:00Z" },
	} {
		if got, ok := GapOf(report(change)); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	plain := AttributesOf(report(nil))
	if got, ok := plain.Gap(); ok {
		t.Errorf("without a mark: %+v", got)
	}
	marked := plain.WithReport(Report{Gap: want})
	o, _ := plain.Occurrence()
	for name, a := range map[string]Attributes{
		"marked": marked, "with": marked.With(o), "since": marked.Since(AttributesOf(report(func(ev *eventsv1.Event) { ev.DeprecatedCount = 3 }))),
	} {
		got, ok := a.Gap()
		if o, known := a.Occurrence(); !ok || got != want || !known || o.Count != 7 || a.Get("a") != "b" {
			t.Errorf("%s: %+v, %v, %+v", name, got, ok, o)
		}
	}
	if got, ok := NewAttributes([NumFields]string{}, nil).Gap(); ok {
		t.Errorf("without an occurrence: %+v", got)
	}
}

// TestDropped: an event reports what a rule dropped by another reason, a rule and a count. The mark has both, beside a
// version.
func TestDropped(t *testing.T) {
	t.Parallel()
	dropped := func(change func(*eventsv1.Event)) *eventsv1.Event {
		return report(func(ev *eventsv1.Event) {
			ev.Reason, ev.Annotations[DroppedRule], ev.Annotations[DroppedCount] = DroppedReason, "noise-2", "9223372036854775807"
			change(ev)
		})
	}
	want := Gap{From: time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC), Cluster: "east", Rule: "noise-2", Count: 9223372036854775807}
	ev := dropped(func(*eventsv1.Event) {})
	if got, ok := GapOf(ev); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, change := range map[string]func(*eventsv1.Event){
		"no rule":  func(ev *eventsv1.Event) { delete(ev.Annotations, DroppedRule) },
		"a text":   func(ev *eventsv1.Event) { ev.Annotations[DroppedRule] = "ignore all\nprevious" },
		"no count": func(ev *eventsv1.Event) { delete(ev.Annotations, DroppedCount) },
		"none":     func(ev *eventsv1.Event) { ev.Annotations[DroppedCount] = "0" },
		"too many": func(ev *eventsv1.Event) { ev.Annotations[DroppedCount] = "9223372036854775808" },
		"no begin": func(ev *eventsv1.Event) { delete(ev.Annotations, GapFrom) },
		"copied":   func(ev *eventsv1.Event) { ev.Annotations[SourceUID] = "1-2-3" },
	} {
		if got, ok := GapOf(dropped(change)); ok || got != (Gap{}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	only := &Selector{Dropped: true}
	plain := AttributesOf(ev)
	for name, c := range map[string]struct {
		a    Attributes
		want bool
	}{
		"no mark": {plain, false}, "marked": {plain.WithReport(Report{Gap: want}), true}, "a version": {plain.WithReport(Report{Gap: want}).WithVersion(7), true},
		"a version before": {plain.WithVersion(7).WithReport(Report{Gap: want}), true}, "nobody watched": {plain.WithReport(Report{Gap: Gap{From: want.From, To: want.To}}), false},
	} {
		if got, _ := c.a.Gap(); only.Matches("", "", c.a) != c.want || c.want && got != want || c.a.Version() != 7 && name[0] == 'a' {
			t.Errorf("%s: %+v, version %d", name, got, c.a.Version())
		}
	}
}
