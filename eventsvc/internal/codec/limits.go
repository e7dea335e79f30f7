package codec

import (
	"bytes"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/event"
)

// Limits bound what it may cost to decode what a client sends.
type Limits struct {
	Depth           int // of objects and lists in each other
	PatchOperations int // in a JSON patch
}

// DefaultLimits are far above what clients send. That of operations is the
// original's.
var DefaultLimits = Limits{Depth: 100, PatchOperations: 10000}

// checkDepth refuses JSON whose objects and lists are nested too deeply, before
// anything is made of it. Text with few brackets is not looked at again.
func (c *Codec) checkDepth(text []byte) error {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= c.Limits.Depth {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > c.Limits.Depth {
				return &event.LimitError{StatusError: apierrors.NewBadRequest(fmt.Sprintf(
					"the body has objects and lists that are nested deeper than %d", c.Limits.Depth)), Limit: "depth"}
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}
