package query

import "tidings.example/eventsvc/internal/event"

// Text is what a search asks of texts, for the tests.
type Text struct{ filter *event.Filter }

// ParseText reads it.
func ParseText(text string) (*Text, error) {
	t, err := ParseTerms("", "", text)
	return &Text{t.Filter()}, err
}

// Match reports whether the note of an event that has nothing else matches.
func (t *Text) Match(note []byte) bool {
	a := event.NewAttributes([event.NumFields]string{}, nil)
	return t.filter.Matches(&event.Subject{Attributes: a, Text: event.AppendText(nil, note, a)})
}
