package event

import (
	"bytes"
)

const (
	// NoteHole stands for a word in a template. A note that has this byte has no template.
	NoteHole = 1
	// NoteMark is the template of notes that have none. A note that has this byte has no template.
	NoteMark = 2

	maxTemplateNote = 2048 // bytes of a note that has a template
	maxWord         = 128
	minPrefix       = 3
	minRandom       = 5 // characters at the end of a name that Kubernetes makes
)

// The characters of words, and those from which Kubernetes makes the ends of names. What is no ASCII belongs to a word,
// so that no character is cut.
var wordBytes, isRandom [256]bool

func init() {
	for c := range 256 {
		wordBytes[c] = c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-'
	}
	for _, c := range "bcdfghjklmnpqrstvwxz2456789" {
		isRandom[c] = true
	}
}

// IsWordByte reports whether a byte belongs to a word.
func IsWordByte(c byte) bool { return wordBytes[c] }

// A NoteSplitter splits notes into templates and words.
type NoteSplitter struct {
	Template []byte // with a [NoteHole] for each word
	Words    [][]byte
}

// Split splits the note of an event about an object. It reports false if the note has no template.
func (s *NoteSplitter) Split(note, object, namespace []byte) bool {
	if len(note) > maxTemplateNote || bytes.IndexByte(note, NoteHole) >= 0 || bytes.IndexByte(note, NoteMark) >= 0 {
		return false
	}
	return s.split(note, object, namespace, maxWord)
}

// split reports false if a word is longer than allowed.
func (s *NoteSplitter) split(note, object, namespace []byte, longest int) bool {
	s.Template, s.Words = s.Template[:0], s.Words[:0]
	for i := 0; i < len(note); {
		from := i
		digit := false
		for ; i < len(note) && wordBytes[note[i]]; i++ {
			digit = digit || note[i] >= '0' && note[i] <= '9'
		}
		word := note[from:i]
		switch {
		case len(word) == 0:
			s.Template = append(s.Template, note[i])
			i++
		case len(word) > longest:
			return false
		case digit || differs(word, object, namespace):
			s.Template, s.Words = append(s.Template, NoteHole), append(s.Words, word)
		default:
			s.Template = append(s.Template, word...)
		}
	}
	return true
}

// differs reports whether a word without digits probably differs from note to note.
func differs(word, object, namespace []byte) bool {
	if bytes.Equal(word, namespace) || len(word) >= minPrefix && bytes.HasPrefix(object, word) && (len(word) == len(object) || object[len(word)] == '-') {
		return true
	}
	end := word[bytes.LastIndexByte(word, '-')+1:]
	if len(end) == len(word) || len(end) < minRandom {
		return false
	}
	for _, c := range end {
		if !isRandom[c] {
			return false
		}
	}
	return true
}
