package codec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// objectWriter writes one JSON object as encoding/json does with the types of
// k8s.io/api: the same order, escapes and omitted members. encoding/json cannot
// be used because the positions of the holes must be known.
type objectWriter struct {
	b     []byte
	count int // members so far
}

// separate writes the opening bracket before the first element, and a comma before
// the others.
func separate(dst []byte, open byte, i int) []byte {
	if i > 0 {
		open = ','
	}
	return append(dst, open)
}

// name begins a member.
func (w *objectWriter) name(name string) {
	w.b = separate(w.b, '{', w.count)
	w.count++
	w.b = append(append(append(w.b, '"'), name...), `":`...)
}

// text writes a member unless it is empty.
func (w *objectWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.b = appendQuoted(w.b, value)
	}
}

func (w *objectWriter) number(name string, value int64) {
	if value != 0 {
		w.name(name)
		w.b = strconv.AppendInt(w.b, value, 10)
	}
}

func (w *objectWriter) time(name string, t time.Time, layout string) {
	w.name(name)
	if t.IsZero() {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = append(t.UTC().AppendFormat(append(w.b, '"'), layout), '"')
}

func (w *objectWriter) dict(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.name(name)
	var few [8]string
	keys := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(keys)
	for i, key := range keys {
		w.b = appendQuoted(separate(w.b, '{', i), key)
		w.b = appendQuoted(append(w.b, ':'), m[key])
	}
	w.b = append(w.b, '}')
}

// end closes the object.
func (w *objectWriter) end() []byte {
	if w.count == 0 {
		w.b = append(w.b, '{')
	}
	return append(w.b, '}')
}

// appendQuoted appends a string in quotes. A string with escapes is left to
// encoding/json.
func appendQuoted(dst []byte, s string) []byte {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			escaped, _ := json.Marshal(s) // a string is never an error
			return append(dst, escaped...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// isPlainByte tells whether a byte stands for itself in a JSON string, as
// encoding/json writes it.
func isPlainByte(c byte) bool {
	return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// encodeJSON writes the JSON of an event and records the positions of members and
// holes. In the holes it writes empty strings. Own is the apiVersion of own entries.
func (d *encoder) encodeJSON(ev *eventsv1.Event, own string) error {
	w := objectWriter{b: slices.Grow(d.json[:0], 2048)}
	for i, m := range event.Members(event.EventsV1, ev) {
		start := len(w.b)
		if i == memberMetadata {
			w.name(m.Name)
			var err error
			if w.b, err = d.appendMetadata(w.b, &ev.ObjectMeta, own); err != nil {
				return err
			}
		} else {
			w.member(m)
		}
		d.values[i] = span{len(w.b), len(w.b)}
		if len(w.b) > start {
			d.values[i].from = start + jsonHead(i)
		}
	}
	d.json = w.end()
	return nil
}

// member writes any member but the metadata, unless it is omitted.
func (w *objectWriter) member(m event.Member) {
	switch v := m.Value.(type) {
	case *string:
		w.text(m.Name, *v)
	case *int32:
		w.number(m.Name, int64(*v))
	case *metav1.Time:
		w.time(m.Name, v.Time, time.RFC3339)
	case *metav1.MicroTime:
		w.time(m.Name, v.Time, metav1.RFC3339Micro)
	case *corev1.ObjectReference:
		w.name(m.Name)
		w.b = appendReference(w.b, v)
	case **corev1.ObjectReference:
		if *v != nil {
			w.name(m.Name)
			w.b = appendReference(w.b, *v)
		}
	case *corev1.EventSource:
		w.name(m.Name)
		source := objectWriter{b: w.b}
		source.text("component", v.Component)
		source.text("host", v.Host)
		w.b = source.end()
	case **eventsv1.EventSeries:
		if *v != nil {
			w.name(m.Name)
			w.b = appendSeries(w.b, *v)
		}
	}
}

func appendSeries(dst []byte, s *eventsv1.EventSeries) []byte {
	w := objectWriter{b: dst}
	w.name("count")
	w.b = strconv.AppendInt(w.b, int64(s.Count), 10)
	w.time("lastObservedTime", s.LastObservedTime.Time, metav1.RFC3339Micro)
	return w.end()
}

func appendReference(dst []byte, ref *corev1.ObjectReference) []byte {
	w := objectWriter{b: dst}
	w.text("kind", ref.Kind)
	w.text("namespace", ref.Namespace)
	w.text("name", ref.Name)
	w.text("uid", string(ref.UID))
	w.text("apiVersion", ref.APIVersion)
	w.text("resourceVersion", ref.ResourceVersion)
	w.text("fieldPath", ref.FieldPath)
	return w.end()
}

// appendMetadata writes the metadata and records the hole of the resourceVersion.
func (d *encoder) appendMetadata(dst []byte, m *metav1.ObjectMeta, own string) ([]byte, error) {
	w := objectWriter{b: dst}
	w.text("name", m.Name)
	w.text("generateName", m.GenerateName)
	w.text("namespace", m.Namespace)
	w.text("selfLink", m.SelfLink)
	w.text("uid", string(m.UID))
	w.name("resourceVersion")
	d.jsonRV = len(w.b) + 1
	w.b = append(w.b, `""`...)
	w.number("generation", m.Generation)
	if !m.CreationTimestamp.IsZero() {
		w.time("creationTimestamp", m.CreationTimestamp.Time, time.RFC3339)
	}
	if m.DeletionTimestamp != nil {
		w.time("deletionTimestamp", m.DeletionTimestamp.Time, time.RFC3339)
	}
	if m.DeletionGracePeriodSeconds != nil {
		w.name("deletionGracePeriodSeconds")
		w.b = strconv.AppendInt(w.b, *m.DeletionGracePeriodSeconds, 10)
	}
	w.dict("labels", m.Labels)
	w.dict("annotations", m.Annotations)
	// Few events have one of these lists. They are never an error.
	if len(m.OwnerReferences) > 0 {
		text, _ := json.Marshal(m.OwnerReferences)
		w.name("ownerReferences")
		w.b = append(w.b, text...)
	}
	if len(m.Finalizers) > 0 {
		text, _ := json.Marshal(m.Finalizers)
		w.name("finalizers")
		w.b = append(w.b, text...)
	}
	var err error
	if len(m.ManagedFields) > 0 {
		w.name("managedFields")
		w.b, err = d.appendManaged(w.b, m.ManagedFields, own)
	}
	return w.end(), err
}

// appendManaged writes the managed fields and records the holes in own entries.
func (d *encoder) appendManaged(dst []byte, entries []metav1.ManagedFieldsEntry, own string) ([]byte, error) {
	for i := range entries {
		e := &entries[i]
		w := objectWriter{b: separate(dst, '[', i)}
		w.text("manager", e.Manager)
		w.text("operation", string(e.Operation))
		if e.APIVersion == own {
			w.name("apiVersion")
			d.own = append(d.own, ownEntry{json: len(w.b) + 1})
			w.b = append(w.b, `""`...)
		} else {
			w.text("apiVersion", e.APIVersion)
		}
		if e.Time != nil {
			w.time("time", e.Time.Time, time.RFC3339)
		}
		w.text("fieldsType", e.FieldsType)
		if e.FieldsV1 != nil {
			w.name("fieldsV1")
			var err error
			if w.b, err = appendSet(w.b, e.FieldsV1); err != nil {
				return nil, fmt.Errorf("managed fields of %q: %w", e.Manager, err)
			}
		}
		w.text("subresource", e.Subresource)
		dst = w.end()
	}
	return append(dst, ']'), nil
}

// appendSet appends a set of fields as encoding/json does, which it calls only if
// the set has to be rewritten or is not valid.
func appendSet(dst []byte, set *metav1.FieldsV1) ([]byte, error) {
	if isPlainSet(set.Raw) {
		return append(dst, set.Raw...), nil
	}
	text, err := json.Marshal(set)
	return append(dst, text...), err
}

// isPlainSet tells whether encoding/json would leave a set as it is: valid, without
// blanks and without characters that have to be escaped.
func isPlainSet(set []byte) bool {
	rewritten := func(c byte) bool { return c <= ' ' || c > '~' || c == '<' || c == '>' || c == '&' }
	return !slices.ContainsFunc(set, rewritten) && json.Valid(set)
}
