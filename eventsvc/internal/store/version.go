package store

import "sync/atomic"

// encodingSlots is how many encoded forms a version can remember.
const encodingSlots = 8

// Version is a record that watchers share. It remembers the forms in which it was sent, so
// that each is encoded once, however many watchers there are.
type Version struct {
	Record
	forms [encodingSlots]atomic.Pointer[[]byte]
}

// Form returns the encoded form of a slot. The first call for a slot encodes it; callers
// at the same time may all encode it, and get the same result. The caller assigns the
// slots, one for each API version and wire format. The bytes must not be changed.
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
