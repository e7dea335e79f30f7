package event

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Decode reads JSON into a new object of a view as kube-apiserver does, and if strict
// returns unknown and duplicate fields. Numbers that do not fit are errors. Unlike the
// library it reads every time that [ParseMicroTime] does.
func Decode(text []byte, into Object, strict bool) ([]error, error) {
	// The members here hide those of the same name in the embedded event. Errors have the
	// names of the types.
	type EventSeries struct {
		Count            int32     `json:"count"`
		LastObservedTime microTime `json:"lastObservedTime"`
	}
	series := func(s *EventSeries) *eventsv1.EventSeries {
		if s == nil {
			return nil
		}
		return &eventsv1.EventSeries{Count: s.Count, LastObservedTime: metav1.MicroTime(s.LastObservedTime)}
	}
	if core, ok := into.(*corev1.Event); ok {
		type Event struct {
			*corev1.Event
			EventTime microTime    `json:"eventTime"`
			Series    *EventSeries `json:"series"`
		}
		read := &Event{Event: core}
		problems, err := decode(text, read, strict)
		core.EventTime, core.Series = metav1.MicroTime(read.EventTime), (*corev1.EventSeries)(series(read.Series))
		return problems, err
	}
	ev := into.(*eventsv1.Event)
	type Event struct {
		*eventsv1.Event
		EventTime microTime    `json:"eventTime"`
		Series    *EventSeries `json:"series"`
	}
	read := &Event{Event: ev}
	problems, err := decode(text, read, strict)
	ev.EventTime, ev.Series = metav1.MicroTime(read.EventTime), series(read.Series)
	return problems, err
}

// DecodeTree is [Decode] for JSON that was read already. The converter of the library, which
// kube-apiserver uses in its place, cuts numbers that do not fit: 5000000000 would be 705032704.
func DecodeTree(tree map[string]any, into Object, strict bool) ([]error, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return Decode(text, into, strict)
}

func decode(text []byte, into any, strict bool) (problems []error, err error) {
	if strict {
		problems, err = kjson.UnmarshalStrict(text, into)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, into)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		wrong.Field = strings.TrimPrefix(wrong.Field, "Event.") // the embedded event
	}
	return problems, err
}

// microTime is a MicroTime in JSON, whose fraction may have any number of digits up to nine.
type microTime metav1.MicroTime

// UnmarshalJSON implements [json.Unmarshaler].
func (t *microTime) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	var text string
	err := json.Unmarshal(b, &text)
	if err == nil {
		t.Time, err = ParseMicroTime(text)
	}
	return err
}

// ParseMicroTime reads a time of RFC 3339 whose fraction has at most nine digits, and drops
// what is less than a microsecond, as clients do that send protobuf. kube-apiserver wants
// exactly six digits.
func ParseMicroTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, err
	}
	if _, fraction, ok := strings.Cut(text, "."); ok && len(fraction)-len(strings.TrimLeft(fraction, "0123456789")) > 9 {
		return time.Time{}, &time.ParseError{Layout: time.RFC3339, Value: text, Message: ": the fraction has more than nine digits"}
	}
	return t.Truncate(time.Microsecond).Local(), nil
}

// CanonicalTimes writes the MicroTimes in a patch of an event as answers have them, in UTC
// with six digits, so that they can be compared with them. It leaves alone what is no time.
func CanonicalTimes(patch map[string]any) {
	canonicalTime(patch, "eventTime")
	if series, ok := patch["series"].(map[string]any); ok {
		canonicalTime(series, "lastObservedTime")
	}
}

func canonicalTime(in map[string]any, name string) {
	text, _ := in[name].(string)
	if t, err := ParseMicroTime(text); err == nil && Writable(t) {
		in[name] = t.UTC().Format(metav1.RFC3339Micro)
	}
}
