package query

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
)

// The bounds of a text.
const (
	MaxText  = 256 // bytes
	MaxWords = 16
)

// Text is what a note has to contain: words and phrases, all of them, in any order, in
// upper or lower case (Unicode simple case folding); and what it must not contain. It is
// for one goroutine.
type Text struct {
	words    [][]byte // folded
	excluded [][]byte // folded
	note     []byte   // folded, kept for the next one
	left     [][]byte // words that were not found yet
}

// ParseText reads words that are separated by blanks, and phrases in quotation marks,
// within which blanks count. A minus before a word or a phrase excludes it.
func ParseText(text string) (*Text, error) {
	if len(text) > MaxText {
		return nil, invalid("text", "has %d bytes: at most %d are searched for", len(text), MaxText)
	}
	if !utf8.ValidString(text) {
		return nil, invalid("text", "is no UTF-8")
	}
	t := &Text{}
	minus := false // before the phrase that follows
	parts := strings.Split(text, `"`)
	for i, part := range parts {
		if i%2 == 0 {
			if i < len(parts)-1 {
				part, minus = cutMinus(part)
			}
			for word := range strings.FieldsSeq(part) {
				rest, excluded := strings.CutPrefix(word, "-")
				if rest == "" { // a minus alone is a word
					rest, excluded = word, false
				}
				t.add(rest, excluded)
			}
			continue
		}
		if part == "" {
			return nil, invalid("text", "has an empty phrase: write something between the quotation marks")
		}
		t.add(part, minus)
	}
	if strings.Count(text, `"`)%2 != 0 {
		return nil, invalid("text", "has a quotation mark without a second one: close the phrase")
	}
	if n := len(t.words) + len(t.excluded); n > MaxWords {
		return nil, invalid("text", "has %d words and phrases: at most %d are searched for", n, MaxWords)
	}
	// Long words are rare in notes, so that most notes are done with after one look.
	slices.SortStableFunc(t.words, func(a, b []byte) int { return len(b) - len(a) })
	return t, nil
}

// cutMinus takes away the minus that stands directly before a phrase.
func cutMinus(part string) (string, bool) {
	rest, found := strings.CutSuffix(part, "-")
	if !found || rest != "" && strings.TrimRightFunc(rest, unicode.IsSpace) == rest {
		return part, false // it is part of a word
	}
	return rest, true
}

func (t *Text) add(word string, excluded bool) {
	folded := event.Fold(nil, []byte(word))
	if excluded {
		t.excluded = append(t.excluded, folded)
		return
	}
	t.words = append(t.words, folded)
}

func (t *Text) empty() bool { return t == nil || len(t.words)+len(t.excluded) == 0 }

// pieces returns what a note has if it matches, folded.
func (t *Text) pieces() [][]byte {
	if t == nil {
		return nil
	}
	return t.words
}

// pieceOfNote is how many bytes of a note are looked at in one turn.
const pieceOfNote = 64 << 10

// Match reports whether a note contains all words and phrases, and none that is excluded.
// If the turns are over its result means nothing.
func (t *Text) Match(turns *flow.Turns, note []byte) bool {
	if t.empty() {
		return true
	}
	t.note, t.left = t.note[:0], append(t.left[:0], t.words...)
	for turns.Next() {
		n := min(pieceOfNote, len(note))
		for n < len(note) && !utf8.RuneStart(note[n]) {
			n++
		}
		t.note = event.Fold(t.note, note[:n])
		note = note[n:]
		missing := t.left[:0]
		for _, word := range t.left {
			if bytes.Contains(t.note, word) {
				continue
			}
			if len(note) == 0 {
				return false
			}
			missing = append(missing, word)
		}
		t.left = missing
		for _, word := range t.excluded {
			if bytes.Contains(t.note, word) {
				return false
			}
		}
		if len(note) == 0 {
			return true
		}
		// A word that begins in this piece may end in the next one.
		t.note = append(t.note[:0], t.note[max(0, len(t.note)-MaxText):]...)
	}
	return false
}
