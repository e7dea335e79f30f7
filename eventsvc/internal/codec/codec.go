package codec

import (
	"encoding/binary"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
)

// Codec knows the wire formats of both views. It is safe for concurrent use.
type Codec struct {
	event.Group

	// Now is the clock that the ages in tables count from, time.Now at first.
	Now func() time.Time
	// Limits are [DefaultLimits] at first.
	Limits Limits
	// Fields keeps the managed fields of events of the same group.
	Fields *fields.Tracker

	ownField []byte    // protobuf field of a managed fields entry that is of our group
	drafts   sync.Pool // *drafting
	framings sync.Pool // *framing
}

// New returns the codec of the group events.{groupDomain}.
func New(groupDomain string) (*Codec, error) {
	group, err := event.NewGroup(groupDomain)
	if err != nil {
		return nil, err
	}
	c := &Codec{Group: group, Now: time.Now, Limits: DefaultLimits}
	own := group.APIVersion(event.EventsV1)
	c.ownField = binary.AppendUvarint([]byte{protoTag(fieldAPIVersion, wireBytes)}, uint64(len(own)))
	c.ownField = append(c.ownField, own...)
	c.Fields, err = fields.New(group, c.models)
	return c, err
}
