package codec

import (
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/store"
)

// Draft makes the stored form of an event. Its resourceVersion is not part of it.
func (c *Codec) Draft(ev *eventsv1.Event) (store.Draft, error) { return store.Draft{}, nil }

// Event decodes a stored event, with its resourceVersion.
func (c *Codec) Event(rec *store.Record) (*eventsv1.Event, error) { return nil, nil }
