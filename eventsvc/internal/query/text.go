package query

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a text.
const (
	MaxText  = 256 // bytes
	MaxWords = 16
)

// Text is what a note has to contain: words and phrases, all of them, in any order, in
// upper or lower case (Unicode simple case folding). It is for one goroutine.
type Text struct {
	words [][]byte // folded
	note  []byte   // folded, kept for the next one
}

// ParseText reads words that are separated by blanks, and phrases in quotation marks,
// within which blanks count.
func ParseText(text string) (*Text, error) {
	if len(text) > MaxText {
		return nil, invalid("text", "has %d bytes: at most %d are searched for", len(text), MaxText)
	}
	if !utf8.ValidString(text) {
		return nil, invalid("text", "is no UTF-8")
	}
	t := &Text{}
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 0 {
			for word := range strings.FieldsSeq(part) {
				t.words = append(t.words, fold(nil, []byte(word)))
			}
			continue
		}
		if part == "" {
			return nil, invalid("text", "has an empty phrase: write something between the quotation marks")
		}
		t.words = append(t.words, fold(nil, []byte(part)))
	}
	if strings.Count(text, `"`)%2 != 0 {
		return nil, invalid("text", "has a quotation mark without a second one: close the phrase")
	}
	if len(t.words) > MaxWords {
		return nil, invalid("text", "has %d words and phrases: at most %d are searched for", len(t.words), MaxWords)
	}
	// Long words are rare in notes, so that most notes are done with after one look.
	slices.SortStableFunc(t.words, func(a, b []byte) int { return len(b) - len(a) })
	return t, nil
}

func (t *Text) empty() bool { return t == nil || len(t.words) == 0 }

// Match reports whether a note contains all words and phrases.
func (t *Text) Match(note []byte) bool {
	if t.empty() {
		return true
	}
	t.note = fold(t.note[:0], note)
	for _, word := range t.words {
		if !bytes.Contains(t.note, word) {
			return false
		}
	}
	return true
}

// upper are the ASCII characters in upper case, which is the smallest of the characters
// that fold into each other.
var upper = func() (table [utf8.RuneSelf]byte) {
	for c := range table {
		table[c] = byte(smallest(rune(c)))
	}
	return table
}()

// smallest returns the smallest of the characters that are the same but for their case.
func smallest(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// fold appends a text with each character replaced by the smallest that folds into it.
func fold(dst, text []byte) []byte {
	dst = slices.Grow(dst, len(text))
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			dst = append(dst, upper[c])
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		dst = utf8.AppendRune(dst, smallest(r))
		i += size
	}
	return dst
}
