package event

import (
	"encoding/binary"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// The mirror reports a time in which it did not watch a cluster as an event with this reason and reporter. Its annotations
// say from when until when, in RFC 3339, and [ClusterLabel] names the cluster.
const (
	GapReason   = "MirrorGap"
	GapReporter = "tidings.example/mirror"
	GapFrom     = "mirror.tidings.example/gap-from"
	GapTo       = "mirror.tidings.example/gap-to"
)

// It reports what a rule dropped in an hour as an event with this reason, and the annotations of a gap besides those that name
// the rule and count the changes.
const (
	DroppedReason = "EventsDropped"
	DroppedRule   = "mirror.tidings.example/dropped-rule"
	DroppedCount  = "mirror.tidings.example/dropped-count"
)

// Gap is a time in which nobody watched a cluster, in whole seconds, UTC.
type Gap struct {
	From, To time.Time
	Cluster  string
}

// GapOf returns the gap that an event reports, whoever wrote it. The copy of an event of a cluster reports none: anybody there
// may have written it, and the mirror only copies it.
func GapOf(ev *eventsv1.Event) (g Gap, ok bool) {
	if _, copied := ev.Annotations[SourceUID]; copied || ev.Reason != GapReason || ev.ReportingController != GapReporter {
		return g, false
	}
	from, err1 := time.Parse(time.RFC3339, ev.Annotations[GapFrom])
	to, err2 := time.Parse(time.RFC3339, ev.Annotations[GapTo])
	if err1 != nil || err2 != nil || !from.Before(to) {
		return g, false
	}
	second := func(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
	return Gap{From: second(from), To: second(to), Cluster: ev.Labels[ClusterLabel]}, true
}

// WithGap marks attributes that have an occurrence with the gap that their event reports. The server marks the reports
// that it believes: no field or label of an event does.
func (a Attributes) WithGap(g Gap) Attributes {
	return a.withMarks(g.From.Unix(), g.To.Unix(), a.Version())
}

// WithVersion notes the version that an imported event had in the store that it came from, so that an older one that
// is imported later does not replace it.
func (a Attributes) WithVersion(version uint64) Attributes {
	g, ok := a.Gap()
	if !ok {
		return a.withMarks(0, 0, version)
	}
	return a.withMarks(g.From.Unix(), g.To.Unix(), version)
}

// withMarks sets the marks: the times of a gap (varints), equal if there is no gap, and a version (uvarint).
func (a Attributes) withMarks(from, to int64, version uint64) Attributes {
	before := a[:len(a)-len(a.mark())]
	marked := append(make(Attributes, 0, len(a)+24), before...)
	return binary.AppendUvarint(binary.AppendVarint(binary.AppendVarint(marked, from), to), version)
}

// marks returns what withMarks has set.
func (a Attributes) marks() (from, to int64, version uint64) {
	b := a.mark()
	from, n := binary.Varint(b)
	if n <= 0 {
		return 0, 0, 0
	}
	to, m := binary.Varint(b[n:])
	if m <= 0 {
		return 0, 0, 0
	}
	version, _ = binary.Uvarint(b[n+m:])
	return from, to, version
}

// Gap returns the gap that the attributes are marked with.
func (a Attributes) Gap() (g Gap, ok bool) {
	from, to, _ := a.marks()
	return Gap{From: time.Unix(from, 0).UTC(), To: time.Unix(to, 0).UTC(), Cluster: a.Get(ClusterLabel)}, from < to
}

// Version returns the version that the event had in the store that it came from, 0 if it is not known.
func (a Attributes) Version() uint64 {
	_, _, version := a.marks()
	return version
}
