package fields

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// unknownManager is the name that the library gives a manager without one.
const unknownManager = "unknown"

// trackCreate records the managed fields of a new event as the library would. It
// returns false, and records nothing, if the event is not plain.
func (t *Tracker) trackCreate(v event.View, ev *eventsv1.Event, manager string) bool {
	if !isPlain(ev) || ev.ManagedFields != nil || !utf8.ValidString(manager) {
		return false
	}
	fields := appendFields(nil, v, ev)
	if len(fields) == len("{}") {
		return false
	}
	ev.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager:    cmp.Or(manager, unknownManager),
		Operation:  metav1.ManagedFieldsOperationUpdate,
		APIVersion: t.group.APIVersion(v),
		Time:       &metav1.Time{Time: time.Now().UTC()},
		FieldsType: "FieldsV1",
		FieldsV1:   &metav1.FieldsV1{Raw: fields},
	}}
	return true
}

// trackPlain records a change of a plain event by the manager that owns all of its fields:
// it owns all of them afterwards too. Otherwise it records nothing and returns false.
func (t *Tracker) trackPlain(v event.View, live, next *eventsv1.Event, manager string) bool {
	if len(live.ManagedFields) != 1 || !isPlain(live) || !isPlain(next) || !sameEntries(live, next) {
		return false
	}
	entry := live.ManagedFields[0]
	var room [1 << 10]byte // for most
	if !t.isOf(&entry, v, manager) || !bytes.Equal(entry.FieldsV1.Raw, appendFields(room[:0], v, live)) {
		return false
	}
	fields := appendFields(room[:0], v, next)
	same := bytes.Equal(entry.FieldsV1.Raw, fields)
	if !same && !keepsFields(v, live, next) {
		return false
	}
	next.ManagedFields = live.ManagedFields
	if !surelyDiffer(live, next) && Same(tracked(live), tracked(next)) {
		return true
	}
	entry.Time = &metav1.Time{Time: time.Now().UTC()}
	if !same {
		entry.FieldsV1 = &metav1.FieldsV1{Raw: bytes.Clone(fields)}
	}
	next.ManagedFields = []metav1.ManagedFieldsEntry{entry}
	return true
}

func (t *Tracker) isOf(entry *metav1.ManagedFieldsEntry, v event.View, manager string) bool {
	return entry.Manager == cmp.Or(manager, unknownManager) && entry.Operation == metav1.ManagedFieldsOperationUpdate &&
		entry.APIVersion == t.group.APIVersion(v) && entry.Subresource == "" && entry.FieldsType == "FieldsV1" && entry.FieldsV1 != nil
}

// tracked returns an event without the metadata that managed fields leave out.
func tracked(ev *eventsv1.Event) *eventsv1.Event {
	out := *ev
	out.Name, out.Namespace, out.UID, out.SelfLink, out.Generation = "", "", "", "", 0
	out.CreationTimestamp = metav1.Time{}
	return &out
}

// keepsFields tells whether next has every field of live. If it lacks one, the
// library decides whether the time of the entry changes.
func keepsFields(v event.View, live, next *eventsv1.Event) bool {
	before, after := event.Members(v, live), event.Members(v, next)
	for i := range before {
		if set := setOf(before[i].Value); set != "" && set != setOf(after[i].Value) {
			return false
		}
	}
	return true
}

// sameEntries tells whether next leaves managed fields as they are in live: they
// are left out or equal.
func sameEntries(live, next *eventsv1.Event) bool {
	l, n := live.ManagedFields, next.ManagedFields
	if len(l) == len(n) && len(l) > 0 && &l[0] == &n[0] { // as a patch leaves them
		return true
	}
	return n == nil || equality.Semantic.DeepEqual(l, n)
}

// isPlain tells whether an event has only what appendFields knows.
func isPlain(ev *eventsv1.Event) bool {
	switch {
	case ev.OwnerReferences != nil, ev.Finalizers != nil,
		ev.DeletionTimestamp != nil, ev.DeletionGracePeriodSeconds != nil,
		ev.Series != nil && (ev.Series.Count == 0 || ev.Series.LastObservedTime.IsZero()),
		ev.Related != nil && *ev.Related == corev1.ObjectReference{}:
		return false
	}
	return plainKeys(ev.Labels) && plainKeys(ev.Annotations)
}

// plainKeys tells whether no key has to be escaped in JSON.
func plainKeys(m map[string]string) bool {
	for key := range m {
		if key == "" {
			return false
		}
		for i := range len(key) {
			if c := key[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return false
			}
		}
	}
	return true
}

// appendFields appends the set of the fields that an event has, as FieldsV1:
// names in order, with "." for an object or map that did not exist before.
func appendFields(dst []byte, v event.View, ev *eventsv1.Event) []byte {
	dst = append(slices.Grow(dst, 512), '{') // enough for most
	members := event.Members(v, ev)
	for _, i := range byName[v] {
		if set := setOf(members[i].Value); set != "" {
			dst = append(append(dst, `"f:`...), members[i].Name...)
			dst = append(append(dst, `":`...), set...)
			dst = append(dst, ',')
		}
	}
	return closeSet(dst)
}

// byName are the indexes of the members of each view in the order of their names.
var byName = [2][]int{event.EventsV1: order(event.EventsV1), event.CoreV1: order(event.CoreV1)}

func order(v event.View) []int {
	members := event.Members(v, new(eventsv1.Event))
	indexes := make([]int, len(members))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortFunc(indexes, func(a, b int) int { return strings.Compare(members[a].Name, members[b].Name) })
	return indexes
}

// closeSet replaces the last comma with the closing brace.
func closeSet(dst []byte) []byte {
	if last := len(dst) - 1; dst[last] == ',' {
		dst[last] = '}'
		return dst
	}
	return append(dst, '}')
}

// setOf returns the set of the fields in a member, and "" if the event does not
// have it.
func setOf(member any) string {
	there := false
	switch m := member.(type) {
	case *metav1.ObjectMeta:
		return setMetadata(m)
	case *corev1.EventSource:
		return setSource(m)
	case **eventsv1.EventSeries:
		if *m != nil {
			return `{".":{},"f:count":{},"f:lastObservedTime":{}}`
		}
	case *string:
		there = *m != ""
	case *int32:
		there = *m != 0
	case *corev1.ObjectReference:
		there = *m != corev1.ObjectReference{}
	case **corev1.ObjectReference:
		there = *m != nil
	case interface{ IsZero() bool }: // times
		there = !m.IsZero()
	}
	if there {
		return "{}"
	}
	return ""
}

// setSource has no "." because every event has a source, even if it is empty.
func setSource(source *corev1.EventSource) string {
	switch {
	case source.Component != "" && source.Host != "":
		return `{"f:component":{},"f:host":{}}`
	case source.Component != "":
		return `{"f:component":{}}`
	case source.Host != "":
		return `{"f:host":{}}`
	}
	return ""
}

func setMetadata(m *metav1.ObjectMeta) string {
	if len(m.Annotations) == 0 && m.GenerateName == "" && len(m.Labels) == 0 {
		return ""
	}
	set := append(make([]byte, 0, 256), '{')
	set = appendKeys(set, "annotations", m.Annotations)
	if m.GenerateName != "" {
		set = append(set, `"f:generateName":{},`...)
	}
	set = appendKeys(set, "labels", m.Labels)
	return string(closeSet(set))
}

func appendKeys(dst []byte, name string, m map[string]string) []byte {
	if len(m) == 0 {
		return dst
	}
	dst = append(append(dst, `"f:`...), name...)
	dst = append(dst, `":{".":{},`...)
	var few [8]string
	keys := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(keys)
	for _, key := range keys {
		dst = append(append(dst, `"f:`...), key...)
		dst = append(dst, `":{},`...)
	}
	return append(closeSet(dst), ',')
}
