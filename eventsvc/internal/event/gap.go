package event

import (
	"encoding/binary"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The mirror reports a time in which it did not watch a cluster as an event with this reason and reporter. Its annotations
// say from when until when, in RFC 3339, and [ClusterLabel] names the cluster.
const (
	GapReason   = "MirrorGap"
	GapReporter = "tidings.example/mirror"
	GapFrom     = "mirror.tidings.example/gap-from"
	GapTo       = "mirror.tidings.example/gap-to"
)

// Its cursor, which says how far a cluster is copied, is an event with this reason and the same reporter. Its annotations have the
// cluster's version, the time up to which everything is here, when the newest event that is here was last written, in RFC 3339,
// and the version of the mirror.
const (
	CursorReason   = "Mirrored"
	CursorVersion  = "mirror.tidings.example/cursor"
	CursorComplete = "mirror.tidings.example/cursor-time"
	CursorLast     = "mirror.tidings.example/last-event"
	CursorMirror   = "mirror.tidings.example/mirror-version"
)

// It reports what a rule dropped in an hour as an event with this reason, and the annotations of a gap besides those that name
// the rule and count the changes.
const (
	DroppedReason = "EventsDropped"
	DroppedRule   = "mirror.tidings.example/dropped-rule"
	DroppedCount  = "mirror.tidings.example/dropped-count"
)

// Gap is a time in which nobody watched a cluster or, if it has a rule, in which that dropped changes of events. Times are in
// whole seconds, UTC.
type Gap struct {
	From, To time.Time
	Cluster  string
	Rule     string // "": nobody watched
	Count    int64  // of the changes that the rule dropped
}

// GapOf returns the gap that an event reports, whoever wrote it. The copy of an event of a cluster reports none: anybody there
// may have written it, and the mirror only copies it.
func GapOf(ev *eventsv1.Event) (g Gap, ok bool) {
	if _, copied := ev.Annotations[SourceUID]; copied || !reportsGap(ev.Reason) || ev.ReportingController != GapReporter {
		return g, false
	}
	if ev.Reason == DroppedReason {
		var err error
		g.Rule = ev.Annotations[DroppedRule]
		g.Count, err = strconv.ParseInt(ev.Annotations[DroppedCount], 10, 64)
		if err != nil || g.Count < 1 || len(validation.IsDNS1123Label(g.Rule)) > 0 {
			return Gap{}, false
		}
	}
	from, err1 := time.Parse(time.RFC3339, ev.Annotations[GapFrom])
	to, err2 := time.Parse(time.RFC3339, ev.Annotations[GapTo])
	if err1 != nil || err2 != nil || !from.Before(to) {
		return Gap{}, false
	}
	second := func(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
	g.From, g.To, g.Cluster = second(from), second(to), ev.Labels[ClusterLabel]
	return g, true
}

// reportsGap reports whether events with a reason may report a [Gap].
func reportsGap(reason string) bool { return reason == GapReason || reason == DroppedReason }

// ClaimsGap reports whether the event of the attributes seems to report a [Gap], which the server need not believe.
func (a Attributes) ClaimsGap() bool { return reportsGap(string(a.Field(Reason))) }

// WithGap marks attributes that have an occurrence with the gap that their event reports. The server marks the reports
// that it believes: no field or label of an event does.
func (a Attributes) WithGap(g Gap) Attributes { return a.withMarks(g, a.Version()) }

// WithVersion notes the version that an imported event had in the store that it came from, so that an older one that
// is imported later does not replace it.
func (a Attributes) WithVersion(version uint64) Attributes {
	g, _, _ := a.marks()
	return a.withMarks(g, version)
}

// withMarks sets the marks: the times of a gap (varints), equal if there is none, a version (uvarint) and, if the gap has a rule,
// that (length and text) and its count (varint).
func (a Attributes) withMarks(g Gap, version uint64) Attributes {
	before := a[:len(a)-len(a.mark())]
	marked := append(make(Attributes, 0, len(a)+24), before...)
	from, to := int64(0), int64(0)
	if g.From.Before(g.To) {
		from, to = g.From.Unix(), g.To.Unix()
	}
	marked = binary.AppendUvarint(binary.AppendVarint(binary.AppendVarint(marked, from), to), version)
	if g.Rule == "" {
		return marked
	}
	return binary.AppendVarint(appendText(marked, g.Rule), g.Count)
}

// marks returns what withMarks has set, but for the cluster of the gap.
func (a Attributes) marks() (g Gap, version uint64, ok bool) {
	b := a.mark()
	from, n := binary.Varint(b)
	if n <= 0 {
		return g, 0, false
	}
	to, m := binary.Varint(b[n:])
	if m <= 0 {
		return g, 0, false
	}
	version, v := binary.Uvarint(b[n+m:])
	if from >= to {
		return g, version, false
	}
	g.From, g.To = time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC()
	if rest := b[n+m+max(v, 0):]; v > 0 && len(rest) > 0 {
		rule, rest := cutText(rest)
		g.Rule = string(rule)
		g.Count, _ = binary.Varint(rest)
	}
	return g, version, true
}

// Gap returns the gap that the attributes are marked with.
func (a Attributes) Gap() (g Gap, ok bool) {
	if g, _, ok = a.marks(); ok {
		g.Cluster = a.Get(ClusterLabel)
	}
	return g, ok
}

// Version returns the version that the event had in the store that it came from, 0 if it is not known.
func (a Attributes) Version() uint64 {
	_, version, _ := a.marks()
	return version
}
