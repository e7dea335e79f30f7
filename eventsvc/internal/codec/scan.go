package codec

import (
	"bytes"
	"encoding/binary"
)

// The scanners here read what the encoders have just made, so they look for
// structure only and expect it to be right.

// eachMember visits the members of the JSON object at a place, without spaces.
func eachMember(text []byte, at int, visit func(name string, value span)) {
	for at++; text[at] != '}'; {
		if text[at] == ',' {
			at++
		}
		name := span{at + 1, skipString(text, at) - 1}
		value := span{name.to + 2, skipValue(text, name.to+2)}
		visit(string(text[name.from:name.to]), value)
		at = value.to
	}
}

// eachElement visits the elements of the JSON array at a place.
func eachElement(text []byte, at int, visit func(value span)) {
	for at++; text[at] != ']'; {
		if text[at] == ',' {
			at++
		}
		value := span{at, skipValue(text, at)}
		visit(value)
		at = value.to
	}
}

// skipString returns the place behind the string at a place.
func skipString(text []byte, at int) int {
	for at++; ; {
		end := at + bytes.IndexByte(text[at:], '"')
		escape := bytes.IndexByte(text[at:end], '\\')
		if escape < 0 {
			return end + 1
		}
		at += escape + 2
	}
}

// skipValue returns the place behind the value at a place.
func skipValue(text []byte, at int) int {
	depth := 0
	for {
		switch text[at] {
		case '"':
			at = skipString(text, at)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
		at++
	}
}

// protoField is one field of a protobuf message. The payload of a varint is empty.
type protoField struct {
	number  int
	payload []byte
}

// nextField reads the first field of a message and returns what follows it.
func nextField(b []byte) (protoField, []byte) {
	tag, n := binary.Uvarint(b)
	v, m := binary.Uvarint(b[n:])
	f := protoField{number: int(tag >> 3)}
	end := n + m
	if tag&7 == wireBytes {
		f.payload = b[end : end+int(v)]
		end += int(v)
	}
	return f, b[end:]
}
