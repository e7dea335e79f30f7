package event

import (
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// GapReason and GapReporter are the reason and the reporter of the event by which a mirror reports a time in which it
// did not watch a cluster. The annotations of this event say from when until when, in RFC 3339; [ClusterLabel] names
// the cluster.
const (
	GapReason   = "MirrorGap"
	GapReporter = "tidings.example/mirror"
	GapFrom     = "mirror.tidings.example/gap-from"
	GapTo       = "mirror.tidings.example/gap-to"
)

// A mirror reports the changes that a rule dropped in an hour as an event with this reason. Such an event has the
// annotations of a gap, and two more, which name the rule and count the changes.
const (
	DroppedReason = "EventsDropped"
	DroppedRule   = "mirror.tidings.example/dropped-rule"
	DroppedCount  = "mirror.tidings.example/dropped-count"
)

// Gap is a time in which nobody watched a cluster or, if Rule is set, in which that rule dropped changes of events.
// Times are in whole seconds, UTC.
type Gap struct {
	From, To time.Time
	Cluster  string
	Rule     string // "": nobody watched
	Count    int64  // of the changes that the rule dropped
}

// GapOf returns the gap that an event reports, whoever wrote it. The copy of an event of a cluster reports none:
// anybody there may have written it, and the mirror only copies it.
func GapOf(ev *eventsv1.Event) (g Gap, ok bool) {
	if ev.Reason != GapReason && ev.Reason != DroppedReason || !ofMirror(ev) {
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
	g.From, g.To, g.Cluster = wholeSecond(from), wholeSecond(to), ev.Labels[ClusterLabel]
	return g, true
}

func wholeSecond(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }

// ofMirror reports whether an event says that a mirror reports it, and is no copy.
func ofMirror(ev *eventsv1.Event) bool {
	_, copied := ev.Annotations[SourceUID]
	return !copied && ev.ReportingController == GapReporter
}

// Gap returns the gap that the attributes are marked with.
func (a Attributes) Gap() (g Gap, ok bool) {
	m := a.marks()
	if m.from >= m.to {
		return g, false
	}
	return Gap{time.Unix(m.from, 0).UTC(), time.Unix(m.to, 0).UTC(), a.Get(ClusterLabel), m.rule, m.count}, true
}
