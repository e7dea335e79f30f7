package event

import (
	"encoding/binary"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// Occurrence says when and how often the thing that an event reports was observed. It is
// not the time at which the event was written: after an outage of a mirror the two differ
// by hours.
type Occurrence struct {
	// Time of the last observation, UTC, in whole microseconds: that of [LastSeen] or, if it
	// is not [Credible], that of the write.
	Time time.Time
	// Count of all observations up to this version, at least 1: series.count, else the
	// deprecated count.
	Count int64
	// New is how many of Count this version adds to the version before it. It is Count
	// if there is none, and 0 if only something else has changed.
	New int64
}

// LastSeen returns when an event was observed last, by the rule of kubectl's tables: the last
// time of its series, else lastTimestamp, else firstTimestamp, else eventTime. An event that has
// none of them was observed when it was created.
func LastSeen(ev *eventsv1.Event) time.Time {
	if ev.Series != nil && !ev.Series.LastObservedTime.IsZero() {
		return ev.Series.LastObservedTime.Time
	}
	if !ev.DeprecatedLastTimestamp.IsZero() {
		return ev.DeprecatedLastTimestamp.Time
	}
	return firstSeen(ev)
}

// firstSeen returns when an event was observed first.
func firstSeen(ev *eventsv1.Event) time.Time {
	switch {
	case !ev.DeprecatedFirstTimestamp.IsZero():
		return ev.DeprecatedFirstTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	}
	return ev.CreationTimestamp.Time
}

// OccurrenceOf returns the occurrence of a first version.
func OccurrenceOf(ev *eventsv1.Event) Occurrence {
	o := Occurrence{Time: time.UnixMicro(LastSeen(ev).UnixMicro()).UTC(), Count: int64(ev.DeprecatedCount)}
	if ev.Series != nil {
		o.Count = int64(ev.Series.Count)
	}
	o.Count = max(1, o.Count)
	o.New = o.Count
	return o
}

// maxAhead is how far an observation may be ahead of its write. The clocks of reporters differ, and
// some take local time for UTC.
const maxAhead = 24 * time.Hour

// Credible reports whether something that is written at an instant can have been observed at t: not
// before 1970, and not more than a day ahead.
func Credible(t, written time.Time) bool {
	return t.Unix() >= 0 && !t.After(written.Add(maxAhead))
}

// Written returns the attributes of a version that is written at an instant. If its time is not
// [Credible], it counts at that instant.
func (a Attributes) Written(at time.Time) Attributes {
	o, ok := a.Occurrence()
	if !ok || Credible(o.Time, at) {
		return a
	}
	o.Time = time.UnixMicro(at.UnixMicro()).UTC()
	return a.With(o)
}

// append appends the encoding that follows the labels: the time in microseconds since
// 1970 (varint), Count and New (uvarints).
func (o Occurrence) append(a []byte) []byte {
	a = binary.AppendVarint(a, o.Time.UnixMicro())
	a = binary.AppendUvarint(a, uint64(o.Count))
	return binary.AppendUvarint(a, uint64(o.New))
}

// cutOccurrence decodes an occurrence, and returns what is behind it.
func cutOccurrence(b []byte) (o Occurrence, rest []byte, ok bool) {
	micros, n := binary.Varint(b)
	if n <= 0 {
		return o, nil, false
	}
	count, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return o, nil, false
	}
	added, k := binary.Uvarint(b[n+m:])
	if k <= 0 {
		return o, nil, false
	}
	return Occurrence{Time: time.UnixMicro(micros).UTC(), Count: int64(count), New: int64(added)}, b[n+m+k:], true
}

// Occurrence returns when and how often the event was observed. It reports false for
// attributes that an older program has made.
func (a Attributes) Occurrence() (o Occurrence, ok bool) {
	o, _, ok = cutOccurrence(a.behindLabels())
	return o, ok
}

// Since returns the attributes of a version that follows another one: New is the
// difference of their counts, not less than 0.
func (a Attributes) Since(before Attributes) Attributes {
	o, ok := a.Occurrence()
	was, known := before.Occurrence()
	if !ok || !known {
		return a
	}
	o.New = max(0, o.Count-was.Count)
	return a.With(o)
}
