package store

import "sync/atomic"

// EncodingSlots is how many encoded forms a version can remember.
const EncodingSlots = 8

// Version is a record as the watch hub shares it: it remembers the forms in
// which it was sent, so that each is made once however many watchers there are.
type Version struct {
	Record
	forms [EncodingSlots]atomic.Pointer[[]byte]
}

// Form returns the encoded form of a slot, making it if need be. Slots are the
// caller's: one for each view and wire format. Two callers who race may both
// make it; one result is kept. The bytes must not be changed.
func (v *Version) Form(slot int, encode func(*View) ([]byte, error)) ([]byte, error) {
	if p := v.forms[slot].Load(); p != nil {
		return *p, nil
	}
	b, err := encode(v.View())
	if err != nil {
		return nil, err
	}
	v.forms[slot].CompareAndSwap(nil, &b)
	return *v.forms[slot].Load(), nil
}
