package store

import (
	"encoding/binary"
	"sort"

	"k8s.io/apimachinery/pkg/labels"
)

// Field is a selectable field of an event other than its namespace and name,
// by what both API views have in common.
type Field uint8

// The selectable fields, events.k8s.io/v1 names; core/v1 calls regarding
// involvedObject. Source is deprecatedSource.component, falling back to
// reportingController when empty.
const (
	RegardingKind Field = iota
	RegardingNamespace
	RegardingName
	RegardingUID
	RegardingAPIVersion
	RegardingResourceVersion
	RegardingFieldPath
	Reason
	Type
	ReportingController
	Source
	NumFields
)

// Attributes hold what selectors may ask of a version, in a flat form that is
// read in place: for each Field a length (uvarint) and the text, then the
// number of labels (uvarint) and for each, sorted by key, length and text of
// key and value.
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

// Selector is a conjunction of requirements on fields and labels.
type Selector struct {
	Fields []FieldRequirement
	Labels []labels.Requirement
}

// FieldRequirement asks that a field has a value, or with Not that it has not.
type FieldRequirement struct {
	Field Field
	Value string
	Not   bool
}

// Requirements on the key itself, which is not part of the attributes.
const (
	FieldNamespace Field = NumFields + 1 + iota
	FieldName
)
