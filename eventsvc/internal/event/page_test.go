package event_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// TestFieldsPage: the page of selectable fields has every one of both views, and no other.
func TestFieldsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../deploy/docs/reference/fields.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[event.View]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`([A-Za-z]+\\.?[A-Za-z]*)`)? ?\\| `([A-Za-z]+\\.?[A-Za-z]*)` \\|").FindAllStringSubmatch(string(page), -1) {
		for view, field := range map[event.View]string{event.EventsV1: row[1], event.CoreV1: row[2]} {
			if field == "" {
				continue
			}
			listed[view]++
			if _, err := event.ParseSelector(view, field+"=x", ""); err != nil {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
	for view, n := range map[event.View]int{event.EventsV1: event.Selectable(event.EventsV1), event.CoreV1: event.Selectable(event.CoreV1)} {
		if listed[view] != n {
			t.Errorf("view %v has %d fields, the page %d", view, n, listed[view])
		}
	}
}

// TestTimesPage: the page lists the times of an event in the order in which they are asked.
func TestTimesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../deploy/docs/reference/fields.md")
	if err != nil {
		t.Fatal(err)
	}
	var ev eventsv1.Event
	set := map[string]func(time.Time){
		"series.lastObservedTime":    func(at time.Time) { ev.Series = &eventsv1.EventSeries{LastObservedTime: metav1.NewMicroTime(at)} },
		"eventTime":                  func(at time.Time) { ev.EventTime = metav1.NewMicroTime(at) },
		"deprecatedLastTimestamp":    func(at time.Time) { ev.DeprecatedLastTimestamp = metav1.NewTime(at) },
		"deprecatedFirstTimestamp":   func(at time.Time) { ev.DeprecatedFirstTimestamp = metav1.NewTime(at) },
		"metadata.creationTimestamp": func(at time.Time) { ev.CreationTimestamp = metav1.NewTime(at) },
	}
	listed := regexp.MustCompile("(?m)^\\d\\. `([^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(listed) != len(set) {
		t.Fatalf("the page lists %d times, want %d", len(listed), len(set))
	}
	for i, row := range slices.Backward(listed) {
		at := time.Unix(int64(i), 0)
		if set[row[1]](at); !event.LastSeen(&ev).Equal(at) {
			t.Errorf("%s does not come before what follows it", row[1])
		}
	}
}
