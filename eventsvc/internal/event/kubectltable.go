package event

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidings.example/shared/printable"
)

// TableColumns returns the columns that kubectl shows for events, in both views. The
// descriptions are those of the core/v1 fields.
func TableColumns() []metav1.TableColumnDefinition {
	doc := corev1.Event{}.SwaggerDoc()
	column := func(name string, priority int32, description string) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority, Description: description}
	}
	name := column("Name", 1, metav1.ObjectMeta{}.SwaggerDoc()["name"])
	name.Format = "name"
	return []metav1.TableColumnDefinition{
		column("Last Seen", 0, doc["lastTimestamp"]),
		column("Type", 0, doc["type"]),
		column("Reason", 0, doc["reason"]),
		column("Object", 0, doc["involvedObject"]),
		column("Subobject", 1, corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]),
		column("Source", 1, doc["source"]),
		column("Message", 0, doc["message"]),
		column("First Seen", 1, doc["firstTimestamp"]),
		column("Count", 1, doc["count"]),
		name,
	}
}

// TableCells returns the cells of an event, one for each of [TableColumns]. Each text is one line without control and
// formatting characters, because kubectl sends cells to the terminal as they are. Ages are relative to now.
func TableCells(ev *eventsv1.Event, now time.Time) []any {
	first := Age(firstSeen(ev), now)
	last, count := first, cmp.Or(ev.DeprecatedCount, 1)
	if !ev.DeprecatedLastTimestamp.IsZero() {
		last = Age(ev.DeprecatedLastTimestamp.Time, now)
	}
	if ev.Series != nil {
		last, count = Age(ev.Series.LastObservedTime.Time, now), ev.Series.Count
	}
	source := cmp.Or(ev.DeprecatedSource.Component, ev.ReportingController)
	if host := cmp.Or(ev.DeprecatedSource.Host, ev.ReportingInstance); host != "" {
		source += ", " + host
	}
	cells := []any{last, ev.Type, ev.Reason, ObjectName(ev.Regarding.Kind, ev.Regarding.Name), ev.Regarding.FieldPath, source, ev.Note, first, count, ev.Name}
	for i, cell := range cells {
		if text, ok := cell.(string); ok {
			cells[i] = printable.OneLine(text)
		}
	}
	return cells
}

// ObjectName names an object as kubectl does, such as pod/web-0.
func ObjectName(kind, name string) string {
	if name == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "/" + name
}

// Age returns the time since t, as kubectl prints it.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}
