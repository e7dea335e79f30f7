package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The sizes of answers in bytes, and of notes in characters.
const (
	usualBytes, fullBytes = 8_000, 32_000
	usualNote, fullNote   = 200, 2_000
	maxName               = 253 // characters of a name: as many as Kubernetes lets it have
)

// token writes a name on one line: as it is if it is plain, else as a JSON string. An empty one is -.
func token(name string) string {
	switch {
	case name == "":
		return "-"
	case plain(name):
		return name
	}
	return quote(name, maxName)
}

// plain reports whether a name has only characters that separate nothing in an answer, and is not too long.
func plain(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// quote writes a text as a JSON string of characters that are seen and are where they seem to be. Of a text with more
// than most characters, or whose escapes take three times as many bytes, it writes the beginning, and how much is left
// out.
func quote(text string, most int) string {
	b := make([]byte, 0, min(len(text), most)+16)
	b = append(b, '"')
	for n := 0; text != ""; n++ {
		if n == most || len(b) >= 3*most {
			return fmt.Sprintf(`%s…" +%d characters`, b, utf8.RuneCountInString(text))
		}
		r, size := utf8.DecodeRuneInString(text)
		b = appendRune(b, r)
		text = text[size:]
	}
	return string(append(b, '"'))
}

func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, `\n`...)
	case r == '\t':
		return append(b, `\t`...)
	case !hidden(r):
		return utf8.AppendRune(b, r)
	case r > 0xFFFF:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// hidden reports whether a character is not seen: control and format characters (the marks of direction and characters
// without width among them), blanks other than the space, selectors of variations, private and unassigned ones, and
// what stands for bytes that are no UTF-8.
func hidden(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// shown is a text of a caller in an error.
func shown(text string) string { return quote(text, 100) }

// page is a text that grows by whole lines, up to a size.
type page struct {
	b    strings.Builder
	most int
}

// add adds a line, unless it is empty or does not fit.
func (p *page) add(line string) {
	if line != "" && len(line) < p.left() {
		p.b.WriteString(line)
		p.b.WriteByte('\n')
	}
}

// left is how many bytes fit.
func (p *page) left() int { return p.most - p.b.Len() }

// String returns the text without the last end of a line.
func (p *page) String() string { return strings.TrimSuffix(p.b.String(), "\n") }
