package query

import "tidings.example/eventsvc/internal/flow"

// Text is what a search asks of texts alone, for the tests.
type Text struct{ matcher *matcher }

// ParseText reads it.
func ParseText(text string) (*Text, error) {
	t, err := ParseTerms("", "", text)
	return &Text{newMatcher(t.byText)}, err
}

// Match reports whether the note of an event that has nothing else matches.
func (t *Text) Match(turns *flow.Turns, note []byte) bool {
	return t.matcher == nil || t.matcher.matches(turns, append(note, 0, 0, 0), &t.matcher.nothing)
}
