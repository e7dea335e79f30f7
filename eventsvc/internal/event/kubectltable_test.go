package event_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

func ago(now time.Time, d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func microAgo(now time.Time, d time.Duration) metav1.MicroTime {
	return metav1.NewMicroTime(now.Add(-d))
}

// TestTableCells: rows as a kube-apiserver has sent them, and the remaining rules.
func TestTableCells(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	pod := corev1.ObjectReference{Kind: "Pod", Name: "p1"}
	for name, tt := range map[string]struct {
		ev   eventsv1.Event
		want []any
	}{
		"new style": {eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "x1"}, EventTime: microAgo(now, 41*time.Minute), Type: "Normal", Reason: "Because",
			Regarding: pod, ReportingController: "ex.io/ctl", ReportingInstance: "ctl-1", Note: "hello",
		}, []any{"41m", "Normal", "Because", "pod/p1", "", "ex.io/ctl, ctl-1", "hello", "41m", int32(1), "x1"}},
		"series": {eventsv1.Event{
			EventTime: microAgo(now, 36*time.Second), Regarding: pod, DeprecatedCount: 9,
			Series: &eventsv1.EventSeries{Count: 2, LastObservedTime: microAgo(now, 35*time.Second)},
		}, []any{"35s", "", "", "pod/p1", "", "", "", "36s", int32(2), ""}},
		"series without a time": {eventsv1.Event{
			EventTime: microAgo(now, 36*time.Second), Series: &eventsv1.EventSeries{Count: 2},
		}, []any{"<unknown>", "", "", "", "", "", "", "36s", int32(2), ""}},
		"old style": {eventsv1.Event{
			DeprecatedFirstTimestamp: ago(now, 34*time.Second), DeprecatedLastTimestamp: ago(now, 32*time.Second),
			DeprecatedCount: 2, DeprecatedSource: corev1.EventSource{Component: "legacy"}, EventTime: microAgo(now, time.Hour),
		}, []any{"32s", "", "", "", "", "legacy", "", "34s", int32(2), ""}},
		"old style with a later series": {eventsv1.Event{
			DeprecatedFirstTimestamp: ago(now, 41*time.Minute), DeprecatedLastTimestamp: ago(now, 40*time.Minute),
			Series:           &eventsv1.EventSeries{Count: 2, LastObservedTime: microAgo(now, 31*time.Minute)},
			DeprecatedSource: corev1.EventSource{Component: "kubelet", Host: "h1"}, Regarding: corev1.ObjectReference{Kind: "Node", Name: "n"},
		}, []any{"31m", "", "", "node/n", "", "kubelet, h1", "", "41m", int32(2), ""}},
		"source of mixed origin": {eventsv1.Event{
			DeprecatedSource: corev1.EventSource{Component: "cc"}, ReportingController: "other", ReportingInstance: "ctl-1",
		}, []any{"<unknown>", "", "", "", "", "cc, ctl-1", "", "<unknown>", int32(1), ""}},
		"host only": {eventsv1.Event{DeprecatedSource: corev1.EventSource{Host: "h"}},
			[]any{"<unknown>", "", "", "", "", ", h", "", "<unknown>", int32(1), ""}},
		"empty": {eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			[]any{"<unknown>", "", "", "", "", "", "", "<unknown>", int32(1), "n"}},
		"kind only, field path, white space": {eventsv1.Event{
			Regarding: corev1.ObjectReference{Kind: "ReplicaSet", FieldPath: "spec.containers{c}"}, Note: "\n two\nlines \t",
		}, []any{"<unknown>", "", "", "replicaset", "spec.containers{c}", "", "two lines", "<unknown>", int32(1), ""}},
		"control and formatting characters": {eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "n\x07"}, Type: "War\x1b[31mning", Reason: "\u202eReason", Note: "a\x00b\u009b2J\u2066c\x7f",
			Regarding:        corev1.ObjectReference{Kind: "P\u200bod", Name: "p\r1", FieldPath: "\ue000x\xff"},
			DeprecatedSource: corev1.EventSource{Component: "a\x1bc", Host: "\u2028h"},
		}, []any{"<unknown>", "War�[31mning", "�Reason", "p�od/p 1", "�x�", "a�c, �h", "a�b�2J�c�", "<unknown>", int32(1), "n�"}},
		"future": {eventsv1.Event{EventTime: microAgo(now, -time.Minute)},
			[]any{"<invalid>", "", "", "", "", "", "", "<invalid>", int32(1), ""}},
	} {
		if diff := cmp.Diff(tt.want, event.TableCells(&tt.ev, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLastSeen: the time of an event is what the column Last Seen shows, whichever of its times are set.
func TestLastSeen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for set := 1; set < 16; set++ {
		var ev eventsv1.Event
		for i, put := range []func(time.Duration){
			func(d time.Duration) { ev.EventTime = microAgo(now, d) },
			func(d time.Duration) { ev.DeprecatedFirstTimestamp = ago(now, d) },
			func(d time.Duration) { ev.DeprecatedLastTimestamp = ago(now, d) },
			func(d time.Duration) { ev.Series = &eventsv1.EventSeries{Count: 3, LastObservedTime: microAgo(now, d)} },
		} {
			if set&(1<<i) != 0 {
				put(time.Duration(i+1) * time.Second)
			}
		}
		if got, want := now.Sub(event.LastSeen(&ev)).String(), event.TableCells(&ev, now)[0]; got != want {
			t.Errorf("times %04b: %s ago, the table says %s", set, got, want)
		}
	}
}

func TestTableColumns(t *testing.T) {
	t.Parallel()
	type column struct {
		Name, Format string
		Priority     int32
	}
	var got []column
	for _, c := range event.TableColumns() {
		if c.Type != "string" || c.Description == "" {
			t.Errorf("column %q has type %q and description %q", c.Name, c.Type, c.Description)
		}
		got = append(got, column{c.Name, c.Format, c.Priority})
	}
	want := []column{
		{"Last Seen", "", 0}, {"Type", "", 0}, {"Reason", "", 0}, {"Object", "", 0}, {"Subobject", "", 1}, {"Source", "", 1},
		{"Message", "", 0}, {"First Seen", "", 1}, {"Count", "", 1}, {"Name", "name", 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if n := len(event.TableCells(&eventsv1.Event{}, time.Now())); n != len(want) {
		t.Errorf("%d cells for %d columns", n, len(want))
	}
}
