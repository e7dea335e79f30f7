package codec

import (
	"sync"
	"time"

	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
)

// Codec knows the wire formats of both views. Its Decoder reads requests. It
// writes answers and the stored form itself. It is safe for concurrent use.
type Codec struct {
	Group   event.Group
	Decoder *request.Decoder // of the same group

	// Now is the clock that the ages in tables count from, time.Now at first.
	Now func() time.Time

	ownGroup []byte    // apiVersion of the events that this service serves
	encoders sync.Pool // *encoder
}

// New returns the codec of the group events.{groupDomain}.
func New(groupDomain string) (*Codec, error) {
	group, err := event.NewGroup(groupDomain)
	if err != nil {
		return nil, err
	}
	tracker, err := fields.New(group, models)
	if err != nil {
		return nil, err
	}
	return &Codec{
		Group: group, Decoder: request.New(group, tracker), Now: time.Now,
		ownGroup: []byte(group.APIVersion(event.EventsV1)),
	}, nil
}

// The formats of answers. The bodies of requests have the same.
const (
	JSON     = request.JSON
	YAML     = request.YAML
	Protobuf = request.Protobuf
)
