package codec

import (
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// encoder makes stored forms, and frames of them. It is reused for its memory.
type encoder struct {
	stored        // what is made
	buf    []byte // protobuf, or the object of a frame
	parsed stored // what a frame is made of
}

func (c *Codec) newEncoder() *encoder {
	d, ok := c.encoders.Get().(*encoder)
	if !ok {
		d = new(encoder)
	}
	*d = encoder{
		stored: stored{json: d.json[:0], meta: d.meta[:0], own: d.own[:0]}, buf: d.buf[:0],
		parsed: stored{own: d.parsed.own[:0]},
	}
	return d
}

func (c *Codec) putEncoder(d *encoder) {
	const kept = 64 << 10
	d.parsed = stored{own: d.parsed.own[:0]} // without references to the record
	if cap(d.json)+cap(d.buf) <= kept {
		c.encoders.Put(d)
	}
}

// Draft makes the stored form of an event, without its resourceVersion.
func (c *Codec) Draft(ev *eventsv1.Event) (store.Draft, error) {
	d := c.newEncoder()
	defer c.putEncoder(d)
	own := c.Group.APIVersion(event.EventsV1)
	if err := d.encodeJSON(ev, own); err != nil {
		return store.Draft{}, fmt.Errorf("encode event as JSON: %w", err)
	}
	size := ev.Size()
	d.buf = slices.Grow(d.buf, size)[:size]
	if _, err := ev.MarshalToSizedBuffer(d.buf); err != nil {
		return store.Draft{}, fmt.Errorf("encode event as protobuf: %w", err)
	}
	d.cutProto(d.buf, ev.ManagedFields, own)
	return store.Draft{Attributes: event.AttributesOf(ev), Value: d.append(nil)}, nil
}

// Field numbers of ObjectMeta and ManagedFieldsEntry.
const (
	fieldResourceVersion = 6
	fieldManagedFields   = 17
	fieldAPIVersion      = 3
)

// cutProto finds the fields and the holes in the protobuf of an event. Own is the
// apiVersion of own entries.
func (d *encoder) cutProto(wire []byte, managed []metav1.ManagedFieldsEntry, own string) {
	_, meta, rest := nextField(wire)
	d.rest = rest
	for b := rest; len(b) > 0; {
		number, _, after := nextField(b)
		from := len(rest) - len(b) + 1
		d.fields[number-1] = span{from, len(rest) - len(after)}
		b = after
	}
	d.meta = slices.Grow(d.meta[:0], len(meta))
	cut := 0 // own entries
	for b := meta; len(b) > 0; {
		number, entry, after := nextField(b)
		switch {
		case number == fieldResourceVersion:
			d.protoRV = len(d.meta)
		case number == fieldManagedFields && managed[0].APIVersion == own:
			d.cutEntry(&d.own[cut], entry)
			cut++
		default:
			d.meta = append(d.meta, b[:len(b)-len(after)]...)
		}
		if number == fieldManagedFields {
			managed = managed[1:]
		}
		b = after
	}
}

// cutEntry takes the head and the apiVersion out of a managed fields entry.
func (d *encoder) cutEntry(e *ownEntry, entry []byte) {
	e.proto = len(d.meta)
	for b := entry; len(b) > 0; {
		number, _, after := nextField(b)
		if number == fieldAPIVersion {
			e.field = len(d.meta)
		} else {
			d.meta = append(d.meta, b[:len(b)-len(after)]...)
		}
		b = after
	}
	e.size = len(d.meta) - e.proto
}

// append writes the value that parse reads.
func (d *encoder) append(dst []byte) []byte {
	dst = slices.Grow(dst, len(d.json)+len(d.meta)+len(d.rest)+80+8*len(d.own))
	num := func(n int) { dst = binary.AppendUvarint(dst, uint64(n)) }
	dst = append(dst, storedFormat)
	num(len(d.json))
	num(len(d.meta))
	num(len(d.rest))
	num(d.jsonRV)
	num(d.protoRV)
	num(len(d.own))
	json, proto := d.jsonRV, d.protoRV
	for _, e := range d.own {
		num(e.json - json)
		num(e.proto - proto)
		num(e.size)
		num(e.field - e.proto)
		json, proto = e.json, e.proto+e.size
	}
	for _, v := range d.values {
		num(v.len())
	}
	for _, f := range d.fields[memberMetadata+1:] {
		num(f.len())
	}
	dst = append(dst, d.json...)
	dst = append(dst, d.meta...)
	return append(dst, d.rest...)
}

// nextField reads the first field of a message. The payload of a varint is empty.
// The message must be valid, as it has just been encoded.
func nextField(b []byte) (number protowire.Number, payload, after []byte) {
	number, kind, n := protowire.ConsumeTag(b)
	if kind == protowire.BytesType {
		payload, _ = protowire.ConsumeBytes(b[n:])
	}
	return number, payload, b[n+protowire.ConsumeFieldValue(number, kind, b[n:]):]
}
