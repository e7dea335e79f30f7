package loki

import (
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/logql"
)

// The labels of streams, sorted, and those of entries.
var (
	streamNames   = slices.Sorted(slices.Values(append([]string{"level", "service_name"}, event.DimensionNames...)))
	metadataNames = []string{"action", "count", detectedLevel, "host", "name", "uid"}
)

// detectedLevel is the structured metadata in which Loki puts a level that it has found in
// a line. Grafana asks for it.
const detectedLevel = "detected_level"

// value returns a label of a stream, "" if it has none.
func value(d *event.Dimensions, name string) string {
	switch name {
	case "service_name":
		return d.Reporter
	case "level":
		if d.Type == "Warning" {
			return "warning"
		}
		return "info"
	}
	if text := d.Text(name); text != nil {
		return *text
	}
	return ""
}

// streamLabels returns the labels of a stream, sorted, with room for those of entries.
func streamLabels(d *event.Dimensions) []logql.Label {
	labels := make([]logql.Label, 0, len(streamNames)+len(metadataNames))
	for _, name := range streamNames {
		if v := value(d, name); v != "" {
			labels = append(labels, logql.Label{Name: name, Value: v})
		}
	}
	return labels
}
