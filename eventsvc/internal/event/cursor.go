package event

import (
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// The mirror's cursor says how far a cluster is copied. It is an event with this reason and the reporter of gaps. Its
// annotations are the cluster's version, the time up to which everything is copied, the time at which the newest copied
// event was last written (both in RFC 3339), and the version of the mirror.
const (
	CursorReason   = "Mirrored"
	CursorVersion  = "mirror.tidings.example/cursor"
	CursorComplete = "mirror.tidings.example/cursor-time"
	CursorLast     = "mirror.tidings.example/last-event"
	CursorMirror   = "mirror.tidings.example/mirror-version"
)

// Cursor says how far a cluster is copied. Times are in whole seconds, UTC.
type Cursor struct {
	Cluster  string
	Version  string    // of the cluster
	Complete time.Time // everything that the cluster had at this time is copied
	Last     time.Time // when the newest copied event was last written in the cluster; zero: unknown
	Mirror   string    // version of the program
}

// CursorOf returns the cursor that an event reports, whoever wrote it. The copy of an event of a cluster reports none,
// as with gaps.
func CursorOf(ev *eventsv1.Event) (c Cursor, ok bool) {
	if ev.Reason != CursorReason || !ofMirror(ev) {
		return c, false
	}
	complete, err := time.Parse(time.RFC3339, ev.Annotations[CursorComplete])
	if err != nil || complete.Unix() <= 0 || ev.Labels[ClusterLabel] == "" || ev.Annotations[CursorVersion] == "" {
		return c, false
	}
	c = Cursor{ev.Labels[ClusterLabel], ev.Annotations[CursorVersion], wholeSecond(complete), time.Time{}, ev.Annotations[CursorMirror]}
	if last, err := time.Parse(time.RFC3339, ev.Annotations[CursorLast]); err == nil {
		c.Last = wholeSecond(last)
	}
	return c, true
}
