package event

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// PatternDimension is the name under which observations are counted by the pattern of their notes ([Pattern]). It is
// none of [DimensionNames], because it needs the note.
const PatternDimension = "pattern"

// A WordClass is what a word of a note looks like.
type WordClass uint8

// The classes of words.
const (
	NameWord   WordClass = iota // of an object, or anything else that differs from note to note
	NumberWord                  // also with units: 10s, 5m0s, 500Mi
	HashWord
	UUIDWord
	DateWord
)

// ClassOf returns the class of a word.
func ClassOf(word []byte) WordClass {
	digits, letters, hyphens := hexDigits(word)
	hex := digits+letters+hyphens == len(word)
	switch {
	case hex && len(word) >= 7 && digits > 0 && letters > 0 && hyphens == 0:
		return HashWord
	case isNumber(word):
		return NumberWord
	case hex && len(word) == 36 && hyphens == 4 && word[8] == '-' && word[13] == '-' && word[18] == '-':
		return UUIDWord
	case isDate(word):
		return DateWord
	}
	return NameWord
}

// hexDigits counts the hexadecimal digits of a word: those from 0 to 9, and those that are letters. It counts hyphens
// as well.
func hexDigits(word []byte) (digits, letters, hyphens int) {
	for _, c := range word {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
			letters++
		case c == '-':
			hyphens++
		}
	}
	return digits, letters, hyphens
}

// isDate reports whether a word begins with a date of RFC 3339.
func isDate(word []byte) bool {
	return len(word) >= 10 && word[4] == '-' && word[7] == '-' && isNumber(word[:4]) && isNumber(word[5:7]) && isNumber(word[8:10])
}

// maxUnit is the most letters of a unit behind a number.
const maxUnit = 3

// isNumber reports whether a word is numbers, each with a unit or none.
func isNumber(word []byte) bool {
	word = bytes.TrimPrefix(word, []byte("-"))
	for n := 0; ; n++ {
		rest := bytes.TrimLeft(word, "0123456789")
		if len(rest) == len(word) {
			return n > 0 && len(word) == 0
		}
		word = rest
		unit := 0
		for unit < len(word) && unit <= maxUnit && (word[unit] >= 'a' && word[unit] <= 'z' || word[unit] >= 'A' && word[unit] <= 'Z') {
			unit++
		}
		if word = word[unit:]; unit > maxUnit {
			return false
		}
	}
}

// Pattern returns what notes of one shape have in common: the note of an event of a namespace about an object with
// placeholders for what differs from note to note. It is the same for equal templates and classes of words
// ([PatternOf]).
func Pattern(note, object, namespace []byte) string {
	if len(note) > maxTemplateNote {
		n := maxTemplateNote
		for n > 0 && !utf8.RuneStart(note[n]) {
			n--
		}
		note = note[:n]
	}
	if bytes.IndexByte(note, NoteHole) >= 0 || bytes.IndexByte(note, NoteMark) >= 0 {
		note = bytes.Map(func(r rune) rune {
			if r == NoteHole || r == NoteMark {
				return ' '
			}
			return r
		}, note)
	}
	var s NoteSplitter
	s.split(note, object, namespace, len(note))
	classes := make([]WordClass, len(s.Words))
	for i, word := range s.Words {
		classes[i] = ClassOf(word)
	}
	return PatternOf(s.Template, classes)
}

// PatternOf returns the pattern of notes with a template whose words have some classes. It is cut as dimensions are.
func PatternOf(template []byte, classes []WordClass) string {
	out := make([]byte, 0, len(template)+32)
	for i := 0; i < len(template); {
		from := i
		for i < len(template) && !bytes.ContainsRune(betweenTokens, rune(template[i])) {
			i++
		}
		if token := template[from:i]; len(token) > 0 {
			n := bytes.Count(token, []byte{NoteHole})
			out = appendToken(out, token, classes[:n])
			classes = classes[n:]
		}
		if i < len(template) {
			out = append(out, template[i])
			i++
		}
	}
	return CutDimension(string(out))
}

// betweenTokens are the characters between tokens of a note: what is between two of them gets one placeholder.
var betweenTokens = []byte(" \t\r\n\"'`()[]{}<>,;=|")

// appendToken appends a token of a template with a placeholder for it if it has words that differ.
func appendToken(out, token []byte, classes []WordClass) []byte {
	core := bytes.TrimRight(token, ".:!?")
	if len(classes) == 0 && !isImage(string(core)) {
		return append(out, token...)
	}
	out = append(append(out, '<'), placeholder(string(core), classes)...)
	return append(append(out, '>'), token[len(core):]...)
}

const wordMark = string(rune(NoteHole))

// placeholder names what a token is.
func placeholder(core string, classes []WordClass) string {
	switch {
	case core == wordMark:
		return [...]string{NameWord: "name", NumberWord: "num", HashWord: "hash", UUIDWord: "uuid", DateWord: "time"}[classes[0]]
	case len(classes) > 0 && classes[0] == DateWord && core[0] == NoteHole:
		return "time"
	case strings.Contains(core, "://"):
		return "url"
	case isImage(core):
		return "image"
	}
	if !slices.ContainsFunc(classes, func(c WordClass) bool { return c != NumberWord }) {
		switch shape := strings.ReplaceAll(core, wordMark, "1"); {
		case shape == "1.1.1.1", shape == "1.1.1.1:1", shape == "1.1.1.1/1":
			return "ip"
		case strings.Trim(shape, "1.:+-%/") == "":
			return "num"
		}
	}
	return placeholderOfNames(core, classes)
}

// placeholderOfNames names what a token is that has a word other than numbers, or other characters between them.
func placeholderOfNames(core string, classes []WordClass) string {
	switch {
	case strings.Contains(core, "/"):
		return "path"
	case strings.HasSuffix(core, ":"+wordMark) && classes[len(classes)-1] == NumberWord && strings.Count(core, ":") == 1:
		return "address"
	case strings.HasPrefix(core, wordMark+":") || strings.Contains(core, ":") && strings.Contains(core, "."):
		return "image"
	}
	return "name"
}

// isImage reports whether a token is an image with its registry or digest: with a tag alone it may be something else.
func isImage(core string) bool {
	if at := strings.IndexByte(core, '@'); at > 0 && strings.Contains(core[at:], ":") {
		return true
	}
	slash, tag := strings.IndexByte(core, '/'), strings.LastIndexByte(core, ':')
	return slash > 0 && tag > slash+1 && !strings.Contains(core[tag:], "/") && !strings.Contains(core, "://")
}
