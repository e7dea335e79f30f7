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
	// Time of the last observation, UTC, in whole microseconds: series.lastObservedTime,
	// else eventTime, else the deprecated lastTimestamp or firstTimestamp, else the
	// creationTimestamp.
	Time time.Time
	// Count of all observations up to this version, at least 1: series.count, else the
	// deprecated count.
	Count int64
	// New is how many of Count this version adds to the version before it. It is Count
	// if there is none, and 0 if only something else has changed.
	New int64
}

// OccurrenceOf returns the occurrence of a first version.
func OccurrenceOf(ev *eventsv1.Event) Occurrence {
	o := Occurrence{Count: max(1, int64(ev.DeprecatedCount))}
	switch {
	case ev.Series != nil && !ev.Series.LastObservedTime.IsZero():
		o.Time = ev.Series.LastObservedTime.Time
	case !ev.EventTime.IsZero():
		o.Time = ev.EventTime.Time
	case !ev.DeprecatedLastTimestamp.IsZero():
		o.Time = ev.DeprecatedLastTimestamp.Time
	case !ev.DeprecatedFirstTimestamp.IsZero():
		o.Time = ev.DeprecatedFirstTimestamp.Time
	default:
		o.Time = ev.CreationTimestamp.Time
	}
	if ev.Series != nil {
		o.Count = max(1, int64(ev.Series.Count))
	}
	o.Time, o.New = time.UnixMicro(o.Time.UnixMicro()).UTC(), o.Count
	return o
}

// append appends the encoding that ends the attributes: the time in microseconds since
// 1970 (varint), Count and New (uvarints).
func (o Occurrence) append(a []byte) []byte {
	a = binary.AppendVarint(a, o.Time.UnixMicro())
	a = binary.AppendUvarint(a, uint64(o.Count))
	return binary.AppendUvarint(a, uint64(o.New))
}

// Occurrence returns when and how often the event was observed. It reports false for
// attributes that an older program has made.
func (a Attributes) Occurrence() (o Occurrence, ok bool) {
	rest := a.occurrence()
	micros, n := binary.Varint(rest)
	if n <= 0 {
		return o, false
	}
	count, m := binary.Uvarint(rest[n:])
	if m <= 0 {
		return o, false
	}
	added, k := binary.Uvarint(rest[n+m:])
	return Occurrence{Time: time.UnixMicro(micros).UTC(), Count: int64(count), New: int64(added)}, k > 0
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
