package event_test

import (
	"os"
	"regexp"
	"testing"

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
