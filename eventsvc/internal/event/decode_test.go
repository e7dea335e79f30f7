package event_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
)

// A time has nought to nine digits of a fraction, of which six are kept.
func TestParseMicroTime(t *testing.T) {
	t.Parallel()
	const digits = "987654321"
	for n := range 10 {
		text, want := "2026-05-04T12:00:00", time.Date(2026, 5, 4, 12, 0, 0, 987654000, time.UTC)
		if n > 0 {
			text += "." + digits[:n]
		}
		want = want.Truncate(time.Duration(float64(time.Second) / []float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e6, 1e6, 1e6}[n]))
		for zone, shift := range map[string]time.Duration{"Z": 0, "+02:00": -2 * time.Hour, "-00:30": 30 * time.Minute} {
			if got, err := event.ParseMicroTime(text + zone); err != nil || !got.Equal(want.Add(shift)) {
				t.Errorf("%s: %v, %v; want %v", text+zone, got, err, want.Add(shift))
			}
		}
	}
	for _, text := range []string{
		"", "2026-05-04", "2026-05-04T12:00:00", "2026-05-04T12:00:00.Z", "2026-05-04T12:00:00." + digits + "0Z", "2026-05-04 12:00:00Z",
		"2026-02-30T12:00:00Z", "2026-05-04T12:00:60Z", "1795176060", "2026-05-04T12:00:00z",
	} {
		if got, err := event.ParseMicroTime(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// What does not fit is an error in both views, whether it is read as text or as a tree.
func TestDecodeNumbers(t *testing.T) {
	t.Parallel()
	for _, number := range []any{int64(2147483648), int64(-2147483649), int64(5000000000), 5e9, -5e9, 1e20, 1.5, -0.5, int64(1) << 62} {
		for view, names := range map[event.View][]string{event.EventsV1: {"deprecatedCount", "series"}, event.CoreV1: {"count", "series"}} {
			for _, name := range names {
				tree := map[string]any{name: number}
				if name == "series" {
					tree[name] = map[string]any{"count": number}
				}
				obj := event.NewObject(view)
				if _, err := event.DecodeTree(tree, obj, true); err == nil || !strings.Contains(err.Error(), "ount of type int32") {
					t.Errorf("%v became %v: %v", tree, obj, err)
				}
			}
		}
	}
	for _, number := range []any{int64(2147483647), int64(-2147483648), 3.0} {
		ev, core := &eventsv1.Event{}, &corev1.Event{}
		_, err := event.DecodeTree(map[string]any{"deprecatedCount": number, "series": map[string]any{"count": number}}, ev, true)
		if want := fmt.Sprint(number); err != nil || fmt.Sprint(ev.DeprecatedCount) != want || fmt.Sprint(ev.Series.Count) != want {
			t.Errorf("%v became %v: %v", number, ev, err)
		}
		_, err = event.DecodeTree(map[string]any{"count": number, "series": map[string]any{"count": number}}, core, true)
		if want := fmt.Sprint(number); err != nil || fmt.Sprint(core.Count) != want || fmt.Sprint(core.Series.Count) != want {
			t.Errorf("%v became %v: %v", number, core, err)
		}
	}
}

// Only the two times of an event are written anew, and only if they are times.
func TestCanonicalTimes(t *testing.T) {
	t.Parallel()
	patch := map[string]any{
		"eventTime": "2026-05-04T14:00:00.5+02:00", "metadata": map[string]any{"annotations": map[string]any{"eventTime": "2026-05-04T14:00:00Z"}},
		"series": map[string]any{"lastObservedTime": "2026-05-04T12:00:00Z", "eventTime": "2026-05-04T12:00:00Z", "count": int64(1)},
	}
	event.CanonicalTimes(patch)
	want := "map[eventTime:2026-05-04T12:00:00.500000Z metadata:map[annotations:map[eventTime:2026-05-04T14:00:00Z]] " +
		"series:map[count:1 eventTime:2026-05-04T12:00:00Z lastObservedTime:2026-05-04T12:00:00.000000Z]]"
	if got := fmt.Sprint(patch); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	broken := map[string]any{"eventTime": "today", "series": 5}
	event.CanonicalTimes(broken)
	if got := fmt.Sprint(broken); got != "map[eventTime:today series:5]" {
		t.Error(got)
	}
}
