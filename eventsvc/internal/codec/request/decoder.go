package request

import (
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
)

// Decoder reads the bodies of requests in both views.
type Decoder struct {
	Group event.Group

	// Limits are [DefaultLimits] at first.
	Limits Limits
	// Fields keeps the managed fields of the same group.
	Fields *fields.Tracker
}

// New returns the decoder of a group.
func New(group event.Group, tracker *fields.Tracker) *Decoder {
	return &Decoder{Group: group, Limits: DefaultLimits, Fields: tracker}
}
