package codec

import (
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
)

// Patch applies a JSON, merge or strategic merge patch to a stored event, as
// the view shows it, and returns the patched event and warnings.
func (c *Codec) Patch(v event.View, patchType types.PatchType, patch []byte, live *eventsv1.Event, validation string) (*eventsv1.Event, []string, error) {
	return nil, nil, nil
}
