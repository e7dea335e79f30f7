package event

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCursors: an event is a cursor by its reason, reporter, cluster and annotations. The mark of one is no gap, and
// stays beside a version and with another occurrence.
func TestCursors(t *testing.T) {
	t.Parallel()
	cursor := func(change func(*eventsv1.Event)) *eventsv1.Event {
		ev := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{ClusterLabel: "east"},
				Annotations: map[string]string{CursorVersion: "7", CursorComplete: "2026-03-04T10:00:00.5+02:00", CursorLast: "2026-03-04T07:59:00Z", CursorMirror: "v1"},
			},
			Reason: CursorReason, ReportingController: GapReporter, DeprecatedCount: 7,
		}
		change(ev)
		return ev
	}
	same := func(*eventsv1.Event) {}
	want := Cursor{"east", "7", time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC), time.Date(2026, 3, 4, 7, 59, 0, 0, time.UTC), "v1"}
	got, ok := ReportOf(cursor(same))
	if !ok || got != (Report{Cursor: want}) || got.Cluster() != "east" {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, change := range map[string]func(*eventsv1.Event){
		"reason":     func(ev *eventsv1.Event) { ev.Reason = "Mirror" },
		"reporter":   func(ev *eventsv1.Event) { ev.ReportingController = "example.com/other" },
		"copied":     func(ev *eventsv1.Event) { ev.Annotations[SourceUID] = "1-2-3" },
		"no time":    func(ev *eventsv1.Event) { delete(ev.Annotations, CursorComplete) },
		"long ago":   func(ev *eventsv1.Event) { ev.Annotations[CursorComplete] = "1970-01-01T00:00:00Z" },
		"no version": func(ev *eventsv1.Event) { delete(ev.Annotations, CursorVersion) },
		"no cluster": func(ev *eventsv1.Event) { ev.Labels = nil },
	} {
		if got, ok := ReportOf(cursor(change)); ok || got != (Report{}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	plain := AttributesOf(cursor(same))
	if plain.Believed() || !plain.ClaimsReport() {
		t.Error("it is believed without a mark, or claims nothing")
	}
	o, _ := plain.Occurrence()
	marked := plain.WithReport(Report{Cursor: want})
	for name, a := range map[string]Attributes{
		"marked": marked, "with": marked.With(o), "a version": marked.WithVersion(9), "a version before": plain.WithVersion(9).WithReport(Report{Cursor: want}),
		"since": marked.Since(AttributesOf(cursor(func(ev *eventsv1.Event) { ev.DeprecatedCount = 3 }))),
	} {
		if gap, is := a.Gap(); !a.Believed() || is || gap != (Gap{}) || a.Version() != map[bool]uint64{true: 9}[name[0] == 'a'] {
			t.Errorf("%s: believed %v, gap %+v, version %d", name, a.Believed(), gap, a.Version())
		}
	}
}
