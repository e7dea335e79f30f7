package event

import eventsv1 "k8s.io/api/events/v1"

// NumMembers is the number of members of an event besides kind and apiVersion.
const NumMembers = 15

// Member is a member of a JSON object: its name, and a pointer to the field that
// has its value.
type Member struct {
	Name  string
	Value any
}

// coreNames are the names of the members in core/v1, in the order of [Members].
var coreNames = [NumMembers]string{
	"metadata", "eventTime", "series", "reportingComponent", "reportingInstance", "action", "reason", "involvedObject",
	"related", "message", "type", "source", "firstTimestamp", "lastTimestamp", "count",
}

// Members returns the members of an event with their names in a view. They are in
// the order of events/v1, in which their numbers, counted from one, are those of
// the protobuf fields.
func Members(v View, ev *eventsv1.Event) [NumMembers]Member {
	members := [NumMembers]Member{
		{"metadata", &ev.ObjectMeta},
		{"eventTime", &ev.EventTime},
		{"series", &ev.Series},
		{"reportingController", &ev.ReportingController},
		{"reportingInstance", &ev.ReportingInstance},
		{"action", &ev.Action},
		{"reason", &ev.Reason},
		{"regarding", &ev.Regarding},
		{"related", &ev.Related},
		{"note", &ev.Note},
		{"type", &ev.Type},
		{"deprecatedSource", &ev.DeprecatedSource},
		{"deprecatedFirstTimestamp", &ev.DeprecatedFirstTimestamp},
		{"deprecatedLastTimestamp", &ev.DeprecatedLastTimestamp},
		{"deprecatedCount", &ev.DeprecatedCount},
	}
	if v == CoreV1 {
		for i, name := range coreNames {
			members[i].Name = name
		}
	}
	return members
}
