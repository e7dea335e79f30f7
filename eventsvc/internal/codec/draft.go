package codec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// placeholder stands in JSON where a hole will be: one byte, never escaped.
const placeholder = "0"

// drafting is an event on its way into the stored form.
type drafting struct {
	stored
	isOwn []bool // which managed fields entries are of our own group
}

// Draft makes the stored form of an event. Its resourceVersion is not part of
// it.
func (c *Codec) Draft(ev *eventsv1.Event) (store.Draft, error) {
	var d drafting
	plain := *ev
	plain.TypeMeta = metav1.TypeMeta{}
	plain.ResourceVersion = placeholder
	d.maskOwn(&plain, c.groupVersion)
	text, err := json.Marshal(&plain)
	if err != nil {
		return store.Draft{}, fmt.Errorf("encode event as JSON: %w", err)
	}
	plain.ResourceVersion = ""
	wire, err := plain.Marshal()
	if err != nil {
		return store.Draft{}, fmt.Errorf("encode event as protobuf: %w", err)
	}
	d.cutJSON(text)
	d.cutProto(wire)
	return store.Draft{Attributes: event.Attributes(ev), Value: d.append(nil)}, nil
}

// maskOwn blanks the apiVersion of the managed fields entries that came through
// our own group.
func (d *drafting) maskOwn(ev *eventsv1.Event, groupVersion string) {
	ours := func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == groupVersion }
	if !slices.ContainsFunc(ev.ManagedFields, ours) {
		return
	}
	ev.ManagedFields = slices.Clone(ev.ManagedFields)
	d.isOwn = make([]bool, len(ev.ManagedFields))
	for i := range ev.ManagedFields {
		if d.isOwn[i] = ours(ev.ManagedFields[i]); d.isOwn[i] {
			ev.ManagedFields[i].APIVersion = placeholder
			d.own = append(d.own, ownEntry{})
		}
	}
}

// cutJSON finds the members and the holes in the JSON of an event and takes the
// placeholders out.
func (d *drafting) cutJSON(text []byte) {
	var holes []int
	member := 0
	eachMember(text, 0, func(name string, value span) {
		for memberNames[member] != name {
			member++
		}
		d.values[member] = value
	})
	eachMember(text, d.values[memberMetadata].from, func(name string, value span) {
		switch name {
		case "resourceVersion":
			holes = append(holes, value.from+1)
		case "managedFields":
			holes = append(holes, d.ownPlaces(text, value.from)...)
		}
	})
	d.json = make([]byte, 0, len(text))
	from := 0
	for _, hole := range holes {
		d.json = append(d.json, text[from:hole]...)
		from = hole + len(placeholder)
	}
	d.json = append(d.json, text[from:]...)
	d.jsonRV = holes[0]
	for i := range d.own {
		d.own[i].json = holes[i+1] - (i+1)*len(placeholder)
	}
	d.values[memberMetadata].to -= len(holes) * len(placeholder)
}

// ownPlaces finds where our own entries have their apiVersion.
func (d *drafting) ownPlaces(text []byte, array int) []int {
	var places []int
	i := 0
	eachElement(text, array, func(entry span) {
		if i < len(d.isOwn) && d.isOwn[i] {
			eachMember(text, entry.from, func(name string, value span) {
				if name == "apiVersion" {
					places = append(places, value.from+1)
				}
			})
		}
		i++
	})
	return places
}

// Field numbers of ObjectMeta and ManagedFieldsEntry.
const (
	fieldResourceVersion = 6
	fieldManagedFields   = 17
	fieldAPIVersion      = 3
)

// cutProto finds the fields and the holes in the protobuf of an event.
func (d *drafting) cutProto(wire []byte) {
	meta, rest := nextField(wire)
	d.rest = rest
	for b := rest; len(b) > 0; {
		f, after := nextField(b)
		from := len(rest) - len(b) + 1
		d.fields[f.number-1] = span{from, len(rest) - len(after)}
		b = after
	}
	d.meta = make([]byte, 0, len(meta.payload))
	entry, own := 0, 0
	for b := meta.payload; len(b) > 0; {
		f, after := nextField(b)
		switch {
		case f.number == fieldResourceVersion:
			d.protoRV = len(d.meta)
		case f.number == fieldManagedFields && entry < len(d.isOwn) && d.isOwn[entry]:
			d.cutEntry(&d.own[own], f.payload)
			own++
		default:
			d.meta = append(d.meta, b[:len(b)-len(after)]...)
		}
		if f.number == fieldManagedFields {
			entry++
		}
		b = after
	}
}

// cutEntry takes the head and the apiVersion out of a managed fields entry.
func (d *drafting) cutEntry(e *ownEntry, entry []byte) {
	e.proto = len(d.meta)
	for b := entry; len(b) > 0; {
		f, after := nextField(b)
		if f.number == fieldAPIVersion {
			e.field = len(d.meta)
		} else {
			d.meta = append(d.meta, b[:len(b)-len(after)]...)
		}
		b = after
	}
	e.size = len(d.meta) - e.proto
}

// append writes the value that parseValue reads.
func (d *drafting) append(dst []byte) []byte {
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
