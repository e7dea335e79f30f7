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
		return event.Occurrence{First: at(second).Truncate(time.Microsecond), Time: at(second).Truncate(time.Microsecond), Count: count, New: count, Counted: count}
	}
	since := func(first int, o event.Occurrence) event.Occurrence {
		o.First = at(first).Truncate(time.Microsecond)
		return o
	}
	created := metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}
	for name, test := range map[string]struct {
		ev   eventsv1.Event
		want event.Occurrence
	}{
		"creationTimestamp": {eventsv1.Event{ObjectMeta: created}, want(1, 1)},
		"firstTimestamp":    {eventsv1.Event{ObjectMeta: created, DeprecatedFirstTimestamp: metav1.NewTime(at(2))}, want(2, 1)},
		"lastTimestamp": {eventsv1.Event{ObjectMeta: created, DeprecatedFirstTimestamp: metav1.NewTime(at(2)),
			DeprecatedLastTimestamp: metav1.NewTime(at(3)), DeprecatedCount: 4}, since(2, want(3, 4))},
		"eventTime": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5))}, want(5, 1)},
		"eventTime and lastTimestamp": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(2)),
			DeprecatedLastTimestamp: metav1.NewTime(at(8)), DeprecatedCount: 2}, since(2, want(8, 2))},
		"eventTime and firstTimestamp": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5)),
			DeprecatedFirstTimestamp: metav1.NewTime(at(2))}, want(2, 1)},
		"series": {eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(5)), DeprecatedCount: 3, DeprecatedLastTimestamp: metav1.NewTime(at(10)),
			Series: &eventsv1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at(9))}}, since(5, want(9, 7))},
		"series without a time": {eventsv1.Event{EventTime: metav1.NewMicroTime(at(5)), Series: &eventsv1.EventSeries{Count: 7}}, want(5, 7)},
		"no count":              {eventsv1.Event{ObjectMeta: created, DeprecatedCount: -4}, want(1, 1)},
		"before1970":            {eventsv1.Event{EventTime: metav1.NewMicroTime(time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC))}, event.Occurrence{First: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), Time: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), Count: 1, New: 1, Counted: 1}},
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
		if !ok || o != (event.Occurrence{First: test.want, Time: test.want, Count: 3, New: 3, Counted: 3}) || string(a.Field(event.Reason)) != "R" {
			t.Errorf("%s: %+v", test.seen, o)
		}
	}
}

// TestFirstNotCredible: a first observation that nobody can have made is not known.
func TestFirstNotCredible(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	for _, first := range []time.Time{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), at.Add(48 * time.Hour)} {
		a := event.AttributesOf(&eventsv1.Event{DeprecatedFirstTimestamp: metav1.NewTime(first), DeprecatedLastTimestamp: metav1.NewTime(at), DeprecatedCount: 3})
		if o, _ := a.Written(at).Occurrence(); !o.First.Equal(at) || !o.Time.Equal(at) {
			t.Errorf("%s: %+v", first, o)
		}
	}
}

// TestSpread: a first version counts evenly between its first and its last observation, each of
// which is a second of its own. A later version counts at its last.
func TestSpread(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		span       time.Duration
		count, new int64
		times      int
	}{
		"once":                {0, 1, 1, 1},
		"once, over an hour":  {time.Hour, 1, 1, 1},
		"twice":               {time.Hour, 2, 2, 2},
		"many":                {7 * 24 * time.Hour, 2700, 2700, 60},
		"within one second":   {900 * time.Millisecond, 50, 50, 1},
		"within a few":        {3 * time.Second, 50, 50, 4},
		"for years, no end":   {50 * 365 * 24 * time.Hour, 1<<31 - 1, 1<<31 - 1, 60},
		"a later version":     {time.Hour, 12, 5, 1},
		"nothing new":         {time.Hour, 12, 0, 1},
		"the first is not so": {-time.Hour, 12, 12, 1},
	} {
		o := event.Occurrence{First: last.Add(999*time.Millisecond - test.span), Time: last.Add(999 * time.Millisecond), Count: test.count, New: test.new}
		var sum, before, next, least, most int64
		times := 0
		o.Spread(func(second, span, n int64) {
			if times == 0 {
				least, most = n, n
			} else if second <= before || second != next {
				t.Errorf("%s: %d comes behind %d, which stands for what is before %d", name, second, before, next)
			}
			if times == 0 && test.times > 1 && second != o.First.Unix() {
				t.Errorf("%s: it begins at %d", name, second)
			}
			if times++; times < test.times {
				least, most = min(least, n), max(most, n)
			} else if times > 1 && n != 1 {
				t.Errorf("%s: %d times at the last", name, n)
			}
			sum, before, next = sum+n, second, second+span
		})
		if times != test.times || sum != test.new || before != last.Unix() || next != before || most-least > 1 {
			t.Errorf("%s: %d times, %d in all, from %d to %d each", name, times, sum, least, most)
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
