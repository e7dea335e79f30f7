package search

import "strings"

// Part is what people see of a search as one term. All parts of a search have to match.
type Part struct {
	Field  string   `json:"field"`         // "" of a word or a phrase, "()" of what is more than one term
	Values []string `json:"values"`        // as they were written; of "()" its text
	Not    bool     `json:"not,omitempty"` // it must not match
}

// Written returns the parts of an expression in their order.
func (e *Expr) Written() []Part {
	all, last := []Part{}, -1
	for _, one := range e.Conjuncts() {
		if one.At > last { // else it is the name behind the kind of the same word
			all = append(all, one.part())
		}
		last = one.At
	}
	return all
}

func (e *Expr) part() (p Part) {
	for e.Kind == Not && (e.Parts[0].written != nil || e.Parts[0].Text != e.Text) {
		e, p.Not = e.Parts[0], !p.Not
	}
	if p.Field, p.Values = e.Name, e.written; e.Kind == Label {
		p.Field = "label." + e.Name
	}
	if p.Values == nil {
		p.Field, p.Values = "()", []string{strings.TrimSpace(e.Text)}
	}
	return p
}

// Tree is an expression for programs that evaluate it themselves. One of its members is set, Values and Note beside
// theirs.
type Tree struct {
	All    []*Tree  `json:"all,omitempty"`
	Any    []*Tree  `json:"any,omitempty"`
	Not    *Tree    `json:"not,omitempty"`
	Word   string   `json:"word,omitempty"` // folded
	Note   bool     `json:"note,omitempty"` // the word has to be in the note
	Field  string   `json:"field,omitempty"`
	Label  string   `json:"label,omitempty"`
	Values []string `json:"values,omitempty"` // those of dimensions are folded; a label without some is there
}

// Tree returns an expression as a tree, nil for none.
func (e *Expr) Tree() *Tree {
	if e == nil {
		return nil
	}
	var parts []*Tree
	for _, part := range e.Parts {
		parts = append(parts, part.Tree())
	}
	switch e.Kind {
	case And:
		return &Tree{All: parts}
	case Or:
		return &Tree{Any: parts}
	case Not:
		return &Tree{Not: parts[0]}
	case Word:
		return &Tree{Word: string(e.Word), Note: e.Note}
	case Label:
		return &Tree{Label: e.Name, Values: e.Values}
	}
	return &Tree{Field: e.Name, Values: e.Values}
}
