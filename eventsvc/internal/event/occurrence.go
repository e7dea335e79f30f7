package event

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Occurrence says when and how often the thing that an event reports was observed. It is
// not the time at which the event was written: after an outage of a mirror the two differ
// by hours.
type Occurrence struct {
	// First is the time of the first observation, or Time if the event does not say when
	// that was.
	First time.Time
	// Time of the last observation, UTC, in whole microseconds: [LastSeen] or, if it
	// is not [Credible], the time of the write.
	Time time.Time
	// Count of all observations up to this version, at least 1: series.count, else the
	// deprecated count.
	Count int64
	// New is how many observations this version adds to those that were counted of the event
	// before. It is Count if none were, and 0 if only something else has changed.
	New int64
	// Counted is how many observations were counted of the event up to this version: the
	// largest Count that it ever had. An observation is counted once, although an import may
	// bring an older version back, or one that was deleted.
	Counted int64
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
	if first := firstSeen(ev); !first.IsZero() {
		return first
	}
	return ev.CreationTimestamp.Time
}

// firstSeen returns when an event was observed first, zero if it does not say that.
func firstSeen(ev *eventsv1.Event) time.Time {
	if !ev.DeprecatedFirstTimestamp.IsZero() {
		return ev.DeprecatedFirstTimestamp.Time
	}
	return ev.EventTime.Time
}

// OccurrenceOf returns the occurrence of a first version.
func OccurrenceOf(ev *eventsv1.Event) Occurrence {
	o := Occurrence{Time: inMicros(LastSeen(ev)), Count: int64(ev.DeprecatedCount)}
	if o.First = o.Time; !firstSeen(ev).IsZero() {
		o.First = inMicros(firstSeen(ev))
	}
	if ev.Series != nil {
		o.Count = int64(ev.Series.Count)
	}
	o.Count = max(1, o.Count)
	o.New, o.Counted = o.Count, o.Count
	return o
}

func inMicros(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }

// spreadTimes is how many times stand for the observations of a first version, at most. More
// would make an event that says it came a million times expensive to store.
const spreadTimes = 60

// Spread calls visit with the seconds, in order, in which the observations that a version adds
// were made, and their numbers. The last second has Time. Of a first version that was observed
// several times, only the first and the last time are known: all observations but the last are
// spread evenly between the two. Each second but the last stands for the span that begins with
// it, in seconds; the span of the last is 0.
func (o Occurrence) Spread(visit func(second, span, n int64)) {
	first, last, times := o.First.Unix(), o.Time.Unix(), int64(1)
	if o.New == o.Count && first < last {
		times = max(1, min(o.New, spreadTimes, last-first+1))
	}
	left, parts := o.New, times-1
	for i := range parts {
		begin, end := first+(last-first)*i/parts, first+(last-first)*(i+1)/parts
		n := (o.New-1)*(i+1)/parts - (o.New-1)*i/parts
		visit(begin, end-begin, n)
		left -= n
	}
	visit(last, 0, left)
}

// LastIn returns when a version was observed last within a range of time, of which to is no part, as far as that is
// known. It reports false if it was not.
func (o Occurrence) LastIn(from, to time.Time) (at time.Time, ok bool) {
	if o.Time.Before(to) || o.First.IsZero() || !o.First.Before(to) {
		return o.Time, !o.Time.Before(from) && o.Time.Before(to)
	}
	o.Spread(func(second, span, n int64) {
		begin := time.Unix(second, 0).UTC()
		if span > 0 && n > 0 && !begin.Before(from) && begin.Before(to) { // the last one without a span is at o.Time
			at, ok = begin, true
		}
	})
	return at, ok
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
// [Credible], it counts at that instant. If the first observation is not, it is not known.
func (a Attributes) Written(at time.Time) Attributes {
	o, ok := a.Occurrence()
	if !ok || Credible(o.Time, at) && Credible(o.First, at) {
		return a
	}
	if !Credible(o.Time, at) {
		o.Time = inMicros(at)
	}
	if !Credible(o.First, at) {
		o.First = o.Time
	}
	return a.With(o)
}

// Append appends the encoding that follows the labels: the time in microseconds since
// 1970 (varint), Count, New, what Counted is beyond Count, and the microseconds from First to
// Time (uvarints).
func (o Occurrence) Append(a []byte) []byte {
	span := uint64(0)
	if !o.First.IsZero() && o.First.Before(o.Time) {
		span = uint64(o.Time.UnixMicro() - o.First.UnixMicro())
	}
	a = binary.AppendVarint(a, o.Time.UnixMicro())
	a = binary.AppendUvarint(a, uint64(o.Count))
	a = binary.AppendUvarint(a, uint64(o.New))
	a = binary.AppendUvarint(a, uint64(max(0, o.Counted-o.Count)))
	return binary.AppendUvarint(a, span)
}

// cutOccurrence decodes an occurrence, and returns what is behind it.
func cutOccurrence(b []byte) (o Occurrence, rest []byte, ok bool) {
	micros, n := binary.Varint(b)
	if n <= 0 {
		return o, nil, false
	}
	var counts [4]uint64
	for i := range counts {
		b = b[n:]
		if counts[i], n = binary.Uvarint(b); n <= 0 {
			return o, nil, false
		}
	}
	o = Occurrence{Time: time.UnixMicro(micros).UTC(), Count: int64(counts[0]), New: int64(counts[1])}
	o.First, o.Counted = time.UnixMicro(micros-int64(counts[3])).UTC(), o.Count+int64(counts[2])
	return o, b[n:], true
}

// Occurrence returns when and how often the event was observed. It reports false for
// attributes without an occurrence.
func (a Attributes) Occurrence() (o Occurrence, ok bool) {
	o, _, ok = cutOccurrence(a.behindLabels())
	return o, ok
}

// Since returns the attributes of a version that follows another one of its event: what was
// counted then is not counted again.
func (a Attributes) Since(before Attributes) Attributes {
	o, ok := a.Occurrence()
	was, known := before.Occurrence()
	if !ok || !known {
		return a
	}
	o.Counted = max(was.Counted, o.Count)
	o.New = o.Counted - was.Counted
	return a.With(o)
}

// SourceUID is the annotation of a copy that a mirror has made: the uid that the event has in its cluster.
const SourceUID = "mirror.tidings.example/uid"

// SourceVersion is the annotation of a copy that has the resourceVersion, in its cluster, of the version that it shows.
const SourceVersion = "mirror.tidings.example/resource-version"

// SourceLabels is the annotation of a copy that has the keys of the labels that the event has in its cluster, separated
// by commas. A later version of the copy replaces these labels, and no others.
const SourceLabels = "mirror.tidings.example/labels"

// CopyName returns the name of an event that is stored beside others of its name, such as the copy of a mirror: the
// same for every version of it, another one for any other event.
func CopyName(cluster, name string, uid types.UID) string {
	sum := sha256.Sum256([]byte(cluster + "/" + string(uid)))
	return fmt.Sprintf("%s.%x", name, sum[:5])
}

// Origin names an event where it was first written: the copy of a mirror by the uid in its cluster, any other event by
// its own uid. Events with the same name and origin are the same event: what both of them report counts once.
func Origin(ev *eventsv1.Event) string {
	if uid, copied := ev.Annotations[SourceUID]; copied {
		return SourceUID + "=" + uid
	}
	return string(ev.UID)
}
