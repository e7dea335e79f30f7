package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/event"
)

// object is a JSON object whose members were found, and not decoded.
type object struct {
	raw     []byte
	members []member
}

type member struct {
	name  []byte // without its quotes
	value []byte
}

// get returns the value of a member, nil if there is none.
func (o *object) get(name string) []byte {
	for i := range o.members {
		if string(o.members[i].name) == name {
			return o.members[i].value
		}
	}
	return nil
}

// text returns the value of a member that is a string, "" otherwise.
func (o *object) text(name string) (text string) {
	v := o.get(name)
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) {
		return string(v[1 : len(v)-1])
	}
	_ = json.Unmarshal(v, &text) // no string is none
	return text
}

// found is an event that was found, and not decoded.
type found struct {
	Position
	raw      []byte
	view     event.View
	deleted  bool
	believed bool
	version  uint64 // of the source, if a frame says it; otherwise the event does
}

// frame is what the objects around an event say.
type frame struct {
	deleted, disbelieved bool
	version              uint64
	depth                int
}

// maxWraps is how many objects may be around an event, such as a log's record and a frame of a watch.
const maxWraps = 6

// classify decides what an object is. It reports false for one without a kind, which only
// the list around it can name.
func (r *reader) classify(o *object, at Position, in frame) bool {
	kind, apiVersion := o.text("kind"), o.text("apiVersion")
	switch {
	case kind == event.Kind && isEvents(apiVersion) && isWhole(o, apiVersion), kind == "" && looksLikeEvent(o):
		r.event(o, apiVersion, at, in)
	case kind == event.Kind && isEvents(apiVersion):
		r.report.note(at, "what calls itself an Event has no object that it is about, and is not read")
		r.report.skip(event.Kind+ofVersion+"no object", 1)
	case kind == event.Kind:
		r.report.skip(event.Kind+ofVersion+kindName(apiVersion), 1)
	case kind != "":
		r.report.skip(kindName(kind), 1)
	default:
		return r.unwrap(o, at, in)
	}
	return true
}

// ofVersion is written between a kind and its version.
const ofVersion = " of "

// kindName shortens what claims to be a kind.
func kindName(kind string) string {
	if len(kind) > 63 || strings.ContainsFunc(kind, func(r rune) bool { return r < '-' || r > 'z' }) {
		return otherKinds
	}
	return kind
}

// isEvents reports whether an API version has events: core/v1, or events.k8s.io under any domain.
func isEvents(apiVersion string) bool {
	if apiVersion == "" || apiVersion == "v1" {
		return true
	}
	group, version, _ := strings.Cut(apiVersion, "/")
	return strings.HasPrefix(group, "events.") && (version == "v1" || version == "v1beta1")
}

// isAbout reports whether an object says what it is about, as events do: with an object, and not with a word of a log.
func isAbout(o *object) bool {
	for _, name := range []string{"involvedObject", "regarding"} {
		if v := o.get(name); len(v) > 0 && v[0] == '{' {
			return true
		}
	}
	return false
}

// isWhole reports whether what calls itself an Event is one: a log may have lines that do.
func isWhole(o *object, apiVersion string) bool {
	return isAbout(o) || apiVersion != "" && o.get("metadata") != nil
}

// looksLikeEvent reports whether an object without a kind is an event.
func looksLikeEvent(o *object) bool {
	return isAbout(o) && (o.get("reason") != nil || o.get("message") != nil || o.get("note") != nil)
}

// event keeps an event.
func (r *reader) event(o *object, apiVersion string, at Position, in frame) {
	f := found{Position: at, raw: o.raw, view: event.EventsV1, deleted: in.deleted, believed: !in.disbelieved, version: in.version}
	if apiVersion == "v1" || apiVersion == "" && o.get("regarding") == nil && o.get("note") == nil {
		f.view = event.CoreV1
	}
	r.add(f)
}

// unwrap looks for an event within a frame of a watch, or a record of a log. It reports whether the object is one.
func (r *reader) unwrap(o *object, at Position, in frame) bool {
	if in.depth >= maxWraps {
		return false
	}
	in.depth++
	if o.get("object") != nil {
		switch o.text("type") {
		case "ADDED", "MODIFIED":
		case "DELETED":
			in.deleted = true
		case "BOOKMARK":
			r.report.Current = true
			return true
		case "ERROR":
			r.report.note(at, "the watch ended with an error of its server")
			return true
		}
	}
	if o.get("object") != nil || o.get("event") != nil { // a line of an export, or of what was deleted
		in.disbelieved = string(o.get("believed")) == "false"
		if n, err := strconv.ParseUint(string(o.get("source")), 10, 64); err == nil {
			in.version = n
		}
	}
	if frame := o.get("object"); frame != nil && r.within(frame, at, in) {
		return true
	}
	return mayHaveEvent(o.raw) && r.inMembers(o, at, in)
}

// inMembers looks for events in the objects and lists that an object has or, if they have none, in the first text that
// has one: some logs have a line both as it was and decoded.
func (r *reader) inMembers(o *object, at Position, in frame) (known bool) {
	for _, m := range o.members {
		if m.value[0] != '"' && !bytes.HasPrefix(m.name, []byte("old")) { // eventrouter tells the version before
			known = mayHaveEvent(m.value) && r.within(m.value, at, in) || known
		}
	}
	for i := 0; i < len(o.members) && !known; i++ {
		value := o.members[i].value
		known = value[0] == '"' && mayHaveEvent(value) && r.within(value, at, in)
	}
	return known
}

// within looks into a value for an event, and reports whether it has an object that is known.
func (r *reader) within(value []byte, at Position, in frame) (known bool) {
	switch value[0] {
	case '"':
		var text string
		if len(value) < 3 || json.Unmarshal(value, &text) != nil {
			return false
		}
		known, _ = r.search([]byte(text), at, in)
		return known
	case '[':
		for i := 1; i < len(value); {
			if c := value[i]; c == '{' || c == '[' || c == '"' {
				end := skip(value, i)
				known = in.depth < maxWraps && r.within(value[i:end], at, in.deeper()) || known
				i = end
			} else {
				i++
			}
		}
		return known
	case '{':
		o := object{value, r.scratch.take(value)}
		defer r.scratch.give(o.members)
		if plain, ok := anyValue(&o); ok && in.depth < maxWraps {
			return r.within(plain, at, in.deeper())
		}
		return r.classify(&o, at, in)
	default:
		return false
	}
}

// deeper is the frame of a value within this one.
func (f frame) deeper() frame {
	f.depth++
	return f
}

// maxTries is how many brackets of a text are tried as the beginning of an object.
const maxTries = 32

// search looks for events in a text that may have JSON behind anything else, as it is, in a quoted string, or in a
// field of CSV. It reports whether there is an object that is known, and whether there is another one.
func (r *reader) search(text []byte, at Position, in frame) (known, other bool) {
	for tries := 0; tries < maxTries; tries++ {
		i := bytes.IndexByte(text, '{')
		if i < 0 {
			break
		}
		object, end := objectAt(text, i)
		if object == nil {
			text = text[i+1:]
			continue
		}
		if mayHaveEvent(object) && r.classify(members(object), at, in) {
			known = true
		} else {
			other = true
		}
		text = text[end:]
	}
	return known, other
}

// objectAt returns a copy of the object that begins at a bracket, and where it ends, nil if there is none.
func objectAt(text []byte, i int) (object []byte, end int) {
	rest := text[i:]
	switch {
	case bytes.HasPrefix(rest, []byte(`{\"`)) && i > 0 && text[i-1] == '"': // a quoted string
		s := textSource(text[i-1:])
		var plain string
		if s.quoted() != nil || json.Unmarshal(s.buf[:s.pos], &plain) != nil {
			return nil, 0
		}
		object, _ = objectAt([]byte(plain), 0)
		return object, i - 1 + s.pos
	case bytes.HasPrefix(rest, []byte(`{""`)) && i > 0 && text[i-1] == '"': // a field of CSV (RFC 4180)
		end = i
		for end < len(text) && (text[end] != '"' || bytes.HasPrefix(text[end:], []byte(`""`))) {
			if text[end] == '"' {
				end++
			}
			end++
		}
		object, _ = objectAt(bytes.ReplaceAll(text[i:min(end, len(text))], []byte(`""`), []byte(`"`)), 0)
		return object, min(end, len(text))
	}
	s := textSource(rest)
	if s.value(0) != nil {
		return nil, 0
	}
	return bytes.Clone(rest[:s.pos]), i + s.pos
}

// members finds the members of an object in memory that was found to be sound.
func members(text []byte) *object { return &object{raw: text, members: appendMembers(nil, text)} }

// scratch keeps lists of members for reuse. Most events are within another object, and the members of an object are
// needed only until its kind is known.
type scratch [][]member

func (s *scratch) take(text []byte) (list []member) {
	if n := len(*s); n > 0 {
		list, *s = (*s)[n-1], (*s)[:n-1]
	}
	return appendMembers(list[:0], text)
}

func (s *scratch) give(list []member) {
	if cap(list) <= maxScratch {
		*s = append(*s, list[:0])
	}
}

// maxScratch is the capacity of the largest list that is kept.
const maxScratch = 100

func appendMembers(list []member, text []byte) []member {
	for at := 1; ; {
		for at < len(text) && text[at] != '"' {
			at++
		}
		if at == len(text) {
			return list
		}
		name := at + 1
		at = skipString(text, at)
		m := member{name: text[name:max(name, at-1)]}
		for at < len(text) && text[at] != '"' && text[at] != '{' && text[at] != '[' && !word[text[at]] {
			at++
		}
		value := at
		at = skip(text, at)
		m.value = text[value:at]
		list = append(list, m)
	}
}

// anyValue returns the JSON of a value of OpenTelemetry (AnyValue of opentelemetry/proto/common/v1), and
// false if an object is none.
func anyValue(o *object) ([]byte, bool) {
	if len(o.members) != 1 || !bytes.HasSuffix(o.members[0].name, []byte("Value")) {
		return nil, false
	}
	var v otelValue
	if json.Unmarshal(o.raw, &v) != nil {
		return nil, false
	}
	text, err := json.Marshal(v.plain(0))
	if err != nil || len(text) == 0 {
		return nil, false
	}
	return text, true
}

// otelValue is an AnyValue. 64-bit numbers are strings in JSON.
type otelValue struct {
	String *string         `json:"stringValue"`
	Bool   *bool           `json:"boolValue"`
	Int    json.RawMessage `json:"intValue"`
	Double json.RawMessage `json:"doubleValue"`
	Array  *struct {
		Values []otelValue `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []struct {
			Key   string    `json:"key"`
			Value otelValue `json:"value"`
		} `json:"values"`
	} `json:"kvlistValue"`
}

func (v *otelValue) plain(depth int) any {
	switch {
	case depth > maxDepth:
		return nil
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return json.Number(strings.Trim(string(v.Int), `"`))
	case v.Double != nil:
		return number(strings.Trim(string(v.Double), `"`))
	case v.Array != nil:
		all := make([]any, 0, len(v.Array.Values))
		for i := range v.Array.Values {
			all = append(all, v.Array.Values[i].plain(depth+1))
		}
		return all
	case v.List != nil:
		all := make(map[string]any, len(v.List.Values))
		for i := range v.List.Values {
			all[v.List.Values[i].Key] = v.List.Values[i].Value.plain(depth + 1)
		}
		return all
	default:
		return nil
	}
}

// number returns a double as JSON, whole if it is: the receiver of Kubernetes objects makes doubles of all numbers.
func number(text string) any {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

// name returns the name of an event that cannot be decoded, as far as it shows.
func (f *found) name() string {
	var meta struct {
		Metadata struct{ Namespace, Name string }
	}
	if json.Unmarshal(f.raw, &meta) != nil || meta.Metadata.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s", meta.Metadata.Namespace, meta.Metadata.Name)
}
