package columns

import "encoding/hex"

// What the encoding of a UID begins with.
const (
	uidText   = 0 // its text
	uidBinary = 1 // 16 bytes, of which the text is usual
)

// appendUID appends a UID.
func appendUID(dst, uid []byte) []byte {
	if len(uid) == 36 && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' && uid[23] == '-' {
		var digits [32]byte
		n := copy(digits[:], uid[:8])
		n += copy(digits[n:], uid[9:13])
		n += copy(digits[n:], uid[14:18])
		n += copy(digits[n:], uid[19:23])
		copy(digits[n:], uid[24:])
		var raw [16]byte
		if _, err := hex.Decode(raw[:], digits[:]); err == nil && string(uidOf(append([]byte{uidBinary}, raw[:]...))) == string(uid) {
			return append(append(dst, uidBinary), raw[:]...)
		}
	}
	return append(append(dst, uidText), uid...)
}

// uidOf returns the UID of an encoding, nothing if that makes no sense.
func uidOf(b []byte) []byte {
	switch {
	case len(b) > 0 && b[0] == uidText:
		return b[1:]
	case len(b) != 17 || b[0] != uidBinary:
		return nil
	}
	return uuidOf(b[1:])
}

// uuidOf returns 16 bytes as a text, nothing if they are not so many.
func uuidOf(b []byte) []byte {
	if len(b) != 16 {
		return nil
	}
	text := make([]byte, 0, 36)
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			text = append(text, '-')
		}
		from := []int{0, 4, 6, 8, 10}[i]
		text = hex.AppendEncode(text, b[from:end])
	}
	return text
}
