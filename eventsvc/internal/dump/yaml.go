package dump

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// The bounds of YAML, which is decoded in pieces: a document without a list, or an item of its list.
const (
	maxPiece    = maxEvent
	maxDocument = 64 << 20
	maxValues   = 50000 // in a piece, as in a request
)

// yamlLine begins a line of YAML that only an object of Kubernetes, or a log entry, has at the left.
var yamlLine = regexp.MustCompile(`(?m)^(- )?(apiVersion|kind|items|involvedObject|regarding|jsonPayload|object):`)

// isYAML reports whether the beginning of a text is YAML.
func isYAML(head []byte) bool { return yamlLine.Match(head) }

// peekYAML is how much of a text tells whether it goes on in YAML.
const peekYAML = 512

// beginsYAML reports whether the first line of a text, behind blanks and comments, is one of YAML.
func beginsYAML(ahead []byte) bool {
	for line := range bytes.Lines(ahead) {
		if bare := bytes.TrimSpace(line); len(bare) > 0 && bare[0] != '#' {
			return yamlLine.Match(line)
		}
	}
	return false
}

// prompt begins a line that somebody has typed into a shell, as people copy it with what is below.
var prompt = regexp.MustCompile(`^(\S*[$%]|\S+@\S*#|PS \S*>) \S`)

// objectLine begins a line that an object in YAML begins with, and no other line of a text is likely to.
var objectLine = regexp.MustCompile(`^(- )?(apiVersion: *\S+ *$|kind: *(Event|EventList|List) *$)`)

// eventLine is a line that an event in YAML, or in JSON behind marks of a quotation, has.
var eventLine = regexp.MustCompile(`^[\s>|*-]*"?(involvedObject|regarding)"?: *(\{.*)?$`)

// isSeparator reports whether a line is between documents: of YAML, or of a text in Markdown, or of what was typed into
// a shell.
func isSeparator(line []byte) bool {
	line = bytes.TrimRight(line, "\r")
	return prompt.Match(line) || bytes.Equal(line, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.Equal(line, []byte("...")) || isFence(line)
}

// isFence reports whether a line begins or ends a block of code in Markdown.
func isFence(line []byte) bool {
	return bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~"))
}

// yamlText splits a text into documents, and these into pieces.
type yamlText struct {
	*textFile
	head  []byte   // a document without the items of its list
	piece []byte   // an item
	at    Position // of head or of the piece
	items int      // how many the document has had
	in    bool     // the lines are those of a list
	deep  int      // how far the dashes of its items are from the left
	bytes int      // of the document
	skip  bool     // the rest of the document is not read
	all   listed
}

// yaml reads documents up to what is JSON, or the end of a block in Markdown.
func (t *textFile) yaml() {
	t.begun = true
	y := yamlText{textFile: t, at: Position{File: t.file, Line: t.line}}
	for t.ctx.Err() == nil {
		at := t.line
		if c, ok := t.peek(); !ok || (c == '{' || c == '[') && t.isJSON() {
			break
		}
		line := bytes.TrimRight(t.peekLine(maxPiece+1), "\r")
		switch {
		case isFence(line):
			y.end()
			return
		case isSeparator(line):
			y.end()
			y.at.Line = at + 1
		case y.skip:
		case len(line) > maxPiece, y.bytes > maxDocument:
			y.tooLarge(at)
		default:
			y.line(line, at)
		}
		y.bytes += len(line) + 1
		t.rest()
	}
	if t.failed() == nil && t.ctx.Err() == nil {
		y.end()
	}
}

func (y *yamlText) tooLarge(line int) {
	y.skip = true
	y.report.problem(Position{File: y.file, Line: line}, "", fmt.Errorf("the YAML document has a line of more than %d MiB, or more than %d MiB: ask for it as JSON",
		maxPiece>>20, maxDocument>>20))
}

// line takes a line of a document.
func (y *yamlText) line(line []byte, number int) {
	bare := bytes.TrimLeft(line, " ")
	indent := len(line) - len(bare)
	dash := len(bare) > 0 && bare[0] == '-' && (len(bare) == 1 || bare[1] == ' ')
	empty := len(bare) == 0 || bare[0] == '#'
	if y.in && !empty {
		y.within(indent, dash)
	}
	if !y.in && !y.begin(line, dash && indent == 0) {
		return
	}
	if dash && indent == y.deep {
		y.item()
		y.items++
		y.at = Position{File: y.file, Line: number, Index: y.items}
		line = append(bytes.Repeat([]byte(" "), indent+1), bare[1:]...)
	}
	if len(y.piece) <= maxPiece {
		y.piece = append(append(y.piece, line...), '\n')
	}
}

// within takes the indent of a line in a list, and ends the list if the line is behind it.
func (y *yamlText) within(indent int, dash bool) {
	switch {
	case y.deep < 0 && dash:
		y.deep = indent
	case y.deep < 0, indent < y.deep, indent == y.deep && !dash:
		y.item()
		y.in = false
	}
}

// begin takes a line that is in no list. It reports whether it begins a list that is the document.
func (y *yamlText) begin(line []byte, dash bool) bool {
	if dash && y.items == 0 && len(bytes.TrimSpace(y.head)) == 0 {
		y.in, y.deep = true, 0
		return true
	}
	if len(y.head) <= maxPiece {
		y.head = append(append(y.head, line...), '\n')
	}
	y.in, y.deep = string(bytes.TrimRight(line, " ")) == "items:", -1
	return false
}

// item reads an item of the list.
func (y *yamlText) item() {
	if len(y.piece) > 0 && y.items > 0 {
		y.decode(y.piece, y.at, &y.all)
	}
	y.piece = y.piece[:0]
}

// end reads what is left of a document.
func (y *yamlText) end() {
	y.item()
	switch {
	case y.skip:
	case y.items > 0:
		y.skipListed(kindOf(y.head), y.all.unnamed)
	case isYAML(y.head) || bytes.HasPrefix(bytes.TrimSpace(y.head), []byte("{")):
		at := y.at
		at.Index = 0
		var one listed
		y.decode(y.head, at, &one)
		y.report.skip(noKind, one.unnamed)
	}
	*y = yamlText{textFile: y.textFile, head: y.head[:0], piece: y.piece[:0], at: Position{File: y.file}}
}

var kindLine = regexp.MustCompile(`(?m)^ *kind: *["']?([A-Za-z0-9]+)`)

// kindOf is the kind of an object in YAML without the decoding, "" if it does not say.
func kindOf(piece []byte) string {
	least, kind := -1, ""
	for _, m := range kindLine.FindAllSubmatchIndex(piece, 20) {
		if indent := bytes.Index(piece[m[0]:m[1]], []byte("k")); least < 0 || indent < least {
			least, kind = indent, string(piece[m[2]:m[3]])
		}
	}
	return kind
}

// decode reads an object. It only looks at the kind of one that cannot be, or have, an event.
func (y *yamlText) decode(piece []byte, at Position, in *listed) {
	mayBe := bytes.Contains(piece, []byte("kind: Event")) || bytes.Contains(piece, []byte(`kind: "Event`)) || bytes.Contains(piece, wordCore) ||
		bytes.Contains(piece, []byte("regarding:")) || bytes.HasPrefix(bytes.TrimSpace(piece), []byte("{"))
	if !mayBe {
		if kind := kindOf(piece); kind != "" {
			y.report.skip(kind, 1)
		} else {
			in.unnamed++
		}
		return
	}
	object, note, err := yamlObject(piece)
	if err != nil {
		y.report.problem(at, "", fmt.Errorf("not YAML that can be read: %w", err))
		return
	}
	if note != "" {
		y.report.note(at, note)
	}
	if !y.classify(object, at, frame{}) {
		in.unnamed++
	}
}

// yamlObject reads a piece of YAML. The library bounds nesting and aliases; before it is asked, the number of values
// is.
func yamlObject(piece []byte) (o *object, note string, err error) {
	values := 0
	for _, mark := range []string{"\n", "\r", ",", "[", "{", "- ", "? "} {
		values += bytes.Count(piece, []byte(mark))
	}
	if len(piece) > maxPiece || values > maxValues {
		return nil, "", fmt.Errorf("it has more than %d values or %d MiB: if it has a list of events, ask for it as JSON", maxValues, maxPiece>>20)
	}
	text, err := yaml.YAMLToJSONStrict(piece)
	if err != nil && strings.Contains(err.Error(), "already set in map") {
		note = "a field is there twice, and the last one is kept"
		text, err = yaml.YAMLToJSON(piece)
	}
	if err != nil {
		return nil, "", err
	}
	if len(text) > maxObject {
		return nil, "", fmt.Errorf("its aliases make more than %d MiB of it", maxObject>>20)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		return nil, "", errors.New("it is no object")
	}
	return members(text), note, nil
}
