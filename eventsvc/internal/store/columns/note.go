package columns

import (
	"bytes"
	"encoding/binary"
)

const (
	// plainTemplate is the code of the template of notes that have none: they are stored as they are.
	plainTemplate = 0
	// hole stands for a word in a template, and plainMark is the template of plain notes. A note that has one of these
	// is plain.
	hole      = 1
	plainMark = 2

	maxTemplates    = 1 << 16
	maxWords        = 1 << 18
	maxTemplateNote = 2048 // bytes of a note that has a template
	maxWord         = 128
	minPrefix       = 3
	minRandom       = 5 // characters at the end of a name that Kubernetes makes
)

// The characters of words, and those from which Kubernetes makes the ends of names. What is no ASCII belongs to a word,
// so that no character is cut.
var isWord, isRandom [256]bool

func init() {
	for c := range 256 {
		isWord[c] = c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-'
	}
	for _, c := range "bcdfghjklmnpqrstvwxz2456789" {
		isRandom[c] = true
	}
}

// A splitter splits notes into templates and words.
type splitter struct {
	template []byte
	words    [][]byte
}

// split splits the note of an event about an object. It reports false if the note has no template.
func (s *splitter) split(note, object, namespace []byte) bool {
	s.template, s.words = s.template[:0], s.words[:0]
	if len(note) > maxTemplateNote || bytes.IndexByte(note, hole) >= 0 || bytes.IndexByte(note, plainMark) >= 0 {
		return false
	}
	for i := 0; i < len(note); {
		from := i
		digit := false
		for ; i < len(note) && isWord[note[i]]; i++ {
			digit = digit || note[i] >= '0' && note[i] <= '9'
		}
		word := note[from:i]
		switch {
		case len(word) == 0:
			s.template = append(s.template, note[i])
			i++
		case len(word) > maxWord:
			return false
		case digit || differs(word, object, namespace):
			s.template, s.words = append(s.template, hole), append(s.words, word)
		default:
			s.template = append(s.template, word...)
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

// appendPlain appends the plain notes of a chunk, each with its length (uvarint).
func appendPlain(dst, note []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(note))), note...)
}

// cutPlain splits off the first of plain notes.
func cutPlain(b []byte) (note, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
