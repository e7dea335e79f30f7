package codec

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// appendSet appends a set of fields as encoding/json does, which it calls only if
// the set has to be checked or rewritten.
func appendSet(dst []byte, set *metav1.FieldsV1) ([]byte, error) {
	if isPlainSet(set.Raw) {
		return append(dst, set.Raw...), nil
	}
	text, err := json.Marshal(set)
	return append(dst, text...), err
}

// maxSetDepth is more than the nesting of an event's fields.
const maxSetDepth = 8

// isPlainSet tells whether encoding/json would leave a set as it is: objects within
// objects, without blanks and without keys that have to be escaped.
func isPlainSet(b []byte) bool {
	last := byte(0) // bracket
	for depth := 0; len(b) > 0; {
		if b[0] == '}' && depth > 0 {
			b, last = b[1:], '}'
			if depth--; depth == 0 {
				return len(b) == 0
			}
			continue
		}
		if last == '}' {
			if b[0] != ',' {
				return false
			}
			b = b[1:]
		}
		if last != 0 {
			b = afterKey(b)
		}
		if depth++; len(b) == 0 || b[0] != '{' || depth > maxSetDepth {
			return false
		}
		b, last = b[1:], '{'
	}
	return false
}

// afterKey returns the bytes after a leading key and colon, and nil if there is no
// such key.
func afterKey(b []byte) []byte {
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	n := 1
	for n < len(b) && isPlainByte(b[n]) {
		n++
	}
	if !bytes.HasPrefix(b[n:], []byte(`":`)) {
		return nil
	}
	return b[n+2:]
}
