package store

import (
	"encoding/binary"
	"iter"
)

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

// Fields goes over all fields with their texts.
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

// Labels goes over all labels with their values.
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

// cutText splits a length-prefixed text off. Bytes that end too soon read as
// empty texts: a checksum guards what is stored, so that this only keeps a
// selector from panicking.
func cutText(a []byte) (text, rest []byte) {
	n, size := binary.Uvarint(a)
	if size <= 0 || n > uint64(len(a)-size) {
		return nil, nil
	}
	return a[size : size+int(n)], a[size+int(n):]
}

// attributeLabels lets a labels.Requirement ask Attributes.
type attributeLabels Attributes

func (a attributeLabels) Has(key string) bool {
	_, ok := Attributes(a).Label(key)
	return ok
}

func (a attributeLabels) Get(key string) string {
	v, _ := Attributes(a).Label(key)
	return string(v)
}

func (a attributeLabels) Lookup(key string) (string, bool) {
	v, ok := Attributes(a).Label(key)
	return string(v), ok
}

// Matches reports whether an event meets every requirement. A nil selector
// matches everything.
func (s *Selector) Matches(key Key, a Attributes) bool {
	if s == nil {
		return true
	}
	for i := range s.Fields {
		if !s.Fields[i].matches(key, a) {
			return false
		}
	}
	for i := range s.Labels {
		if !s.Labels[i].Matches(attributeLabels(a)) {
			return false
		}
	}
	return true
}

func (r *FieldRequirement) matches(key Key, a Attributes) bool {
	var equal bool
	switch r.Field {
	case FieldNamespace:
		equal = key.Namespace == r.Value
	case FieldName:
		equal = key.Name == r.Value
	default:
		equal = string(a.Field(r.Field)) == r.Value
	}
	return equal != r.Not
}

// Matches reports whether a watch is about an event with these attributes.
func (q *WatchQuery) Matches(key Key, a Attributes) bool {
	return (q.Namespace == "" || q.Namespace == key.Namespace) &&
		(q.Name == "" || q.Name == key.Name) &&
		q.Selector.Matches(key, a)
}
