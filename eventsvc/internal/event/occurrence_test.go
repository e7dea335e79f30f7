package event_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
)

func TestOccurrence(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 11, 23, 4, 0, second, 123456789, time.UTC) }
	want := func(second int, count int64) event.Occurrence {
		return event.Occurrence{Time: at(second).Truncate(time.Microsecond), Count: count, New: count, Counted: count}
	}
	created := metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}
	for name, test := range map[string]struct {
		ev   eventsv1.Event
		want event.Occurrence
	}{
		"creationTimestamp": {eventsv1.Event{ObjectMeta: created}, want(1, 1)},
		"firstTimestamp":    {eventsv1.Event{ObjectMeta: created, DeprecatedFirstTimestamp: metav1.NewTime(at(2))}, want(2, 1)},
		"lastTimestamp": {eventsv1.Event{ObjectMeta: created, DeprecatedFirstTimestamp: metav1.NewTime(at(2)),
			DeprecatedLastTimestamp: metav1.NewTime(at(3)), DeprecatedCount: 4}, want(3, 4)},
		"eventTime": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5))}, want(5, 1)},
		"eventTime and lastTimestamp": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(2)),
			DeprecatedLastTimestamp: metav1.NewTime(at(8)), DeprecatedCount: 2}, want(8, 2)},
		"eventTime and firstTimestamp": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5)),
			DeprecatedFirstTimestamp: metav1.NewTime(at(2))}, want(2, 1)},
		"series": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5)), DeprecatedCount: 3, DeprecatedLastTimestamp: metav1.NewTime(at(10)),
			Series: &eventsv1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at(9))}}, want(9, 7)},
		"series without a time": {eventsv1.Event{EventTime: metav1.NewMicroTime(at(5)), Series: &eventsv1.EventSeries{Count: 7}}, want(5, 7)},
		"no count":              {eventsv1.Event{ObjectMeta: created, DeprecatedCount: -4}, want(1, 1)},
		"before1970":            {eventsv1.Event{EventTime: metav1.NewMicroTime(time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC))}, event.Occurrence{Time: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), Count: 1, New: 1, Counted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.ev.Labels = map[string]string{"a": "b", event.ClusterLabel: "east"}
			got, ok := event.AttributesOf(&test.ev).Occurrence()
			if diff := cmp.Diff(test.want, got); diff != "" || !ok {
				t.Error(ok, diff)
			}
		})
	}
}

// TestWritten: what was observed before 1970 or more than a day ahead counts when it was written.
func TestWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 4, 0, 0, 123456789, time.UTC)
	for _, test := range []struct {
		seen, want time.Time
	}{
		{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), at.Truncate(time.Microsecond)},
		{time.Unix(0, -1000).UTC(), at.Truncate(time.Microsecond)},
		{time.Unix(0, 0).UTC(), time.Unix(0, 0).UTC()},
		{at.AddDate(-9, 0, 0).Truncate(time.Second), at.AddDate(-9, 0, 0).Truncate(time.Second)},
		{at.Add(24 * time.Hour).Truncate(time.Microsecond), at.Add(24 * time.Hour).Truncate(time.Microsecond)},
		{at.Add(24*time.Hour + time.Second), at.Truncate(time.Microsecond)},
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), at.Truncate(time.Microsecond)},
	} {
		a := event.AttributesOf(&eventsv1.Event{Reason: "R", EventTime: metav1.NewMicroTime(test.seen), DeprecatedCount: 3}).Written(at)
		o, ok := a.Occurrence()
		if !ok || o != (event.Occurrence{Time: test.want, Count: 3, New: 3, Counted: 3}) || string(a.Field(event.Reason)) != "R" {
			t.Errorf("%s: %+v", test.seen, o)
		}
	}
}

func TestOccurrenceSince(t *testing.T) {
	t.Parallel()
	count := func(n int32) event.Attributes {
		return event.AttributesOf(&eventsv1.Event{Reason: "R", DeprecatedCount: n, ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}})
	}
	for _, test := range []struct {
		before, after int32
		added         int64
	}{{7, 12, 5}, {7, 7, 0}, {7, 3, 0}, {1, 1000, 999}} {
		a := count(test.after).Since(count(test.before))
		o, ok := a.Occurrence()
		if !ok || o.New != test.added || o.Count != int64(test.after) {
			t.Errorf("from %d to %d: %+v (%v), want %d new", test.before, test.after, o, ok, test.added)
		}
		if string(a.Field(event.Reason)) != "R" || a.Get("a") != "b" {
			t.Error("fields or labels were lost")
		}
	}
	// An older version that comes back, and the newer one again, add nothing.
	back := count(3).Since(count(12))
	for i, want := range []int64{0, 0, 1} {
		back = count([]int32{5, 12, 13}[i]).Since(back)
		if o, _ := back.Occurrence(); o.New != want {
			t.Errorf("step %d: %+v, want %d new", i, o, want)
		}
	}
	old := event.NewAttributes([event.NumFields]string{event.Reason: "R"}, map[string]string{"a": "b"})
	if _, ok := old.Occurrence(); ok {
		t.Error("an occurrence was found where there is none")
	}
	if o, ok := count(4).Since(old).Occurrence(); !ok || o.New != 4 {
		t.Errorf("after a version without an occurrence: %+v (%v)", o, ok)
	}
	if got := old.Since(count(4)); string(got) != string(old) {
		t.Error("attributes without an occurrence have changed")
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	copied := func(uid, source string) string {
		return event.Origin(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Annotations: map[string]string{event.SourceUID: source}}})
	}
	own := event.Origin(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{UID: "a"}})
	if own != "a" || copied("b", "a") != copied("c", "a") || copied("a", "b") == copied("a", "c") || copied("b", "a") == own {
		t.Errorf("%q, %q", own, copied("b", "a"))
	}
}

func TestDimensions(t *testing.T) {
	t.Parallel()
	ev := eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{event.ClusterLabel: "east"}},
		Type:       "Warning", Reason: "BackOff", Regarding: corev1.ObjectReference{Kind: "Pod"}, DeprecatedSource: corev1.EventSource{Component: "kubelet"},
	}
	want := event.Dimensions{Namespace: "shop", Type: "Warning", Reason: "BackOff", Kind: "Pod", Reporter: "kubelet", Cluster: "east"}
	if diff := cmp.Diff(want, event.DimensionsOf("shop", event.AttributesOf(&ev))); diff != "" {
		t.Error(diff)
	}
	ev.ReportingController, want.Reporter = "example.com/kubelet", "example.com/kubelet"
	if diff := cmp.Diff(want, event.DimensionsOf("shop", event.AttributesOf(&ev))); diff != "" {
		t.Error(diff)
	}
}
