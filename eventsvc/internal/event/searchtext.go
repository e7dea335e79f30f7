package event

import "bytes"

// AppendText appends the text in which words are searched: the note and, each behind a NUL, the reason, the name of the
// object and the node. In these a NUL is a blank.
func AppendText(dst, note []byte, a Attributes) []byte {
	dst = append(dst, note...)
	var reason, name, node []byte
	for f, text := range a.Fields() {
		switch f {
		case Reason:
			reason = text
		case RegardingName:
			name = text
		case Node:
			node = text
		}
	}
	if label := a.Get(NodeLabel); label != "" {
		node = []byte(label)
	}
	for _, part := range [textParts][]byte{reason, name, node} {
		dst = append(dst, 0)
		if bytes.IndexByte(part, 0) >= 0 {
			part = bytes.ReplaceAll(part, []byte{0}, []byte{' '})
		}
		dst = append(dst, part...)
	}
	return dst
}

// textParts is how many parts are behind the note.
const textParts = 3

// CutNote splits a text of [AppendText] into the note and the rest.
func CutNote(text []byte) (note, rest []byte) {
	at := len(text)
	for range textParts {
		at = max(0, bytes.LastIndexByte(text[:at], 0))
	}
	return text[:at], text[at:]
}
