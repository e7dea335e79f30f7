package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/event"
)

// The bounds of a text.
const (
	MaxBytes = 1024
	MaxTerms = 64 // words and values
	maxDepth = 16 // of parentheses and negations
	maxStars = 16 // of a value, but for a pattern of notes, which has those of the notes
)

// Error says what is wrong with a text.
type Error struct {
	At      int // character, from 1
	Problem string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("at character %d: %s", e.At, e.Problem) }

// exact are the fields that are compared as they are written.
var exact = map[string]event.Field{
	"name": event.RegardingName, "uid": event.RegardingUID, "path": event.RegardingFieldPath, "event": event.FieldName,
	"regarding.namespace": event.RegardingNamespace, "regarding.apiVersion": event.RegardingAPIVersion, "regarding.resourceVersion": event.RegardingResourceVersion,
}

// noteField is the field whose value has to be in the note.
const noteField = "note"

// names are the names of the fields in lower case, with others for the same field.
var names = func() map[string]string {
	all := map[string]string{
		"ns": "namespace", "object": "name", "host": "node", "message": noteField, "source": "reporter", "controller": "reporter",
		"metadata.name": "event", "metadata.namespace": "namespace", "reportingcontroller": "reporter", "regarding.kind": "kind",
		"regarding.name": "name", "regarding.uid": "uid", "regarding.fieldpath": "path",
	}
	for _, name := range slices.Concat(Fields(), slices.Collect(maps.Keys(exact))) {
		all[strings.ToLower(name)] = name
	}
	return all
}()

// Fields are the names of the fields, without the long ones of field selectors.
func Fields() []string {
	return append(slices.Clone(event.DimensionNames), "name", "uid", "path", "event", noteField, event.PatternDimension)
}

// parser reads one text.
type parser struct {
	text  string
	at    int // byte
	terms int
	depth int
}

// Parse reads a text. An empty one is nil. A mistake in it is an [*Error].
func Parse(text string) (e *Expr, err error) {
	p := &parser{text: text}
	defer func() {
		if wrong, ok := recover().(*Error); ok {
			e, err = nil, wrong
		}
	}()
	switch {
	case len(text) > MaxBytes:
		p.failAt(MaxBytes, "the text is longer than %d bytes: shorten it", MaxBytes)
	case !utf8.ValidString(text):
		p.failAt(0, "the text is no UTF-8")
	}
	if p.skip(); p.at == len(text) {
		return nil, nil
	}
	if e = p.or(); e.Text == "" { // it has parts
		e.Text = text
	}
	if p.at < len(text) {
		p.fail("there is no parenthesis that ) closes: take it away, or put the text into quotation marks")
	}
	return e, nil
}

// fail gives up at the present place.
func (p *parser) fail(format string, args ...any) { p.failAt(p.at, format, args...) }

func (p *parser) failAt(at int, format string, args ...any) {
	panic(&Error{At: len([]rune(p.text[:min(at, len(p.text))])) + 1, Problem: fmt.Sprintf(format, args...)})
}

// skip skips blanks.
func (p *parser) skip() {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
}

// ended reports whether a word ends here.
func (p *parser) ended() bool {
	return p.at == len(p.text) || isBlank(p.text[p.at:]) || p.text[p.at] == ')' && p.depth > 0
}

func isBlank(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

// keyword skips a keyword, if it is here.
func (p *parser) keyword(word string) bool {
	rest, ok := strings.CutPrefix(p.text[p.at:], word)
	if !ok || rest != "" && !isBlank(rest) && rest[0] != '(' && rest[0] != ')' {
		return false
	}
	p.at += len(word)
	p.skip()
	return true
}

// deeper counts the parentheses and negations that are open.
func (p *parser) deeper(by int) {
	if p.depth += by; p.depth > maxDepth {
		p.fail("there are more than %d parentheses and negations within each other: take some away", maxDepth)
	}
}

func (p *parser) or() *Expr {
	e := &Expr{Kind: Or, At: p.at, Parts: []*Expr{p.and("")}}
	for p.keyword("OR") {
		e.Parts = append(e.Parts, p.and("OR"))
	}
	return e.simple()
}

// simple is the only part of an expression that has one.
func (e *Expr) simple() *Expr {
	if len(e.Parts) == 1 {
		return e.Parts[0]
	}
	return e
}

func (p *parser) and(behind string) *Expr {
	e := &Expr{Kind: And, At: p.at}
	for {
		p.skip()
		at := p.at
		switch {
		case p.keyword("AND"):
			if len(e.Parts) == 0 {
				p.failAt(at, "AND has nothing before it: write a term there, or \"AND\" for the word")
			}
			behind = "AND"
			continue
		case p.at == len(p.text), p.text[p.at] == ')', p.isKeyword("OR"):
			if behind == "" && len(e.Parts) > 0 {
				return e.simple()
			}
			p.missing(behind)
		}
		for _, part := range p.unary().Conjuncts() {
			p.exclusive(e, part)
			e.Parts = append(e.Parts, part)
		}
		behind = ""
	}
}

// exclusive gives up if a term and one before it ask for different values of one field.
func (p *parser) exclusive(before *Expr, term *Expr) {
	if term.Kind != Field {
		return
	}
	for _, other := range before.Parts {
		if other.Kind == Field && other.Name == term.Name && !slices.ContainsFunc(term.Values, other.fits) &&
			!strings.Contains(strings.Join(slices.Concat(term.Values, other.Values), ""), "*") {
			p.failAt(term.At, "an event has one %s, so %s and %s exclude each other: write %s:a,b for either of two, or take one away", term.Name, other.Text, term.Text, term.Name)
		}
	}
}

func (p *parser) isKeyword(word string) bool {
	at := p.at
	found := p.keyword(word)
	p.at = at
	return found
}

// missing gives up because a term is missing.
func (p *parser) missing(behind string) {
	if behind != "" {
		p.fail("%s has nothing behind it: write a term there, or \"%s\" for the word", behind, behind)
	}
	if p.isKeyword("OR") {
		p.fail("OR has nothing before it: write a term there, or \"OR\" for the word")
	}
	p.fail("a term is missing: write one here, or put the parenthesis into quotation marks")
}

func (p *parser) unary() *Expr {
	at := p.at
	minus := strings.HasPrefix(p.text[p.at:], "-") && len(p.text) > p.at+1 && !isBlank(p.text[p.at+1:]) && p.text[p.at+1] != ')'
	if minus {
		p.at++
	}
	if minus || p.keyword("NOT") {
		if p.at == len(p.text) || p.text[p.at] == ')' {
			p.missing("NOT")
		}
		p.deeper(1)
		defer p.deeper(-1)
		e := &Expr{Kind: Not, At: at, Parts: []*Expr{p.negated()}}
		e.Text = p.text[at:p.at]
		return e
	}
	if p.text[p.at] != '(' {
		return p.term()
	}
	p.at++
	p.deeper(1)
	defer p.deeper(-1)
	e := p.or()
	if p.at == len(p.text) {
		p.failAt(at, "this parenthesis is not closed: write a ) for it")
	}
	if e.Text == "" { // it has parts
		e.Text = p.text[at+1 : p.at]
	}
	p.at++
	return e
}

// negated is what a negation is about. A minus is not about a minus.
func (p *parser) negated() *Expr {
	if p.text[p.at] == '-' {
		return p.term()
	}
	return p.unary()
}

// term reads a word, a phrase, or a term on a field or a label.
func (p *parser) term() *Expr {
	at := p.at
	e := p.fieldTerm()
	if e == nil {
		e = p.word()
	}
	e.stands(at, p.text[at:p.at])
	if p.terms += max(1, len(e.Values)); p.terms > MaxTerms {
		p.failAt(at, "there are more than %d words and values: leave some out", MaxTerms)
	}
	return e
}

// stands notes where an expression stands, and how it was written.
func (e *Expr) stands(at int, text string) {
	e.At, e.Text = at, text
	for _, part := range e.Parts {
		part.stands(at, text)
	}
}

func (p *parser) word() *Expr {
	at := p.at
	quoted := strings.HasPrefix(p.text[p.at:], `"`)
	text := p.value(`"`)
	switch {
	case text == "":
		p.failAt(at, "the phrase is empty: write something between the quotation marks")
	case !quoted:
		return p.bare(at, text)
	}
	e := wordOf(text, false)
	e.written = []string{text}
	return e
}

// bare is the expression for a word without quotation marks. A * at one of its ends changes nothing, because words are
// found within longer ones, and a name with a slash is that of an object.
func (p *parser) bare(at int, text string) *Expr {
	if named := nameOf(text); named != nil {
		return named
	}
	word := strings.Trim(text, "*")
	switch {
	case word == "":
		p.failAt(at, "* fits everything: take it away, or write \"%s\" for the character", text)
	case strings.Contains(word, "*"):
		p.failAt(at, "there is no * within a word, and there are no regular expressions: write name:%s or reason:%s, or the parts as words of their own", text, text)
	}
	e := wordOf(word, false)
	e.written = []string{word}
	return e
}

func wordOf(text string, note bool) *Expr {
	return &Expr{Kind: Word, Word: event.Fold(nil, []byte(text)), Note: note}
}

// value reads a phrase, or a word up to a blank, a closing parenthesis or one of some characters.
func (p *parser) value(until string) string {
	if strings.HasPrefix(p.text[p.at:], `"`) {
		return p.phrase()
	}
	from, open := p.at, 0
	for p.at < len(p.text) && !isBlank(p.text[p.at:]) && strings.IndexByte(until, p.text[p.at]) < 0 {
		switch p.text[p.at] {
		case '(':
			open++
		case ')':
			if open--; open < 0 && p.depth > 0 {
				return p.text[from:p.at]
			}
		}
		_, size := utf8.DecodeRuneInString(p.text[p.at:])
		p.at += size
	}
	return p.text[from:p.at]
}

// phrase reads a text in quotation marks, in which a backslash stands before one that belongs to it.
func (p *parser) phrase() string {
	var b strings.Builder
	begin := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return b.String()
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	p.at = begin
	p.fail("the quotation mark has no second one: close the phrase")
	return ""
}

// isName reports whether a byte may be in the name of a field or the key of a label.
func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '/' || c == '_' || c == '-'
}

// name reads a name.
func (p *parser) name() string {
	from := p.at
	for p.at < len(p.text) && isName(p.text[p.at]) {
		p.at++
	}
	return p.text[from:p.at]
}

// operator reads what stands between a field and its values, and reports whether it is a negation.
func (p *parser) operator() (not, ok bool) {
	for _, operator := range []string{"!=", "!:", "==", ":", "="} {
		if rest, ok := strings.CutPrefix(p.text[p.at:], operator); ok {
			p.at = len(p.text) - len(rest)
			return operator[0] == '!', true
		}
	}
	return false, false
}

// fieldTerm reads a term on a field or a label; it is nil, and nothing is read, if there is none.
func (p *parser) fieldTerm() *Expr {
	at := p.at
	name := p.name()
	key, label := strings.CutPrefix(name, "label.")
	field, known := names[strings.ToLower(name)]
	if name == "label" && strings.HasPrefix(p.text[p.at:], ":") {
		p.at++
		key, label = p.name(), true
	}
	e := &Expr{Kind: Field, Name: field}
	if label {
		if e = (&Expr{Kind: Label, Name: key}); key == "" {
			p.fail("the key of a label is missing: write label:key=value")
		}
		if p.ended() {
			return e
		}
	}
	not, operator := p.operator()
	if !operator || !known && !label {
		if label {
			p.fail("there is no operator behind the key of the label: write label:%s=value", key)
		}
		p.at = at
		return nil
	}
	e.Values = p.values(name)
	if e = p.meant(e, name); not {
		return &Expr{Kind: Not, Parts: []*Expr{e}}
	}
	return e
}

// values reads values that are separated by commas.
func (p *parser) values(name string) (all []string) {
	for {
		at := p.at
		value := p.value(`,"`)
		if value == "" && p.at == at && p.text[at-1] != '=' {
			p.fail("%s has no value: write one here, or \"\" for events without one", name)
		}
		if strings.Count(value, "*") > maxStars && names[strings.ToLower(name)] != event.PatternDimension {
			p.failAt(at, "the pattern has more than %d *: leave some out", maxStars)
		}
		all = append(all, value)
		if !strings.HasPrefix(p.text[p.at:], ",") {
			return all
		}
		if p.at++; p.ended() {
			p.fail("there is nothing behind the comma: write a value, or take the comma away")
		}
	}
}

// meant is the expression for a term on a field.
func (p *parser) meant(e *Expr, name string) *Expr {
	e.written = slices.Clone(e.Values)
	switch {
	case e.Kind == Label:
		return e
	case e.Name == noteField:
		words := either(e.Values, func(value string) *Expr { return wordOf(value, true) })
		words.Name, words.written = e.Name, e.written
		return words
	case strings.EqualFold(name, "object") && slices.ContainsFunc(e.Values, func(v string) bool { return strings.Contains(v, "/") }):
		return either(e.Values, func(value string) *Expr { // as Pod/web-0
			kind, object, both := strings.Cut(value, "/")
			if !both {
				return &Expr{Kind: Field, Name: "name", Values: []string{value}}
			}
			return &Expr{Kind: And, Parts: []*Expr{
				{Kind: Field, Name: "kind", Values: []string{fold(kind)}}, {Kind: Field, Name: "name", Values: []string{object}},
			}}
		})
	case e.Dimensional():
		for i, value := range e.Values {
			e.Values[i] = fold(event.CutDimension(value))
		}
	}
	return e
}

// either is an expression for each value, of which one has to match.
func either(values []string, of func(string) *Expr) *Expr {
	e := &Expr{Kind: Or}
	for _, value := range values {
		e.Parts = append(e.Parts, of(value))
	}
	return e.simple()
}
