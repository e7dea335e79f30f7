package codec

import (
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
)

// TrackUpdate records in the managed fields of next what manager changed. Live
// is nil when next is new.
func (c *Codec) TrackUpdate(v event.View, live, next *eventsv1.Event, manager string) error {
	return nil
}

// Apply merges an apply patch of manager into the stored event; live is nil
// when there is none.
func (c *Codec) Apply(v event.View, live *eventsv1.Event, patch []byte, manager string, force bool, validation string) (*eventsv1.Event, []string, error) {
	return nil, nil, nil
}

// SameObject tells whether two events are equal but for their resourceVersion
// and the times of their managed fields: then a write changes nothing.
func (c *Codec) SameObject(a, b *eventsv1.Event) bool { return false }
