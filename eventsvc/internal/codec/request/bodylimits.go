package request

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/event"
)

// Limits of the cost of decoding a body. Bodies of clients stay far below them.
const (
	maxDepth           = 100   // levels of nested objects and lists
	maxValues          = 50000 // values of a body
	maxPatchOperations = 10000 // operations of a JSON patch, as in kube-apiserver; they stay within maxValues
)

func tooDeep() error {
	return &event.LimitError{StatusError: apierrors.NewBadRequest(fmt.Sprintf(
		"the body has objects and lists that are nested deeper than %d", maxDepth)), Limit: "depth"}
}

func tooMany() error {
	return &event.LimitError{StatusError: apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"the body has more than %d values", maxValues)), Limit: "values"}
}

// checkShape refuses JSON that is nested too deeply or has too many values, before
// it is decoded: a value of two bytes may take hundreds in memory. It counts
// brackets and commas first, and looks for strings only if there are too many.
func checkShape(text []byte) error {
	var p pieces
	brackets, commas := 0, 0
	for i := 0; i < len(text) && brackets <= maxDepth && brackets+commas <= maxValues; i += piece {
		p.reach(i)
		part := text[i:min(i+piece, len(text))]
		brackets += bytes.Count(part, []byte("{")) + bytes.Count(part, []byte("["))
		commas += bytes.Count(part, []byte(","))
	}
	if brackets <= maxDepth && brackets+commas <= maxValues {
		return nil
	}
	p = pieces{}
	depth, values := 0, 0
	for i := 0; i < len(text); i++ {
		p.reach(i)
		switch text[i] {
		case '"':
			i = endOfString(text, i+1)
		case '{', '[':
			if depth++; depth > maxDepth {
				return tooDeep()
			}
			values++
		case ',':
			values++
		case '}', ']':
			depth--
		}
		if values > maxValues {
			return tooMany()
		}
	}
	return nil
}

// checkYAML refuses YAML with too many values before it is decoded. Every value
// has a line, a comma or a bracket of its own, or is nested, and the library bounds
// nesting. Aliases do not show in the text; checkShape counts them afterwards, in
// the JSON.
func checkYAML(text []byte) error {
	if len(text) <= maxValues {
		return nil
	}
	values := 0
	for _, mark := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ",", "[", "{"} {
		if values += bytes.Count(text, []byte(mark)); values > maxValues {
			return tooMany()
		}
	}
	return nil
}

// checkFields refuses a protobuf message with too many fields in itself and in
// its fields 1 and 2, which are metadata and spec in every object.
func checkFields(message []byte) error {
	if len(message) > maxValues && countFields(message, 1) > maxValues { // no message has more fields than bytes
		return tooMany()
	}
	return nil
}

// countFields counts the fields of a message.
func countFields(b []byte, inner int) (n int) {
	eachField(b, func(number protowire.Number, kind protowire.Type, value []byte) {
		if inner > 0 && number <= 2 && kind == protowire.BytesType {
			payload, _ := protowire.ConsumeBytes(value)
			n += countFields(payload, inner-1)
		}
		n++
	})
	return n
}

// eachField calls visit with the fields of a message up to the first invalid one, and reports whether all are valid.
func eachField(b []byte, visit func(number protowire.Number, kind protowire.Type, value []byte)) (valid bool) {
	for len(b) > 0 {
		number, kind, head := protowire.ConsumeTag(b)
		if head < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(number, kind, b[head:])
		if size < 0 {
			break
		}
		visit(number, kind, b[head:head+size])
		b = b[head+size:]
	}
	return len(b) == 0
}

// checkCounts refuses a valid protobuf message of an event whose counts do not fit 32 bits.
// The generated code cuts them, as protobuf allows.
func checkCounts(message []byte, obj Object) (err error) {
	var count, series protowire.Number // of the fields
	switch obj.(type) {
	case *corev1.Event:
		count, series = 8, 11
	case *eventsv1.Event:
		count, series = 15, 3
	}
	check := func(kind protowire.Type, value []byte, name string) {
		if n, _ := protowire.ConsumeVarint(value); kind == protowire.VarintType && int64(n) != int64(int32(n)) {
			err = fmt.Errorf("%s is %d, which does not fit 32 bits", name, int64(n))
		}
	}
	eachField(message, func(number protowire.Number, kind protowire.Type, value []byte) {
		switch {
		case number == count:
			check(kind, value, "count")
		case number == series && kind == protowire.BytesType:
			payload, _ := protowire.ConsumeBytes(value)
			eachField(payload, func(number protowire.Number, kind protowire.Type, value []byte) {
				if number == 1 {
					check(kind, value, "series.count")
				}
			})
		}
	})
	return err
}
