package search

import (
	"bytes"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
)

// Kind is the kind of an expression.
type Kind int

// The kinds of expressions.
const (
	And   Kind = iota // all parts match
	Or                // one part matches
	Not               // its only part does not match
	Word              // the text of an event contains it
	Field             // a field has one of the values
	Label             // a label has one of the values or, without values, is there
)

// Expr is an expression.
type Expr struct {
	Kind   Kind
	Parts  []*Expr
	Name   string   // of the field, or the key of the label
	Values []string // of a field or a label; those of a dimension are folded
	Word   []byte   // folded
	Note   bool     // the word has to be in the note
	At     int      // byte at which it begins
	Text   string   // as it was written
}

// Subject is what an expression is evaluated about.
type Subject struct {
	Namespace, Name string // of the event
	Dimensions      *event.Dimensions
	Attributes      event.Attributes
	Has             func(word *Expr) bool // whether the text of the event has a word
	Pattern         func() string         // of the note ([event.Pattern])
}

// Matches reports whether an expression matches an event.
func (e *Expr) Matches(s *Subject) bool {
	matches := func(part *Expr) bool { return part.Matches(s) }
	switch e.Kind {
	case And:
		return !slices.ContainsFunc(e.Parts, func(part *Expr) bool { return !part.Matches(s) })
	case Or:
		return slices.ContainsFunc(e.Parts, matches)
	case Not:
		return !e.Parts[0].Matches(s)
	case Word:
		return s.Has(e)
	case Label:
		value, ok := s.Attributes.Lookup(e.Name)
		return ok && (len(e.Values) == 0 || e.fits(value))
	}
	switch {
	case e.Dimensional():
		return e.fits(fold(*s.Dimensions.Text(e.Name)))
	case e.Name == event.PatternDimension:
		return e.fits(s.Pattern())
	}
	switch f := exact[e.Name]; f {
	case event.FieldName:
		return e.fits(s.Name)
	default:
		return e.fits(string(s.Attributes.Field(f)))
	}
}

// Filter returns the expression as a filter that a store evaluates.
func (e *Expr) Filter() *event.Filter {
	switch e.Kind {
	case Word:
		return &event.Filter{Kind: event.FilterWord, Word: e.Word, Note: e.Note}
	case Label:
		return &event.Filter{Kind: event.FilterLabels, Labels: func(l labels.Labels) bool {
			return l.Has(e.Name) && (len(e.Values) == 0 || e.fits(l.Get(e.Name)))
		}}
	case Field:
		switch {
		case e.Dimensional():
			return &event.Filter{Kind: event.FilterDimension, Dimension: e.Name, Fits: e.Fits}
		case e.Name == event.PatternDimension:
			return &event.Filter{Kind: event.FilterDimension, Dimension: e.Name, Fits: e.fits}
		}
		return &event.Filter{Kind: event.FilterField, Field: exact[e.Name], Fits: e.fits}
	}
	f := &event.Filter{Kind: map[Kind]event.FilterKind{And: event.FilterAll, Or: event.FilterAny, Not: event.FilterNot}[e.Kind]}
	for _, part := range e.Parts {
		f.Parts = append(f.Parts, part.Filter())
	}
	return f
}

// fits reports whether a text is one of the values.
func (e *Expr) fits(text string) bool {
	return slices.ContainsFunc(e.Values, func(value string) bool {
		return value == text || strings.Contains(value, "*") && event.MatchPattern(value, text)
	})
}

// Fits reports whether a value of a dimension is one that a field asks for.
func (e *Expr) Fits(text string) bool { return e.fits(fold(text)) }

func fold(text string) string { return string(event.Fold(nil, []byte(text))) }

// every reports whether all terms of an expression are as asked.
func (e *Expr) every(is func(*Expr) bool) bool {
	if len(e.Parts) > 0 {
		return !slices.ContainsFunc(e.Parts, func(part *Expr) bool { return !part.every(is) })
	}
	return is(e)
}

// Dimensional reports whether an expression is about dimensions alone that need no note: pattern is none of them.
func (e *Expr) Dimensional() bool {
	return e.every(func(t *Expr) bool { return t.Kind == Field && slices.Contains(event.DimensionNames, t.Name) })
}

// Textual reports whether an expression is about words alone.
func (e *Expr) Textual() bool {
	return e.every(func(t *Expr) bool { return t.Kind == Word })
}

// Conjuncts returns the expressions that all have to match.
func (e *Expr) Conjuncts() []*Expr {
	switch {
	case e == nil:
		return nil
	case e.Kind == And:
		return e.Parts
	}
	return []*Expr{e}
}

// Term writes a term on a field, which [Parse] reads as such whatever the value has.
func Term(field, value string) string {
	if value != "" && strings.IndexFunc(value, func(r rune) bool { return r != '*' && (r > 0x7f || !isName(byte(r))) }) < 0 {
		return field + ":" + value
	}
	return field + `:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// Terms calls visit with each word, field and label of an expression, and whether an even number of negations is before
// it.
func (e *Expr) Terms(visit func(term *Expr, wanted bool)) { e.terms(true, visit) }

func (e *Expr) terms(wanted bool, visit func(*Expr, bool)) {
	if e == nil {
		return
	}
	if len(e.Parts) == 0 {
		visit(e, wanted)
	}
	for _, part := range e.Parts {
		part.terms(wanted != (e.Kind == Not), visit)
	}
}

// ExactField returns the field of an event that a term compares as it is written, if it does.
func (e *Expr) ExactField() (f event.Field, ok bool) {
	f, ok = exact[e.Name]
	return f, ok && e.Kind == Field
}

// About returns what expressions are evaluated about for an event that is in no store.
func About(ev *eventsv1.Event) *Subject {
	s := &Subject{Namespace: ev.Namespace, Name: ev.Name, Attributes: event.AttributesOf(ev)}
	d := event.DimensionsOf(ev.Namespace, s.Attributes)
	s.Dimensions = &d
	text := event.Fold(nil, event.AppendText(nil, []byte(ev.Note), s.Attributes))
	note, _ := event.CutNote(text)
	s.Has = func(word *Expr) bool {
		return bytes.Contains(note, word.Word) || !word.Note && bytes.Contains(text, word.Word)
	}
	s.Pattern = func() string {
		return event.Pattern([]byte(ev.Note), s.Attributes.Field(event.RegardingName), []byte(ev.Namespace))
	}
	return s
}
