package codec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

const (
	storedFormat = 1

	// ownGroup is stored as the apiVersion of managed fields that were set through the group of this service.
	ownGroup = "\x00"
)

// The reasons of a [store.CorruptError] about a value.
var (
	errFormat = errors.New("unknown format of the value")
	errProto  = errors.New("protobuf of the value is damaged")
)

// Members that need care, in the order of [event.Members]. Their protobuf fields have the next number.
const (
	memberMetadata   = 0
	memberSeries     = 2
	memberController = 3
	memberInstance   = 4
	memberRelated    = 8
	memberNote       = 9
	memberCount      = 14
	numMembers       = event.NumMembers
)

// Fields of ObjectMeta and ManagedFieldsEntry.
const (
	fieldUID             = 5
	fieldResourceVersion = 6
	fieldLabels          = 11
	fieldFinalizers      = 14
	fieldManagedFields   = 17
	fieldAPIVersion      = 3
)

// Draft makes the stored form of an event, without its resourceVersion. All that is stored passes here, so times that
// cannot be shown are refused here ([event.CheckTimes]), with a 422.
func (c *Codec) Draft(ev *eventsv1.Event) (store.Draft, error) {
	if errs := event.CheckTimes(ev); len(errs) > 0 {
		return store.Draft{}, event.Invalid(ev.Name, errs)
	}
	s := *ev
	s.ResourceVersion = ""
	s.ManagedFields = slices.Clone(ev.ManagedFields)
	for i := range s.ManagedFields {
		e := &s.ManagedFields[i]
		if e.FieldsV1 != nil && len(e.FieldsV1.Raw) > 0 && !fields.Sound(e.FieldsV1.Raw) {
			return store.Draft{}, fmt.Errorf("managed fields of %q are no JSON", e.Manager)
		}
		if e.APIVersion == c.Group.APIVersion(event.EventsV1) {
			e.APIVersion = ownGroup
		}
	}
	value := make([]byte, 1+s.Size())
	value[0] = storedFormat
	if _, err := s.MarshalToSizedBuffer(value[1:]); err != nil {
		return store.Draft{}, fmt.Errorf("encode event as protobuf: %w", err)
	}
	return store.Draft{Attributes: event.AttributesOf(ev), Value: value}, nil
}

// Event decodes a stored event, with its resourceVersion.
func (c *Codec) Event(rec *store.View) (*eventsv1.Event, error) {
	var s stored
	if err := s.parse(rec); err != nil {
		return nil, err
	}
	ev := new(eventsv1.Event)
	if err := ev.Unmarshal(rec.Value[1:]); err != nil {
		return nil, corrupt(rec, err)
	}
	if rec.Revision > 0 {
		ev.ResourceVersion = strconv.FormatUint(rec.Revision, 10)
	}
	for i := range ev.ManagedFields {
		if e := &ev.ManagedFields[i]; e.APIVersion == ownGroup {
			e.APIVersion = c.Group.APIVersion(event.EventsV1)
		}
	}
	return ev, nil
}

// Note returns the note of a stored event. It shares memory with the event, and is read
// without decoding anything else, so that a search through all notes is cheap.
func Note(rec *store.View) ([]byte, error) {
	return findField(rec, rec.Value, memberNote+1)
}

// UID returns the UID of a stored event, as Note returns its note. It is empty if the event has none, or is none.
func UID(rec *store.View) []byte {
	b, err := findField(rec, rec.Value, memberMetadata+1)
	for ok := err == nil; ok && len(b) > 0; {
		var number int
		var payload []byte
		if number, payload, b, ok = nextField(b); ok && number == fieldUID {
			return payload
		}
	}
	return nil
}

// HasFinalizers tells whether an event has finalizers, which delay its deletion.
func (c *Codec) HasFinalizers(rec *store.View) (bool, error) {
	var s stored
	if err := s.parse(rec); err != nil {
		return false, err
	}
	for b := s.fields[memberMetadata]; len(b) > 0; {
		number, _, after, ok := nextField(b)
		if !ok {
			return false, corrupt(rec, errProto)
		}
		if number == fieldFinalizers {
			return true, nil
		}
		b = after
	}
	return false, nil
}

// findField returns the payload of a field of a stored value, or nothing if it has none.
func findField(rec *store.View, value []byte, wanted int) ([]byte, error) {
	if len(value) == 0 || value[0] != storedFormat {
		return nil, corrupt(rec, errFormat)
	}
	for b := value[1:]; len(b) > 0; {
		number, payload, after, ok := nextField(b)
		if !ok {
			return nil, corrupt(rec, errProto)
		}
		if number >= wanted {
			if number > wanted {
				payload = nil
			}
			return payload, nil
		}
		b = after
	}
	return nil, nil
}

// Numbers of protobuf fields of an event, and of those in it.
const (
	fieldInstance  = 5
	fieldSource    = 12
	fieldRegarding = 8
)

// Selectable returns the texts by which a stored event is found: its namespace and name, and its
// fields as [event.AttributesOf] has them. It reports false if there is none.
func Selectable(value []byte) (namespace, name []byte, fields [event.NumFields][]byte, ok bool) {
	if len(value) == 0 || value[0] != storedFormat {
		return nil, nil, fields, false
	}
	var source, host, instance []byte
	ok = eachField(value[1:], func(number int, payload []byte) bool {
		switch number {
		case memberMetadata + 1:
			return pick(payload, 1, &name, 3, &namespace)
		case memberController + 1:
			fields[event.ReportingController] = payload
		case fieldInstance:
			instance = payload
		case 7:
			fields[event.Reason] = payload
		case fieldRegarding:
			return eachField(payload, func(number int, payload []byte) bool {
				if number >= 1 && number <= int(event.RegardingFieldPath)+1 {
					fields[number-1] = payload
				}
				return true
			})
		case 11:
			fields[event.Type] = payload
		case fieldSource:
			return pick(payload, 1, &source, 2, &host)
		}
		return true
	})
	if fields[event.Source] = source; len(source) == 0 {
		fields[event.Source] = fields[event.ReportingController]
	}
	fields[event.Node] = event.NodeOf(fields[event.RegardingKind], fields[event.RegardingName], host, fields[event.ReportingController], instance)
	return namespace, name, fields, ok
}

// pick sets two texts to the payloads of two fields of a message, if it has them. It reports false if there is damage.
func pick(message []byte, first int, one *[]byte, second int, other *[]byte) bool {
	return eachField(message, func(number int, payload []byte) bool {
		switch number {
		case first:
			*one = payload
		case second:
			*other = payload
		}
		return true
	})
}

// eachField calls f with the fields of a message as long as it returns true. It reports false if f does not, or if
// there is damage.
func eachField(b []byte, f func(number int, payload []byte) bool) bool {
	for len(b) > 0 {
		number, payload, after, ok := nextField(b)
		if !ok || !f(number, payload) {
			return false
		}
		b = after
	}
	return true
}

// stored is a parsed value. It is reused from one value to the next.
type stored struct {
	revision uint64
	fields   [numMembers][]byte // payloads; nil if there is none
	rest     []byte             // all fields but the metadata, with their tags
	filled   []byte             // metadata as they are sent in protobuf, once they were asked for
	damaged  bool               // found while it was written
}

// parse finds the fields of a value. That the messages in them are sound shows when they are
// written: see failed.
func (s *stored) parse(rec *store.View) error {
	*s = stored{revision: rec.Revision, filled: s.filled[:0]}
	if len(rec.Value) == 0 || rec.Value[0] != storedFormat {
		return corrupt(rec, errFormat)
	}
	last := 0
	for b := rec.Value[1:]; len(b) > 0; {
		number, payload, after, ok := nextField(b)
		if !ok || number <= last || number > numMembers {
			return corrupt(rec, errProto)
		}
		s.fields[number-1] = payload
		if number == memberMetadata+1 {
			s.rest = after
		}
		last, b = number, after
	}
	for member, payload := range s.fields {
		if payload == nil && member != memberSeries && member != memberRelated { // only pointers are left out
			return corrupt(rec, errProto)
		}
	}
	return nil
}

// failed is the error of a value in which damage was found while it was written, or nil.
func (s *stored) failed(rec *store.View) error {
	if s.damaged {
		return corrupt(rec, errProto)
	}
	return nil
}

// corrupt is the error of a record whose value has err.
func corrupt(rec *store.View, err error) error {
	return &store.CorruptError{Key: rec.Key, Revision: rec.Revision, Reason: err.Error()}
}

// nextField reads the first field of a message. The payload of a varint is its bytes. It
// reports false for a field that ends early, or whose type no event has.
func nextField(b []byte) (number int, payload, after []byte, ok bool) {
	if len(b) > 1 && b[0] < 0x80 && b[1] < 0x80 { // nearly all: tag and length, or tag and varint, have one byte each
		number = int(b[0] >> 3)
		switch n := 2 + int(b[1]); {
		case protowire.Type(b[0]&7) == protowire.VarintType:
			return number, b[1:2], b[2:], true
		case protowire.Type(b[0]&7) == protowire.BytesType && n <= len(b):
			return number, b[2:n], b[n:], true
		}
	}
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, nil, nil, false
	}
	b = b[n:]
	switch kind {
	case protowire.BytesType:
		payload, n = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		if _, n = protowire.ConsumeVarint(b); n > 0 {
			payload = b[:n]
		}
	default:
		n = -1
	}
	if n < 0 {
		return 0, nil, nil, false
	}
	return int(num), payload, b[n:], true
}

// Origin decodes the [event.Origin] of a stored event.
func Origin(rec *store.View) (string, error) {
	ev, err := new(Codec).Event(rec) // the group shows in managed fields alone
	if err != nil {
		return "", err
	}
	return event.Origin(ev), nil
}
