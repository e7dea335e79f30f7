package codec

import (
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// kind is how a protobuf field is written in JSON.
type kind uint8

const (
	text kind = iota
	integer
	seconds  // metav1.Time
	micros   // metav1.MicroTime
	object   // a message
	dict     // map[string]string, an entry in each field
	texts    // []string, a text in each field
	owners   // []metav1.OwnerReference
	managed  // []metav1.ManagedFieldsEntry
	fieldSet // metav1.FieldsV1
	revision // the resourceVersion, which the record has
	group    // the apiVersion of a managed fields entry
)

// member is a field of a message: its name and kind in JSON.
type member struct {
	name  string // in quotes between a comma and a colon, as most are written
	kind  kind
	empty bool    // it is written although it is empty, zero or no time
	of    message // of objects
}

// message is the members of a message by the numbers of their fields. The libraries write the
// fields in that order, in protobuf and in JSON.
type message []member

// The messages within an event (k8s.io/api and k8s.io/apimachinery, generated.proto).
var (
	objectMeta = message{
		1: {name: "name"}, 2: {name: "generateName"}, 3: {name: "namespace"}, 4: {name: "selfLink"}, 5: {name: "uid"},
		fieldResourceVersion: {name: "resourceVersion", kind: revision}, 7: {name: "generation", kind: integer},
		8: {name: "creationTimestamp", kind: seconds}, 9: {name: "deletionTimestamp", kind: seconds, empty: true},
		10: {name: "deletionGracePeriodSeconds", kind: integer, empty: true}, 11: {name: "labels", kind: dict}, 12: {name: "annotations", kind: dict},
		13: {name: "ownerReferences", kind: owners}, fieldFinalizers: {name: "finalizers", kind: texts},
		fieldManagedFields: {name: "managedFields", kind: managed},
	}
	managedEntry = message{
		1: {name: "manager"}, 2: {name: "operation"}, fieldAPIVersion: {name: "apiVersion", kind: group}, 4: {name: "time", kind: seconds, empty: true},
		6: {name: "fieldsType"}, 7: {name: "fieldsV1", kind: fieldSet, empty: true}, 8: {name: "subresource"},
	}
	reference = message{
		1: {name: "kind"}, 2: {name: "namespace"}, 3: {name: "name"}, 4: {name: "uid"}, 5: {name: "apiVersion"}, 6: {name: "resourceVersion"}, 7: {name: "fieldPath"},
	}
	source     = message{1: {name: "component"}, 2: {name: "host"}}
	series     = message{1: {name: "count", kind: integer, empty: true}, 2: {name: "lastObservedTime", kind: micros, empty: true}}
	coreSeries = message{1: {name: "count", kind: integer}, 2: {name: "lastObservedTime", kind: micros, empty: true}}
)

func quoteName(name string) string { return `,"` + name + `":` }

func init() {
	for _, m := range []message{objectMeta, managedEntry, reference, source, series, coreSeries} {
		for i := range m {
			if m[i].name != "" {
				m[i].name = quoteName(m[i].name)
			}
		}
	}
}

// viewMember is a member of an event in one view.
type viewMember struct {
	member
	index int // in the order of [event.Members]
}

// viewMembers are the members of an event in each view, in the order in which they are written.
var viewMembers = func() (views [2][numMembers]viewMember) {
	members := [numMembers]member{
		{kind: object, of: objectMeta, empty: true}, {kind: micros, empty: true}, {kind: object, of: series, empty: true}, {}, {}, {}, {},
		{kind: object, of: reference, empty: true}, {kind: object, of: reference, empty: true}, {}, {},
		{kind: object, of: source, empty: true}, {kind: seconds, empty: true}, {kind: seconds, empty: true}, {kind: integer},
	}
	for i, of := range event.Members(event.EventsV1, new(eventsv1.Event)) {
		views[event.EventsV1][i] = viewMember{members[i], i}
		views[event.EventsV1][i].name = quoteName(of.Name)
	}
	members[memberSeries].of = coreSeries
	members[memberController].empty, members[memberInstance].empty = true, true // core/v1 does not omit them
	core := event.Members(event.CoreV1, new(eventsv1.Event))
	for i, index := range coreOrder {
		views[event.CoreV1][i] = viewMember{members[index], index}
		views[event.CoreV1][i].name = quoteName(core[index].Name)
	}
	return views
}()

// jsonWriter writes the protobuf of a stored event as JSON: what encoding/json makes of the
// types of k8s.io/api, byte by byte, without decoding the event.
type jsonWriter struct {
	c *Codec
	s *stored // of the event
	b []byte
}

// appendMembers appends the JSON of an event without its opening brace, so that
// kind and apiVersion can come in front.
func (c *Codec) appendMembers(dst []byte, s *stored, v event.View) []byte {
	w := jsonWriter{c, s, dst}
	for i := range viewMembers[v] {
		m := &viewMembers[v][i]
		if payload := s.fields[m.index]; payload != nil {
			w.member(&m.member, payload, i == 0)
		}
	}
	return append(w.b, '}')
}

// appendObjectJSON appends an event with kind and apiVersion.
func (c *Codec) appendObjectJSON(dst []byte, s *stored, v event.View) []byte {
	dst = append(dst, `{"kind":"Event","apiVersion":"`...)
	dst = append(dst, c.Group.APIVersion(v)...)
	dst = append(dst, `",`...)
	return c.appendMembers(dst, s, v)
}

// appendPartialJSON appends the metadata of an event as PartialObjectMetadata.
func (c *Codec) appendPartialJSON(dst []byte, s *stored, version string) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `",`...)
	w := jsonWriter{c, s, dst}
	w.member(&viewMembers[event.EventsV1][memberMetadata].member, s.fields[memberMetadata], true)
	return append(w.b, '}')
}

// member writes a member unless it is omitted. The first one has no comma in front.
func (w *jsonWriter) member(m *member, payload []byte, first bool) {
	switch {
	case m.empty:
	case m.kind == revision && w.s.revision == 0,
		m.kind == integer && string(payload) == "\x00",
		m.kind != integer && m.kind != revision && len(payload) == 0:
		return
	}
	w.name(m, first)
	w.value(m, payload)
}

func (w *jsonWriter) name(m *member, first bool) {
	name := m.name
	if first {
		name = name[1:]
	}
	w.b = append(w.b, name...)
}

func (w *jsonWriter) value(m *member, payload []byte) {
	switch m.kind {
	case text:
		w.b = appendQuoted(w.b, payload)
	case integer:
		w.b = strconv.AppendInt(w.b, w.integer(payload), 10)
	case seconds, micros:
		w.time(payload, m.kind == micros)
	case object:
		w.message(m.of, payload)
	case fieldSet:
		w.fieldSet(payload)
	case revision:
		w.b = append(strconv.AppendUint(append(w.b, '"'), w.s.revision, 10), '"')
	case group:
		if string(payload) == ownGroup {
			payload = w.c.ownGroup
		}
		w.b = appendQuoted(w.b, payload)
	case texts, dict, owners, managed: // message writes the elements
	}
}

// message writes an object.
func (w *jsonWriter) message(m message, payload []byte) {
	w.b = append(w.b, '{')
	for start := len(w.b); len(payload) > 0; {
		number, value, after, ok := nextField(payload)
		if !ok || number >= len(m) || m[number].name == "" {
			w.s.damaged = true
			break
		}
		if m[number].kind >= dict && m[number].kind <= managed {
			after = w.repeated(&m[number], number, payload, len(w.b) == start)
		} else {
			w.member(&m[number], value, len(w.b) == start)
		}
		payload = after
	}
	w.b = append(w.b, '}')
}

// repeated writes the fields of one number as a list or a map. It returns what follows them.
func (w *jsonWriter) repeated(m *member, wanted int, payload []byte, first bool) []byte {
	w.name(m, first)
	before, end := byte('['), byte(']')
	if m.kind == dict {
		before, end = '{', '}'
	}
	for len(payload) > 0 {
		number, value, after, ok := nextField(payload)
		if !ok || number != wanted {
			w.s.damaged = w.s.damaged || !ok
			break
		}
		w.b = append(w.b, before)
		w.element(m.kind, value)
		before, payload = ',', after
	}
	w.b = append(w.b, end)
	return payload
}

func (w *jsonWriter) element(kind kind, payload []byte) {
	switch kind {
	case texts:
		w.b = appendQuoted(w.b, payload)
	case dict:
		_, key, after, ok := nextField(payload)
		_, value, _, also := nextField(after)
		w.s.damaged = w.s.damaged || !ok || !also
		w.b = appendQuoted(w.b, key)
		w.b = append(w.b, ':')
		w.b = appendQuoted(w.b, value)
	case managed:
		w.message(managedEntry, payload)
	default: // the members of an owner have another order than its fields
		var owner metav1.OwnerReference
		if owner.Unmarshal(payload) != nil {
			w.s.damaged = true
		}
		text, _ := json.Marshal(owner) // strings and booleans: no error
		w.b = append(w.b, text...)
	}
}

func (w *jsonWriter) integer(payload []byte) int64 {
	v, n := protowire.ConsumeVarint(payload)
	w.s.damaged = w.s.damaged || n < 0
	return int64(v)
}

// time writes a Timestamp: seconds since 1970, and nanoseconds. One that is empty is no time.
func (w *jsonWriter) time(payload []byte, fraction bool) {
	if len(payload) == 0 {
		w.b = append(w.b, "null"...)
		return
	}
	var parts [2]int64
	for b := payload; len(b) > 0; {
		number, value, after, ok := nextField(b)
		if !ok || number < 1 || number > len(parts) {
			w.s.damaged = true
			break
		}
		parts[number-1] = w.integer(value)
		b = after
	}
	t := event.Nearest(time.Unix(parts[0], parts[1]).UTC())
	w.b = t.AppendFormat(append(w.b, '"'), time.RFC3339)
	if fraction { // six digits in front of the Z: faster than a layout with them
		w.b = append(w.b[:len(w.b)-1], '.')
		for micro, unit := t.Nanosecond()/1000, 100_000; unit > 0; unit /= 10 {
			w.b = append(w.b, '0'+byte(micro/unit%10))
		}
		w.b = append(w.b, 'Z')
	}
	w.b = append(w.b, '"')
}

// fieldSet writes a set of fields as encoding/json does. Draft has found that it is valid.
func (w *jsonWriter) fieldSet(payload []byte) {
	_, set, _, ok := nextField(payload)
	switch {
	case len(payload) == 0 || ok && len(set) == 0:
		w.b = append(w.b, "null"...)
	case !ok:
		w.s.damaged = true
	default:
		if !allIn(&plainSet, set) { // encoding/json may write it in another way
			text, err := json.Marshal(&metav1.FieldsV1{Raw: set})
			w.s.damaged = w.s.damaged || err != nil
			set = text
		}
		w.b = append(w.b, set...)
	}
}

// separate writes the opening bracket before the first element, and a comma before
// the others.
func separate(dst []byte, open byte, i int) []byte {
	if i > 0 {
		open = ','
	}
	return append(dst, open)
}

// appendQuoted appends a string in quotes. A string with escapes is left to
// encoding/json.
func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	if !allIn(&plain, s) {
		escaped, _ := json.Marshal(string(s)) // a string is never an error
		return append(dst, escaped...)
	}
	return append(append(append(dst, '"'), s...), '"')
}

// allIn reports whether all bytes of s are in a set, which has 1 for each of its bytes. It looks at eight bytes at a
// time.
func allIn[T string | []byte](set *[256]byte, s T) bool {
	for ; len(s) >= 8; s = s[8:] {
		if set[s[0]]&set[s[1]]&set[s[2]]&set[s[3]]&set[s[4]]&set[s[5]]&set[s[6]]&set[s[7]] == 0 {
			return false
		}
	}
	for i := range len(s) {
		if set[s[i]] == 0 {
			return false
		}
	}
	return true
}

// plain are the bytes that stand for themselves in a JSON string, as encoding/json writes it, and plainSet those of a
// set of fields that encoding/json writes as it is.
var plain, plainSet = func() (plain, set [256]byte) {
	for c := ' '; c <= '~'; c++ {
		plain[c] = 1
	}
	for _, c := range `"\<>&` {
		plain[c] = 0
	}
	set = plain
	set['"'], set['\\'], set[' '] = 1, 1, 0
	return plain, set
}()
