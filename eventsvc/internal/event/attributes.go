package event

import (
	"encoding/binary"
	"iter"
	"sort"

	eventsv1 "k8s.io/api/events/v1"
)

// Attributes hold the fields and labels of a version that selectors can match. The
// encoding is flat and is read in place: for each Field a length (uvarint) and the
// text, then the number of labels (uvarint) and for each label, sorted by key, the
// length and text of its key and value.
type Attributes []byte

// NewAttributes encodes fields and labels.
func NewAttributes(fields [NumFields]string, lbls map[string]string) Attributes {
	n := int(NumFields)*2 + 2
	for _, f := range fields {
		n += len(f)
	}
	keys := make([]string, 0, len(lbls))
	for k, v := range lbls {
		keys = append(keys, k)
		n += len(k) + len(v) + 4
	}
	sort.Strings(keys)
	a := make([]byte, 0, n)
	for _, f := range fields {
		a = appendText(a, f)
	}
	a = binary.AppendUvarint(a, uint64(len(keys)))
	for _, k := range keys {
		a = appendText(appendText(a, k), lbls[k])
	}
	return a
}

func appendText(a []byte, s string) []byte {
	return append(binary.AppendUvarint(a, uint64(len(s))), s...)
}

// AttributesOf returns the attributes of an event.
func AttributesOf(ev *eventsv1.Event) Attributes {
	source := ev.DeprecatedSource.Component
	if source == "" {
		source = ev.ReportingController
	}
	var f [NumFields]string
	f[RegardingKind] = ev.Regarding.Kind
	f[RegardingNamespace] = ev.Regarding.Namespace
	f[RegardingName] = ev.Regarding.Name
	f[RegardingUID] = string(ev.Regarding.UID)
	f[RegardingAPIVersion] = ev.Regarding.APIVersion
	f[RegardingResourceVersion] = ev.Regarding.ResourceVersion
	f[RegardingFieldPath] = ev.Regarding.FieldPath
	f[Reason] = ev.Reason
	f[Type] = ev.Type
	f[ReportingController] = ev.ReportingController
	f[Source] = source
	return NewAttributes(f, ev.Labels)
}

// Field returns the text of a selectable field, "" if it is not set. The
// result shares memory with the attributes.
func (a Attributes) Field(f Field) []byte {
	rest := []byte(a)
	for ; ; f-- {
		var text []byte
		text, rest = cutText(rest)
		if f == 0 {
			return text
		}
	}
}

// Fields iterates over all fields and their texts, which share memory with the attributes.
func (a Attributes) Fields() iter.Seq2[Field, []byte] {
	return func(yield func(Field, []byte) bool) {
		rest := []byte(a)
		for f := range NumFields {
			var text []byte
			if text, rest = cutText(rest); !yield(f, text) {
				return
			}
		}
	}
}

// Labels iterates over all labels and their values, which share memory with the attributes.
func (a Attributes) Labels() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		rest, n := a.labels()
		for range n {
			var k, v []byte
			k, rest = cutText(rest)
			v, rest = cutText(rest)
			if !yield(k, v) {
				return
			}
		}
	}
}

// Label returns the value of a label and whether it is set.
func (a Attributes) Label(key string) ([]byte, bool) {
	for k, v := range a.Labels() {
		if string(k) == key {
			return v, true
		}
	}
	return nil, false
}

// labels returns the encoded labels and how many there are.
func (a Attributes) labels() (rest []byte, n uint64) {
	rest = a
	for range NumFields {
		_, rest = cutText(rest)
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)) {
		return nil, 0
	}
	return rest[size:], n
}

// cutText splits off a text with its length. Truncated bytes yield an empty text,
// so that a selector does not panic; damage is found by the record's checksum.
func cutText(a []byte) (text, rest []byte) {
	n, size := binary.Uvarint(a)
	if size <= 0 || n > uint64(len(a)-size) {
		return nil, nil
	}
	return a[size : size+int(n)], a[size+int(n):]
}
