package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/store"
)

// Note returns the note of a stored event. It shares memory with the event, and is read
// without decoding anything else, so that a search through all notes is cheap.
func Note(rec *store.View) ([]byte, error) {
	note, err := noteOf(rec.Value)
	return note, corrupt(rec, err)
}

func noteOf(value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] != storedFormat {
		return nil, errFormat
	}
	limit := len(value)
	h := header{b: value[1:]}
	h.next(limit) // JSON
	h.next(limit) // metadata
	rest := h.next(limit)
	h.next(limit) // the holes of the revision
	h.next(limit)
	for n := h.next(limit); n > 0 && h.err == nil; n-- { // own entries
		for range 4 {
			h.next(limit)
		}
	}
	for range numMembers { // of the JSON
		h.next(limit)
	}
	from, size := 0, 0
	for range memberNote - memberMetadata {
		from += size
		if size = h.next(rest); size > 0 {
			size++ // its tag
		}
	}
	switch {
	case h.err != nil:
		return nil, errHeader
	case size == 0:
		return nil, nil
	case rest > len(h.b) || from+size > rest:
		return nil, errTruncated
	}
	field := value[limit-rest:][from+1 : from+size]
	note, n := protowire.ConsumeBytes(field)
	if n != len(field) {
		return nil, errProto
	}
	return note, nil
}
