package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
)

// lists are the members of objects whose elements are read one by one: of lists and tables of Kubernetes, of logs of
// OpenTelemetry, and of answers of Google's logging, CloudWatch, Loki, Elasticsearch and others. Other members may have
// events, too, but are read as a whole, within [maxObject].
var lists = []string{
	"items", "rows", "resourceLogs", "scopeLogs", "instrumentationLibraryLogs", "logRecords", "entries",
	"events", "logEvents", "result", "results", "streams", "values", "hits", "records", "data",
}

// holders are the objects that have such lists in answers of Elasticsearch and Loki. They are read like a list of one
// element.
var holders = []string{"hits", "data"}

// textFile reads the objects of a text file, which may be between lines of anything else.
type textFile struct {
	*reader
	*source
	file   string
	inside bool     // the file is within a folder or an archive, where other files are no failure
	begun  bool     // something was JSON
	plain  [][]byte // the first lines that are not JSON, and those that begin the events of an object
}

// nestedLists is how deep lists may be within lists.
const nestedLists = 8

// json reads everything. It reports whether there was any JSON.
func (t *textFile) json() bool {
	for {
		begin := t.line
		c, ok := t.space()
		switch {
		case !ok:
			return t.begun
		case c == '{' || c == '[':
			if !t.isJSON() {
				t.prose()
				continue
			}
			if t.begun = true; !t.document() {
				return t.begun
			}
		case t.begun && t.line == begin && (c == ',' || c == ']' || c == '}'): // what is left of a list that broke
			t.next()
		default:
			t.prose()
		}
		if t.ctx.Err() != nil {
			return true
		}
	}
}

// isJSON tells an object or list from a line of a log that begins with a bracket.
func (t *textFile) isJSON() bool {
	ahead := t.ahead(256)
	rest := bytes.TrimLeft(ahead[1:], " \t\r\n")
	if len(rest) == 0 {
		return true
	}
	if ahead[0] == '{' {
		return rest[0] == '"' || rest[0] == '}'
	}
	return rest[0] == '{' || rest[0] == '[' || rest[0] == ']'
}

// The words in an event that no other line of a log is likely to have.
var (
	wordCore   = []byte(`involvedObject`)
	wordEvents = []byte(`regarding`)
	wordKind   = []byte(`"Event`)
)

// mayHaveEvent reports whether a text has a word of an event.
func mayHaveEvent(text []byte) bool {
	return bytes.Contains(text, wordCore) || bytes.Contains(text, wordEvents)
}

// prose skips a line that is not JSON. Events in it are read, behind whatever container runtimes and loggers write
// before them.
func (t *textFile) prose() {
	line := t.peekLine(maxObject)
	if n := len(t.plain); n < 40 && len(bytes.TrimSpace(line)) > 0 || n < 50 && bytes.HasPrefix(line, []byte("Events:")) {
		t.plain = append(t.plain, bytes.Clone(line[:min(len(line), 200)]))
	}
	if i := bytes.IndexByte(line, '{'); i >= 0 && mayHaveEvent(line) {
		at := Position{File: t.file, Line: t.line}
		switch found, other := t.search(line, at, frame{}); {
		case found:
			t.begun = true
		case len(line) == maxObject:
			t.lost = line[i:]
			t.tooLarge(new(openObject), at)
		case other:
			t.begun = true
			t.report.skip(noKind, 1)
		}
	} else {
		t.advise(line, Position{File: t.file, Line: t.line})
	}
	if mayHaveEvent(line) && eventLine.Match(bytes.TrimRight(line, "\r")) {
		t.report.problem(Position{File: t.file, Line: t.line}, "", errors.New("an event within other text is not read: write it to a file of its own"))
	}
	separates := isSeparator(line)
	t.rest()
	if ahead := t.ahead(peekYAML); separates && beginsYAML(ahead) || objectLine.Match(firstLine(ahead)) {
		t.yaml()
	}
}

// firstLine returns the first line of a text, without its end.
func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.TrimRight(line, "\r")
}

// document reads one object or list. It reports false if the text has ended.
func (t *textFile) document() bool {
	begin := t.line
	var all listed
	err := t.element(Position{File: t.file}, 0, &all)
	t.report.skip(noKind, all.unnamed)
	if err == nil {
		t.mark = -1
		return true
	}
	wrong, ok := errors.AsType[*syntaxError](err)
	if !ok || wrong.end && t.failed() != nil {
		return false // the context has ended, or the file cannot be read, which the caller reports
	}
	if wrong.end {
		err = fmt.Errorf("the file breaks off here, within what begins in line %d: what is before is read; ask for the whole file", begin)
	} else {
		err = fmt.Errorf("not JSON: %w; what is before it is read", err)
	}
	part, _ := t.kept()
	if !t.inside || mayHaveEvent(part) || bytes.Contains(part, wordKind) {
		t.report.problem(Position{File: t.file, Line: wrong.line}, "", err)
	}
	if t.mark >= 0 { // what follows the first line may be whole
		t.back()
		t.rest()
	} else if t.pos > 0 && t.pos < len(t.buf) && t.buf[t.pos-1] != '\n' {
		t.rest()
	}
	t.mark = -1
	return true
}

// listed is what the elements of a list leave to it.
type listed struct{ unnamed int64 }

// element reads an object or a list. On an error, the mark is at the object that it is in.
func (t *textFile) element(at Position, depth int, in *listed) error {
	at.Line = t.line
	if c, _ := t.peek(); c == '[' {
		return t.list(at, depth, in)
	}
	t.keep()
	t.lost = nil
	var o openObject
	t.pos++
	if c, ok := t.space(); ok && c == '}' {
		t.pos++
		in.unnamed++
		return nil
	}
	for {
		if err := t.member(&o, at, depth); err != nil {
			return err
		}
		c, ok := t.space()
		switch {
		case !ok || c != ',' && c != '}':
			return t.wrong(", or }")
		case c == '}':
			t.pos++
			t.closed(&o, at, in)
			return t.ctx.Err()
		}
		t.pos++
	}
}

// openObject is an object that is being read.
type openObject struct {
	spans []span // of its members, from the mark
	split bool   // the mark is gone: it has a list that was read, or is too large
	kind  string // if it is split
	about bool   // likewise: it is about an object, as events are
	// apiVersion is set of an object that has one before it says its kind; items is set if the member at hand is named
	// as in a list.
	apiVersion, items bool
	list              listed
	had               bool // a list
}

type span struct{ name, value, end int }

// maxMembers is how many members an object may have that is wanted.
const maxMembers = 10_000

// member reads a member of an object.
func (t *textFile) member(o *openObject, at Position, depth int) error {
	if _, ok := t.space(); !ok {
		return t.wrong("a name")
	}
	if len(o.spans) > maxMembers {
		o.split = true
		o.keepKind(t)
	}
	if o.split = o.split || t.mark < 0; o.split {
		o.spans = o.spans[:0]
		t.keep()
	}
	begin := t.pos - t.mark
	isList, isHolder, err := t.name(o)
	if err != nil {
		return err
	}
	c, _ := t.space()
	if depth < nestedLists && (isList && c == '[' || isHolder && c == '{') && !o.holdsNone(t) {
		o.had, o.split = true, true
		o.keepKind(t)
		t.mark = -1
		err := t.element(at, depth+1, &o.list)
		t.mark = -1
		return err
	}
	value := t.pos - t.mark
	if err := t.value(depth + 1); err != nil {
		return err
	}
	if t.mark < 0 {
		o.split = true
		return nil
	}
	o.spans = append(o.spans, span{begin, value, t.pos - t.mark})
	if o.split {
		o.keepKind(t)
	}
	return nil
}

// holdsNone reports whether an object is one of Kubernetes that is no list, as far as it shows before the member at
// hand: an event in it, such as in the data of a ConfigMap, is part of it and none of its own. The name of the member
// was skipped.
func (o *openObject) holdsNone(t *textFile) bool {
	part := &object{members: o.members(t.buf[max(t.mark, 0):])}
	kind := cmp.Or(part.text("kind"), o.kind)
	if kind == "" {
		o.apiVersion = o.apiVersion || part.get("apiVersion") != nil
		return o.apiVersion && !o.items
	}
	return kind[0] >= 'A' && kind[0] <= 'Z' && !strings.HasSuffix(kind, "List") && kind != "Table" // others are kinds of logs
}

// name skips the name of a member, and reports whether it names a list to be read, or an object that has one.
func (t *textFile) name(o *openObject) (isList, isHolder bool, err error) {
	begin := t.pos - t.mark
	if err := t.quoted(); err != nil {
		return false, false, err
	}
	if t.mark < 0 { // it was too large
		o.split, o.spans = true, nil
		t.keep()
		return false, false, t.want(':')
	}
	name := t.buf[t.mark+begin : t.pos]
	name = name[1 : len(name)-1]
	o.items = string(name) == "items" || string(name) == "rows"
	return slices.Contains(lists, string(name)), slices.Contains(holders, string(name)), t.want(':')
}

// keepKind takes what tells an event out of the members since the mark, which are forgotten.
func (o *openObject) keepKind(t *textFile) {
	part := &object{members: o.members(t.buf[t.mark:])}
	o.kind, o.apiVersion = cmp.Or(part.text("kind"), o.kind), o.apiVersion || part.get("apiVersion") != nil
	o.about = o.about || part.get("involvedObject") != nil || part.get("regarding") != nil
	o.spans, t.mark = o.spans[:0], -1
}

// members returns the members in a text.
func (o *openObject) members(from []byte) []member {
	all := make([]member, 0, len(o.spans))
	for _, s := range o.spans {
		name := from[s.name+1:]
		all = append(all, member{name[:bytes.IndexByte(name, '"')], from[s.value:s.end]})
	}
	return all
}

// closed classifies an object that has been read.
func (t *textFile) closed(o *openObject, at Position, in *listed) {
	raw, whole := t.kept()
	switch {
	case o.had: // its elements were counted but for those that it names
		t.skipListed(o.kind, o.list.unnamed)
	case o.split || !whole:
		if t.mark >= 0 && !whole {
			t.lost = t.buf[t.mark : t.mark+lostBytes]
			o.keepKind(t)
		}
		t.tooLarge(o, at)
	default:
		raw = bytes.Clone(raw)
		if !t.classify(&object{raw, o.members(raw)}, at, frame{}) {
			t.advise(raw, at)
			in.unnamed++
		}
	}
	t.mark = -1
}

// skipListed counts the elements of a list that only its kind names. What is no list counts once.
func (r *reader) skipListed(kind string, unnamed int64) {
	name, isList := strings.CutSuffix(kind, "List")
	switch {
	case name == "":
		r.report.skip(noKind, unnamed)
	case isList:
		r.report.skip(kindName(name), unnamed)
	default:
		r.report.skip(kindName(name), min(unnamed, 1))
	}
}

// tooLarge reports an object that is not read. It fails if it is an event, or has one, as far as its beginning shows.
func (t *textFile) tooLarge(o *openObject, at Position) {
	kind := o.kind
	if m := jsonKind.FindSubmatch(t.lost); kind == "" && m != nil {
		kind = string(m[1])
	}
	if kind == event.Kind || kind == "" && (o.about || mayHaveEvent(t.lost)) {
		t.report.problem(at, "", fmt.Errorf("it is larger than %d MiB, and the service accepts events of up to %d MiB: make it smaller in the file", maxObject>>20, maxEvent>>20))
		return
	}
	t.report.note(at, fmt.Sprintf("an object is larger than %d MiB, and not read: no event is", maxObject>>20))
}

// jsonKind finds the first kind in an object.
var jsonKind = regexp.MustCompile(`"kind"\s*:\s*"([A-Za-z]+)"`)

// list reads the elements of a list. The mark is within one of them, or nowhere.
func (t *textFile) list(at Position, depth int, in *listed) error {
	if depth > nestedLists {
		return t.value(depth)
	}
	t.mark = -1
	t.pos++
	if c, ok := t.space(); ok && c == ']' {
		t.pos++
		return nil
	}
	for at.Index = 1; ; at.Index++ {
		c, ok := t.space()
		switch {
		case !ok:
			return t.wrong("an element")
		case c == '{' || c == '[':
			if err := t.element(at, depth+1, in); err != nil {
				return err
			}
			t.mark = -1
		default:
			if err := t.scalar(at, depth); err != nil {
				return err
			}
		}
		c, ok = t.space()
		switch {
		case !ok || c != ',' && c != ']':
			return t.wrong(", or ]")
		case c == ']':
			t.pos++
			return nil
		}
		t.pos++
	}
}

// scalar reads an element that is no object or list, but may be a text that has an event.
func (t *textFile) scalar(at Position, depth int) error {
	t.keep()
	if err := t.value(depth); err != nil {
		return err
	}
	if raw, whole := t.kept(); whole && mayHaveEvent(raw) {
		at.Line = t.source.begun
		t.within(bytes.Clone(raw), at, frame{})
	}
	t.mark = -1
	return nil
}
