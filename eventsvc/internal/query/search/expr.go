package search

import (
	"slices"
	"strings"

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
	Text   string   // as it was written, without parentheses around it

	written []string // values, or the word; nil: it is more than one term, or a label without values
}

// Filter returns the expression as a filter, which stores evaluate.
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
		f := &event.Filter{Kind: event.FilterField, Field: exact[e.Name], Fits: e.fits}
		if len(e.Values) == 1 && !strings.Contains(e.Values[0], "*") {
			f.Exact = e.Values[0]
		}
		return f
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
