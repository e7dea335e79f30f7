package query

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/query/search"
)

// matcher looks for the words of expressions in the texts of events. It is for one goroutine.
type matcher struct {
	exprs []*search.Expr // all of which have to match
	words []*search.Expr
	found []bool
	text  []byte // folded, kept for the next one
	// nothing is what expressions on words alone are evaluated about.
	nothing search.Subject
}

// newMatcher returns a matcher of expressions, nil if there are none.
func newMatcher(exprs []*search.Expr) *matcher {
	if len(exprs) == 0 {
		return nil
	}
	m := &matcher{exprs: exprs}
	for _, e := range exprs {
		e.Terms(func(term *search.Expr, _ bool) {
			if term.Kind == search.Word {
				m.words = append(m.words, term)
			}
		})
	}
	m.found = make([]bool, len(m.words))
	m.nothing.Has = m.has
	return m
}

// pieces returns the folded parts that every matching text has.
func pieces(exprs []*search.Expr) (all [][]byte) {
	for _, e := range exprs {
		if e.Kind == search.Word {
			all = append(all, e.Word)
		}
	}
	return all
}

// matches reports whether an event matches all expressions. If the turns are over its result means nothing.
func (m *matcher) matches(turns *flow.Turns, text []byte, s *search.Subject) bool {
	clear(m.found)
	note, rest := event.CutNote(text)
	m.look(turns, note, true)
	m.look(turns, rest, false)
	return !slices.ContainsFunc(m.exprs, func(e *search.Expr) bool { return !e.Matches(s) })
}

// has reports whether a word was found.
func (m *matcher) has(word *search.Expr) bool { return m.found[slices.Index(m.words, word)] }

// pieceOfNote is how many bytes of a note are looked at in one turn.
const pieceOfNote = 64 << 10

// look looks for the words in the note, or in what is behind it.
func (m *matcher) look(turns *flow.Turns, text []byte, note bool) {
	m.text = m.text[:0]
	for len(text) > 0 && turns.Next() {
		n := min(pieceOfNote, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		m.text = event.Fold(m.text, text[:n])
		text = text[n:]
		for i, word := range m.words {
			if !m.found[i] && (note || !word.Note) {
				m.found[i] = bytes.Contains(m.text, word.Word)
			}
		}
		// A word that begins in this piece may end in the next one.
		m.text = append(m.text[:0], m.text[max(0, len(m.text)-search.MaxBytes):]...)
	}
}
