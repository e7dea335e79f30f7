package request

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
)

// decodePlain reads an event as nearly all clients send it: every member is
// known, comes once and has the right type. It returns false for everything else,
// and for everything that is wrong, which the library decodes then. The body has
// passed checkShape.
//
// It is here for its speed. With the library alone, a create costs 138 µs of
// processor time instead of 112 (medians of 5 alternating runs of create/64).
func (c *Decoder) decodePlain(v event.View, body []byte) (*eventsv1.Event, bool) {
	ev := new(eventsv1.Event)
	return ev, c.readPlain(v, plainReader{text: string(body), managed: true}, ev)
}

// setPlain sets the members that such a patch has in an existing event. Managed fields are for the library.
func (c *Decoder) setPlain(v event.View, patch []byte, ev *eventsv1.Event) bool {
	return c.readPlain(v, plainReader{text: string(patch)}, ev)
}

func (c *Decoder) readPlain(v event.View, r plainReader, ev *eventsv1.Event) bool {
	kind, apiVersion := event.Kind, c.Group.APIVersion(v)
	var members [event.NumMembers + 2]event.Member
	of := event.Members(v, ev)
	copy(members[:], of[:])
	members[event.NumMembers] = event.Member{Name: "kind", Value: &kind}
	members[event.NumMembers+1] = event.Member{Name: "apiVersion", Value: &apiVersion}
	r.object(members[:])
	// Name and namespace outlive the request. As substrings they would keep the
	// whole body in memory.
	ev.Name, ev.Namespace = strings.Clone(ev.Name), strings.Clone(ev.Namespace)
	return r.ended() && kind == event.Kind && apiVersion == c.Group.APIVersion(v)
}

// plainReader reads JSON from position at. What it has read is not valid once it
// has failed. The strings share the memory of text.
type plainReader struct {
	text    string
	at      int
	failed  bool
	managed bool // managed fields are read, too
	pieces  pieces
}

func (r *plainReader) value(into any) {
	switch p := into.(type) {
	case *string:
		*p = r.string()
	case *types.UID:
		*p = types.UID(r.string())
	case *int32:
		*p = r.number()
	case *metav1.Time:
		p.Time = r.time(parseTime)
	case *metav1.MicroTime:
		p.Time = r.time(event.ParseMicroTime)
	case *map[string]string:
		r.dict(p)
	case *metav1.ObjectMeta:
		r.meta(p)
	case **eventsv1.EventSeries:
		if *p == nil {
			*p = new(eventsv1.EventSeries)
		}
		r.object([]event.Member{{Name: "count", Value: &(*p).Count}, {Name: "lastObservedTime", Value: &(*p).LastObservedTime}})
	case *corev1.EventSource:
		r.object([]event.Member{{Name: "component", Value: &p.Component}, {Name: "host", Value: &p.Host}})
	case **corev1.ObjectReference:
		if *p == nil {
			*p = new(corev1.ObjectReference)
		}
		r.value(*p)
	case *corev1.ObjectReference:
		r.object([]event.Member{
			{Name: "kind", Value: &p.Kind}, {Name: "namespace", Value: &p.Namespace}, {Name: "name", Value: &p.Name}, {Name: "uid", Value: &p.UID},
			{Name: "apiVersion", Value: &p.APIVersion}, {Name: "resourceVersion", Value: &p.ResourceVersion}, {Name: "fieldPath", Value: &p.FieldPath},
		})
	default:
		r.ofManagers(into)
	}
}

// meta reads the metadata that clients set and, with managed fields, those that exports have.
func (r *plainReader) meta(p *metav1.ObjectMeta) {
	members := []event.Member{
		{Name: "name", Value: &p.Name}, {Name: "generateName", Value: &p.GenerateName}, {Name: "namespace", Value: &p.Namespace},
		{Name: "uid", Value: &p.UID}, {Name: "resourceVersion", Value: &p.ResourceVersion},
		{Name: "creationTimestamp", Value: &p.CreationTimestamp}, {Name: "labels", Value: &p.Labels}, {Name: "annotations", Value: &p.Annotations},
	}
	if r.managed {
		members = append(members, event.Member{Name: "managedFields", Value: &p.ManagedFields})
	}
	r.object(members)
}

// ofManagers reads managed fields, and what only they have.
func (r *plainReader) ofManagers(into any) {
	switch p := into.(type) {
	case *[]metav1.ManagedFieldsEntry:
		*p = r.managers()
	case **metav1.Time:
		*p = &metav1.Time{Time: r.time(parseTime)}
		r.failed = r.failed || (*p).IsZero() // null is none
	case **metav1.FieldsV1:
		*p = &metav1.FieldsV1{Raw: r.raw()}
	}
}

// managers reads managed fields, but not an empty list of them.
func (r *plainReader) managers() (all []metav1.ManagedFieldsEntry) {
	for more := r.take('['); more && !r.failed; more = r.take(',') {
		var e metav1.ManagedFieldsEntry
		var operation string
		r.object([]event.Member{
			{Name: "manager", Value: &e.Manager}, {Name: "operation", Value: &operation}, {Name: "apiVersion", Value: &e.APIVersion}, {Name: "time", Value: &e.Time},
			{Name: "fieldsType", Value: &e.FieldsType}, {Name: "fieldsV1", Value: &e.FieldsV1}, {Name: "subresource", Value: &e.Subresource},
		})
		e.Operation = metav1.ManagedFieldsOperationType(operation)
		all = append(all, e)
	}
	r.failed = r.failed || len(all) == 0 || !r.take(']')
	return all
}

// raw reads an object that is not large, and returns a copy of its text.
func (r *plainReader) raw() []byte {
	r.space()
	from := r.at
	if !r.take('{') {
		r.failed = true
		return nil
	}
	for depth := 1; depth > 0 && r.at < len(r.text) && r.at-from < piece; r.at++ {
		switch r.text[r.at] {
		case '"':
			r.at = endOfString(r.text, r.at+1)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	r.at = min(r.at, len(r.text))
	raw := []byte(r.text[from:r.at])
	r.failed = !fields.Sound(raw)
	return raw
}

// object reads an object of known members, none of which comes twice.
func (r *plainReader) object(members []event.Member) {
	var seen uint32
	r.each(func(name string) bool {
		i := slices.IndexFunc(members, func(m event.Member) bool { return m.Name == name })
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		r.value(members[i].Value)
		return true
	})
}

// dict reads an object of any number of strings, none of which comes twice, and
// adds them to a map.
func (r *plainReader) dict(into *map[string]string) {
	read := map[string]string{}
	r.each(func(name string) bool {
		_, twice := read[name]
		read[name] = r.string()
		return !twice
	})
	if *into == nil {
		*into = read
		return
	}
	maps.Copy(*into, read)
}

// each reads an object. It calls read with the name of each member; read consumes
// the value, or returns false if it does not know the member.
func (r *plainReader) each(read func(name string) bool) {
	if !r.take('{') {
		r.failed = true
		return
	}
	if r.take('}') {
		return
	}
	for {
		r.pieces.reach(r.at)
		name := r.string()
		if !r.take(':') || r.failed || !read(name) || r.failed {
			break
		}
		if r.take('}') {
			return
		}
		if !r.take(',') {
			break
		}
	}
	r.failed = true
}

// take reads one character if it comes next, behind any space.
func (r *plainReader) take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *plainReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \n\r\t", r.text[r.at]) >= 0 {
		r.at++
	}
}

// ended reports whether the whole text was read without a failure.
func (r *plainReader) ended() bool {
	r.space()
	return !r.failed && r.at == len(r.text)
}

// string reads a string. It fails for invalid UTF-8, which the library replaces.
func (r *plainReader) string() string {
	if !r.take('"') {
		r.failed = true
		return ""
	}
	from := r.at
	plain := from + plainRun(r.text[from:])
	r.at = endOfString(r.text, plain)
	text := r.text[from:r.at]
	if r.at == len(r.text) || !utf8.ValidString(text) {
		r.failed = true
		return ""
	}
	r.at++
	if r.at-1 == plain {
		return text
	}
	return r.unquoted(r.text[from-1 : r.at])
}

// unquoted decodes a string that has escapes. It fails for a control character.
func (r *plainReader) unquoted(quoted string) (text string) {
	r.failed = json.Unmarshal([]byte(quoted), &text) != nil
	return text
}

// endOfString is the index of the quote that ends a string, or len(text).
func endOfString[T string | []byte](text T, i int) int {
	p := pieces{i}
	for i += plainRun(text[i:]); i < len(text) && text[i] != '"'; i += plainRun(text[i:]) {
		p.reach(i)
		if text[i] == '\\' {
			i++
		}
		i = min(i+1, len(text))
	}
	return i
}

// plainRun counts the bytes before the first quote, backslash or control
// character, which JSON requires to be escaped (RFC 8259 section 7). It yields in
// between, as text may be a whole body.
func plainRun[T string | []byte](text T) int {
	n := 0
	for n < len(text) && text[n] != '"' && text[n] != '\\' && text[n] >= ' ' {
		if n++; n%piece == 0 {
			runtime.Gosched()
		}
	}
	return n
}

// number reads a number without sign, fraction and exponent.
func (r *plainReader) number() int32 {
	r.space()
	from := r.at
	for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
		r.at++
	}
	digits := r.text[from:r.at]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		r.failed = true
	}
	return int32(n)
}

func parseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

// time reads a time. Null is the zero time.
func (r *plainReader) time(parse func(string) (time.Time, error)) time.Time {
	r.space()
	if strings.HasPrefix(r.text[r.at:], "null") {
		r.at += len("null")
		return time.Time{}
	}
	t, err := parse(r.string())
	if err != nil {
		r.failed = true
		return time.Time{}
	}
	return t.Local()
}

// piece is how many bytes of a body are processed without a break: less than
// 0.1 ms.
const piece = 64 << 10

// pieces divides the work on a large body: after each piece it yields to all
// goroutines that are ready to run. The runtime preempts only after 10 ms, for
// which other requests would wait.
type pieces struct{ done int }

// reach reports how many bytes are done, and yields if that completes a piece.
func (p *pieces) reach(at int) {
	if at-p.done >= piece {
		p.done = at
		runtime.Gosched()
	}
}
