package event

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
)

// Attributes hold the fields and labels of a version that selectors can match. The
// encoding is flat and is read in place: for each Field a length (uvarint) and the
// text, then the number of labels (uvarint) and for each label, sorted by key, the
// length and text of its key and value, then an [Occurrence] if it has one and, if either is
// there, the mark of a [Report] and the version that the event had at its source: see
// [Attributes.WithReport] and [Attributes.WithVersion].
type Attributes []byte

// NewAttributes encodes fields and labels, without an occurrence.
func NewAttributes(fields [NumFields]string, lbls map[string]string) Attributes {
	var room [256]byte // for most
	return bytes.Clone(appendAttributes(room[:0], fields, lbls))
}

func appendAttributes(a []byte, fields [NumFields]string, lbls map[string]string) []byte {
	for _, f := range fields {
		a = appendText(a, f)
	}
	a = binary.AppendUvarint(a, uint64(len(lbls)))
	var few [8]string
	keys := slices.AppendSeq(few[:0], maps.Keys(lbls))
	slices.Sort(keys)
	for _, k := range keys {
		a = appendText(appendText(a, k), lbls[k])
	}
	return a
}

func appendText(a []byte, s string) []byte {
	return append(binary.AppendUvarint(a, uint64(len(s))), s...)
}

// AttributesOf returns the attributes of the first version of an event. Those of a later
// version are [Attributes.Since] the one before.
func AttributesOf(ev *eventsv1.Event) Attributes {
	var room [272]byte // for most
	a := appendAttributes(room[:0], [NumFields]string{
		RegardingKind:            ev.Regarding.Kind,
		RegardingNamespace:       ev.Regarding.Namespace,
		RegardingName:            ev.Regarding.Name,
		RegardingUID:             string(ev.Regarding.UID),
		RegardingAPIVersion:      ev.Regarding.APIVersion,
		RegardingResourceVersion: ev.Regarding.ResourceVersion,
		RegardingFieldPath:       ev.Regarding.FieldPath,
		Reason:                   ev.Reason,
		Type:                     ev.Type,
		ReportingController:      ev.ReportingController,
		Source:                   cmp.Or(ev.DeprecatedSource.Component, ev.ReportingController),
		Node:                     NodeOf(ev.Regarding.Kind, ev.Regarding.Name, ev.DeprecatedSource.Host, ev.ReportingController, ev.ReportingInstance),
	}, ev.Labels)
	return bytes.Clone(OccurrenceOf(ev).Append(a))
}

// With returns the attributes with an occurrence, in the place of any that they have.
func (a Attributes) With(o Occurrence) Attributes {
	before := a[:len(a)-len(a.behindLabels())]
	return append(o.Append(append(make(Attributes, 0, len(a)+16), before...)), a.Mark()...)
}

// Field returns the text of a selectable field, "" if it is not set. The
// result shares memory with the attributes.
func (a Attributes) Field(f Field) []byte {
	for field, text := range a.Fields() {
		if field == f {
			return text
		}
	}
	return nil
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
		n, rest := a.labels()
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

// labels returns the number of labels, and the bytes that begin with them.
func (a Attributes) labels() (n uint64, rest []byte) {
	rest = a
	for range NumFields {
		_, rest = cutText(rest)
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)) {
		return 0, nil
	}
	return n, rest[size:]
}

// behindLabels returns the bytes behind the labels.
func (a Attributes) behindLabels() []byte {
	n, rest := a.labels()
	for range 2 * n {
		_, rest = cutText(rest)
	}
	return rest
}

// Mark returns the marks of the server, which are behind the occurrence.
func (a Attributes) Mark() []byte {
	_, mark, _ := cutOccurrence(a.behindLabels())
	return mark
}

// Lookup returns the value of a label and whether it is set. With Has and Get it
// implements labels.Labels of apimachinery.
func (a Attributes) Lookup(key string) (string, bool) {
	for k, v := range a.Labels() {
		if string(k) == key {
			return string(v), true
		}
	}
	return "", false
}

// Has reports whether a label is set.
func (a Attributes) Has(key string) bool {
	_, ok := a.Lookup(key)
	return ok
}

// Get returns the value of a label, "" if it is not set.
func (a Attributes) Get(key string) string {
	v, _ := a.Lookup(key)
	return v
}

// cutText splits off a text with its length. Truncated bytes yield an empty text,
// so that a selector does not panic; damage is found by the record's checksum.
func cutText(a []byte) (text, rest []byte) {
	if len(a) > 0 && a[0] < 0x80 && int(a[0]) < len(a) { // as most lengths
		return a[1 : 1+a[0]], a[1+a[0]:]
	}
	n, size := binary.Uvarint(a)
	if size <= 0 || n > uint64(len(a)-size) {
		return nil, nil
	}
	return a[size : size+int(n)], a[size+int(n):]
}

// LabelSet returns the encoded labels. They share memory with the attributes.
func (a Attributes) LabelSet() []byte {
	rest := []byte(a)
	for range NumFields {
		_, rest = cutText(rest)
	}
	return rest[:len(rest)-len(a.behindLabels())]
}

// OfLabelSet returns attributes that have the labels of a LabelSet, and nothing else.
func OfLabelSet(set []byte) Attributes {
	return append(make(Attributes, NumFields, int(NumFields)+len(set)), set...)
}
