package event

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// Fold appends a text with each character replaced by the smallest one that differs from it only
// in case (Unicode simple case folding). So texts that differ in nothing else are the same bytes.
// Two texts that are folded apart are the same as if they were folded together, unless a
// character is cut.
func Fold(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if i := foldASCII(dst[from:]); i < len(text) {
		dst = foldUnicode(dst[:from+i], text[i:])
	}
	return dst
}

// smallest returns the smallest of the characters that differ from r only in case.
func smallest(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// foldASCII replaces lower case letters by upper case ones, which are the smallest, up to a
// byte that is no ASCII. It returns how many bytes it has been through.
func foldASCII(b []byte) int {
	const each = 0x0101010101010101 // of eight bytes
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if x&(0x80*each) != 0 {
			break
		}
		// The highest bit of each byte is free: the sums set it from 'a' on, and behind 'z'.
		lower := (x + (0x80-'a')*each) ^ (x + (0x7f-'z')*each)
		binary.LittleEndian.PutUint64(b[i:], x-lower&(0x80*each)>>2)
	}
	for ; i < len(b) && b[i] < utf8.RuneSelf; i++ {
		if 'a' <= b[i] && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return i
}

// foldUnicode is Fold for any text.
func foldUnicode(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case 'a' <= r && r <= 'z':
			r -= 'a' - 'A'
		case r >= utf8.RuneSelf:
			r = smallest(r)
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}
