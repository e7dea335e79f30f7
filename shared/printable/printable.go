// Package printable makes text from elsewhere harmless for a terminal: the text of an event, of a server, of a token
// endpoint. With control and formatting characters, its author could move the cursor, colour the screen or reverse the
// text.
package printable

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// OneLine returns text as one line without control and formatting characters.
func OneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return harmless(r)
	}, text))
}

// Lines returns text without control and formatting characters except line feeds. It is for text of this program that
// may have some from elsewhere in it, such as an error.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return harmless(r)
	}, text)
}

func harmless(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// JSON returns the same JSON with control and formatting characters as escapes (RFC 8259 section 7).
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, escaped) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !escaped(r):
			out = append(out, text[:size]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// escaped reports whether JSON escapes a character. Control characters below the space can only be between its values.
func escaped(r rune) bool { return r > 0x7e && (r == utf8.RuneError || !unicode.IsPrint(r)) }
