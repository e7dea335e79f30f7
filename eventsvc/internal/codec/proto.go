package codec

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
)

// coreOrder are the members in the order of the protobuf fields of core/v1.
var coreOrder = [numMembers]int{memberMetadata, 7, 6, 9, 11, 12, 13, memberCount, 10, 1, memberSeries, 5, 8, memberController, memberInstance}

// protoTag is a field number and a wire type. Every number that is needed here,
// but for the managed fields, fits in one byte.
func protoTag(field int, kind protowire.Type) byte { return byte(field)<<3 | byte(kind) }

// fieldLen is the length of a field with a small number and n bytes of payload.
func fieldLen(n int) int { return 1 + protowire.SizeBytes(n) }

// appendFieldHead appends tag and length of such a field.
func appendFieldHead(dst []byte, number, n int) []byte {
	return protowire.AppendVarint(append(dst, protoTag(number, protowire.BytesType)), uint64(n))
}

// meta returns the metadata as they are sent: with the resourceVersion, and the group of this
// service in own managed fields.
func (c *Codec) meta(s *stored) []byte {
	if len(s.filled) > 0 {
		return s.filled
	}
	dst, from := s.filled, s.fields[memberMetadata] // from: what is not copied yet
	for b := from; len(b) > 0; {
		number, payload, after, ok := nextField(b)
		if !ok {
			s.damaged = true
			break
		}
		if number == fieldResourceVersion || number == fieldManagedFields {
			dst = append(dst, from[:len(from)-len(b)]...)
			from = after
		}
		switch number {
		case fieldResourceVersion:
			var digits [20]byte
			version := digits[:0]
			if s.revision > 0 {
				version = strconv.AppendUint(version, s.revision, 10)
			}
			dst = append(appendFieldHead(dst, number, len(version)), version...)
		case fieldManagedFields:
			dst = c.appendManaged(dst, payload)
		}
		b = after
	}
	s.filled = append(dst, from...)
	return s.filled
}

// appendManaged appends an entry of the managed fields, and fills the group of this service in.
func (c *Codec) appendManaged(dst, entry []byte) []byte {
	before, after, group := entry, []byte(nil), 0 // group: bytes of the field that is filled in
	for b := entry; len(b) > 0; {
		number, payload, next, ok := nextField(b)
		if !ok || number > fieldAPIVersion {
			break
		}
		if number == fieldAPIVersion && string(payload) == ownGroup {
			group = fieldLen(len(c.ownGroup))
			before, after = entry[:len(entry)-len(b)], next
			break
		}
		b = next
	}
	dst = protowire.AppendTag(dst, fieldManagedFields, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(before)+group+len(after)))
	dst = append(dst, before...)
	if group > 0 {
		dst = append(appendFieldHead(dst, fieldAPIVersion, len(c.ownGroup)), c.ownGroup...)
	}
	return append(dst, after...)
}

// protoLen is the length of an event in protobuf, the same in both views.
func (c *Codec) protoLen(s *stored) int { return fieldLen(len(c.meta(s))) + len(s.rest) }

// appendMeta appends the metadata as field 1, which they are in events and in
// PartialObjectMetadata.
func (c *Codec) appendMeta(dst []byte, s *stored) []byte {
	meta := c.meta(s)
	return append(appendFieldHead(dst, 1, len(meta)), meta...)
}

// appendProto appends the protobuf of an event, without an envelope.
func (c *Codec) appendProto(dst []byte, s *stored, v event.View) []byte {
	dst = c.appendMeta(dst, s)
	if v == event.EventsV1 {
		return append(dst, s.rest...)
	}
	for i, member := range coreOrder {
		payload := s.fields[member]
		switch {
		case i == 0 || payload == nil:
			continue
		case member == memberCount:
			dst = append(dst, protoTag(i+1, protowire.VarintType))
		default:
			dst = appendFieldHead(dst, i+1, len(payload))
		}
		dst = append(dst, payload...)
	}
	return dst
}

// envelopeTail are the content encoding and type of the envelope, both empty.
const envelopeTail = "\x1a\x00\x22\x00"

// appendEnvelope appends the head of an envelope around n bytes. The caller appends
// these and envelopeTail.
func appendEnvelope(dst []byte, apiVersion, kind string, n int) []byte {
	dst = append(dst, request.Magic...)
	dst = appendFieldHead(dst, 1, fieldLen(len(apiVersion))+fieldLen(len(kind)))
	dst = append(appendFieldHead(dst, 1, len(apiVersion)), apiVersion...)
	dst = append(appendFieldHead(dst, 2, len(kind)), kind...)
	return appendFieldHead(dst, 2, n)
}
