package logql

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/flow"
)

// Category is where a label comes from. Loki tells clients which is which.
type Category uint8

// The categories of labels.
const (
	Stream   Category = iota // of the stream
	Metadata                 // structured metadata of the entry
	Parsed                   // found by the pipeline
)

// Label is a label of an entry or of a series.
type Label struct {
	Name, Value string
	Category    Category
}

// ErrorLabel is set by a stage that fails for an entry: the entry goes on, so that it can
// be seen or dropped.
const ErrorLabel = "__error__"

const errorDetailsLabel = "__error_details__"

const (
	// maxParsed bounds the labels that a stage makes from one entry.
	maxParsed = 200
	// maxLabels bounds the labels that all stages make together: each new label is compared with all others.
	maxLabels = 500
)

// room returns how many labels an entry may have after a stage.
func (e *Entry) room() int { return min(len(e.Labels)+maxParsed, maxLabels) }

// Entry is a line with its labels, as a pipeline sees and changes it.
type Entry struct {
	Line   string
	Labels []Label
	// Event returns the JSON that the stage json makes labels of. It is called at most
	// once for each such stage.
	Event func() []byte
	Turns *flow.Turns // of the pipeline
}

// Get returns the value of a label, "" if it is not set.
func (e *Entry) Get(name string) string {
	v, _ := e.lookup(name)
	return v
}

func (e *Entry) lookup(name string) (string, bool) {
	for i := range e.Labels {
		if e.Labels[i].Name == name {
			return e.Labels[i].Value, true
		}
	}
	return "", false
}

// parsed adds a label that was found in the entry. As in Loki, one that the stream or the
// structured metadata has too gets another name, and one that has been found before stays.
func (e *Entry) parsed(name, value string) {
	if value == "" {
		return
	}
	for i := range e.Labels {
		if e.Labels[i].Name != name {
			continue
		}
		if e.Labels[i].Category == Parsed {
			return
		}
		e.parsed(name+"_extracted", value)
		return
	}
	e.Labels = append(e.Labels, Label{name, value, Parsed})
}

// fail sets the labels of an error.
func (e *Entry) fail(kind, details string) {
	e.parsed(ErrorLabel, kind)
	e.parsed(errorDetailsLabel, details)
}

// Plain reports that no stream needs a regular expression to be selected: MaySelect decides.
func (l *Log) Plain() bool {
	return !slices.ContainsFunc(l.Matchers, func(m Matcher) bool { return m.re != nil })
}

// MaySelect reports whether a stream with these labels can be selected, as far as that is
// known without regular expressions. It takes little time.
func (l *Log) MaySelect(label func(name string) string) bool {
	for i := range l.Matchers {
		if m := &l.Matchers[i]; m.re == nil && !m.matches(nil, label(m.Name)) {
			return false
		}
	}
	return true
}

// Selects reports whether a stream with these labels is selected. If the turns are over
// its result means nothing.
func (l *Log) Selects(turns *flow.Turns, label func(name string) string) bool {
	for i := range l.Matchers {
		if m := &l.Matchers[i]; !m.matches(turns, label(m.Name)) {
			return false
		}
	}
	return true
}

// Process runs the pipeline on an entry of a stream that is selected. It reports false if
// the entry is left out, or if its turns are over.
func (l *Log) Process(e *Entry) bool {
	for _, s := range l.Stages {
		if !e.Turns.Next() || !s.process(e) {
			return false
		}
	}
	return e.Turns.Err() == nil
}

// MatchesLine reports whether a line passes all line filters of the pipeline. No stage
// changes a line, so that this can be asked before there is an entry. If the turns are over
// its result means nothing.
func (l *Log) MatchesLine(turns *flow.Turns, line string) bool {
	for _, s := range l.Stages {
		if f, ok := s.(*lineFilter); ok && !f.matches(turns, line) {
			return false
		}
	}
	return true
}

// mostParts bounds what a store looks for before lines are matched.
const mostParts = 16

// LineParts returns some texts that are in each line that MatchesLine accepts, in upper or lower
// case: the text of a filter with one text, and for a regular expression what every match has.
func (l *Log) LineParts() (parts []string) {
	for _, s := range l.Stages {
		f, ok := s.(*lineFilter)
		switch {
		case !ok || f.op[0] != '|' || len(f.texts) != 1:
		case f.res == nil:
			parts = append(parts, f.texts[0])
		default:
			if re, err := syntax.Parse(f.expressions[0], syntax.Perl); err == nil {
				parts = appendLiterals(parts, re)
			}
		}
	}
	parts = slices.DeleteFunc(parts, func(text string) bool { return text == "" || !utf8.ValidString(text) })
	return parts[:min(len(parts), mostParts)]
}

// Needs returns the names of the labels that the pipeline depends on, and whether it depends
// on nothing else: not on lines or events as well.
func (l *Log) Needs() (labels []string, only bool) {
	only = true
	for _, s := range l.Stages {
		names, alone := s.needs()
		labels, only = append(labels, names...), only && alone
	}
	return labels, only
}

// Keeps reports whether the pipeline says which labels are left.
func (l *Log) Keeps() bool {
	return slices.ContainsFunc(l.Stages, func(s Stage) bool {
		chosen, ok := s.(*selection)
		return ok && chosen.keep
	})
}

// Drops reports whether the pipeline may drop a label.
func (l *Log) Drops(name string) bool {
	return slices.ContainsFunc(l.Stages, func(s Stage) bool {
		chosen, ok := s.(*selection)
		return ok && !chosen.keep && slices.ContainsFunc(chosen.matchers, func(m Matcher) bool { return m.Name == name })
	})
}

// Parses reports whether the pipeline makes labels of the event.
func (l *Log) Parses() bool { return slices.Contains(l.Stages, Stage(jsonStage{})) }

func (f *lineFilter) process(e *Entry) bool { return f.matches(e.Turns, e.Line) }

func (f *lineFilter) matches(turns *flow.Turns, line string) bool {
	found := false
	for i, text := range f.texts {
		if f.res != nil {
			found = found || f.res[i].matches(turns, line)
		} else {
			found = found || turns.Next() && strings.Contains(line, text)
		}
	}
	return found == (f.op[0] == '|')
}

func (f *lineFilter) needs() (labels []string, only bool) { return nil, false }

func (jsonStage) process(e *Entry) bool {
	if e.Event == nil {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(e.Event()))
	d.UseNumber()
	var event map[string]any
	if err := d.Decode(&event); err != nil {
		e.fail("JSONParserErr", err.Error())
		return true
	}
	flatten(e, "", event, e.room())
	return true
}

func (jsonStage) needs() (labels []string, only bool) { return nil, false }

// flatten makes labels of an object, in the order of its keys. Lists have none, as in
// Loki.
func flatten(e *Entry, prefix string, object map[string]any, limit int) {
	for _, k := range slices.Sorted(maps.Keys(object)) {
		name := prefix + labelName(k)
		if prefix == "" && digit(name[0]) {
			name = "_" + name
		}
		if len(e.Labels) >= limit {
			return
		}
		switch v := object[k].(type) {
		case map[string]any:
			flatten(e, name+"_", v, limit)
		case string:
			e.parsed(name, v)
		case json.Number:
			e.parsed(name, v.String())
		case bool:
			e.parsed(name, strconv.FormatBool(v))
		}
	}
}

// labelName replaces what a label's name cannot have.
func labelName(key string) string {
	if key == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (letter(byte(r)) || digit(byte(r))) {
			return r
		}
		return '_'
	}, key)
}

// pairsOfTurn is how many pairs of a line are taken in one turn. Each is compared with all
// labels.
const pairsOfTurn = 512

func (logfmtStage) process(e *Entry) bool {
	limit := e.room()
	for n, rest := 1, e.Line; len(e.Labels) < limit; n++ {
		if n%pairsOfTurn == 0 && !e.Turns.Next() {
			return false
		}
		var key, value string
		var ok bool
		if key, value, rest, ok = pair(rest); !ok {
			return true
		}
		if key == "" {
			continue
		}
		name := labelName(key)
		if digit(name[0]) {
			name = "_" + name
		}
		e.parsed(name, value)
	}
	return true
}

func (logfmtStage) needs() (labels []string, only bool) { return nil, false }

// pair cuts the next key=value pair from a line. A word without a value has no key.
func pair(line string) (key, value, rest string, ok bool) {
	line = strings.TrimLeft(line, " \t\r\n")
	if line == "" {
		return "", "", "", false
	}
	end := strings.IndexAny(line, " \t\r\n=\"")
	if end < 0 {
		return "", "", "", true
	}
	if line[end] != '=' || end == 0 {
		return "", "", line[end+1:], true
	}
	key, rest = line[:end], line[end+1:]
	if quoted, err := strconv.QuotedPrefix(rest); err == nil && rest[0] == '"' {
		value, _ = strconv.Unquote(quoted) // it is a prefix of that form
		return key, value, rest[len(quoted):], true
	}
	if end = strings.IndexAny(rest, " \t\r\n"); end < 0 {
		end = len(rest)
	}
	return key, rest[:end], rest[end:], true
}

func (f *labelFilter) process(e *Entry) bool { return f.holds(e) }

func (f *labelFilter) needs() (labels []string, only bool) { return f.names(), true }

func (c *textCondition) holds(e *Entry) bool { return c.matches(e.Turns, e.Get(c.Name)) }
func (c *textCondition) names() []string     { return []string{c.Name} }
func (c *joinedCondition) names() []string   { return slices.Concat(c.left.names(), c.right.names()) }
func (c *numberCondition) names() []string   { return []string{c.name} }

func (c *joinedCondition) holds(e *Entry) bool {
	if c.op == "or" {
		return c.left.holds(e) || c.right.holds(e)
	}
	return c.left.holds(e) && c.right.holds(e)
}

// holds compares numbers as Loki does: an entry without the label is left out, and one
// whose label is no number goes on with an error.
func (c *numberCondition) holds(e *Entry) bool {
	if _, failed := e.lookup(ErrorLabel); failed {
		return true // only texts are compared once there is an error
	}
	text, ok := e.lookup(c.name)
	if !ok {
		return false
	}
	var v float64
	var err error
	if c.duration {
		var d time.Duration
		d, err = time.ParseDuration(text)
		v = float64(d)
	} else {
		v, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		e.fail("LabelFilterErr", err.Error())
		return true
	}
	switch c.op {
	case "==":
		return v == c.value
	case "!=":
		return v != c.value
	case ">":
		return v > c.value
	case ">=":
		return v >= c.value
	case "<":
		return v < c.value
	default:
		return v <= c.value
	}
}

// process drops labels. A stage keep leaves those of errors, as in Loki.
func (s *selection) process(e *Entry) bool {
	e.Labels = slices.DeleteFunc(e.Labels, func(l Label) bool {
		named := slices.ContainsFunc(s.matchers, func(m Matcher) bool {
			return m.Name == l.Name && (m.Op == "" || m.matches(e.Turns, l.Value))
		})
		if s.keep {
			return !named && !strings.HasPrefix(l.Name, "__")
		}
		return named
	})
	return true
}

// needs names the labels of keep only: what is dropped need not be known.
func (s *selection) needs() (labels []string, only bool) {
	for i := range s.matchers {
		if s.keep {
			labels = append(labels, s.matchers[i].Name)
		}
	}
	return labels, true
}
