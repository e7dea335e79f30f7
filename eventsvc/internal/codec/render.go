package codec

import (
	"bytes"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/codec/wire"
	"tidings.example/eventsvc/internal/event"
)

// versionKey precedes the hole of the resourceVersion in JSON.
const versionKey = `"resourceVersion":"`

// versionHole is the span of the JSON that the resourceVersion replaces. Without a
// revision, as in the answer to a dry run, it is the whole member and a comma.
func (s *stored) versionHole() span {
	if s.revision > 0 {
		return span{s.jsonRV, s.jsonRV}
	}
	hole := span{s.jsonRV - len(versionKey), s.jsonRV + 1}
	if s.json[hole.from-1] == ',' {
		hole.from--
	} else if s.json[hole.to] == ',' {
		hole.to++
	}
	return hole
}

// appendFilled appends a span of the JSON, which must include all holes, and fills
// them in.
func (c *Codec) appendFilled(dst []byte, s *stored, part span) []byte {
	hole := s.versionHole()
	dst = append(dst, s.json[part.from:hole.from]...)
	if s.revision > 0 {
		dst = strconv.AppendUint(dst, s.revision, 10)
	}
	at := hole.to
	for _, e := range s.own {
		dst = append(dst, s.json[at:e.json]...)
		dst = append(dst, c.Group.APIVersion(event.EventsV1)...)
		at = e.json
	}
	return append(dst, s.json[at:part.to]...)
}

// appendMembers appends the JSON of an event without its opening brace, so that
// kind and apiVersion can come in front.
func (c *Codec) appendMembers(dst []byte, s *stored, v event.View) []byte {
	if v == event.EventsV1 {
		return c.appendFilled(dst, s, span{1, len(s.json)})
	}
	for _, member := range coreOrder {
		value := s.values[member]
		if value.len() == 0 && member != memberController && member != memberInstance {
			continue
		}
		dst = append(dst, coreHeads[member]...)
		switch {
		case value.len() == 0: // core/v1 does not omit it
			dst = append(dst, `""`...)
		case member == memberMetadata:
			dst = c.appendFilled(dst, s, value)
		case member == memberSeries:
			dst = appendCoreSeries(dst, s.json[value.from:value.to])
		default:
			dst = append(dst, s.json[value.from:value.to]...)
		}
	}
	return append(dst, '}')
}

// appendCoreSeries leaves a count of zero out.
func appendCoreSeries(dst, series []byte) []byte {
	if rest, ok := bytes.CutPrefix(series, []byte(`{"count":0,`)); ok {
		dst, series = append(dst, '{'), rest
	}
	return append(dst, series...)
}

// appendObjectJSON appends an event with kind and apiVersion.
func (c *Codec) appendObjectJSON(dst []byte, s *stored, v event.View) []byte {
	dst = append(dst, `{"kind":"Event","apiVersion":"`...)
	dst = append(dst, c.Group.APIVersion(v)...)
	dst = append(dst, `",`...)
	return c.appendMembers(dst, s, v)
}

// appendPartialJSON appends the metadata of an event as PartialObjectMetadata.
func (c *Codec) appendPartialJSON(dst []byte, s *stored, version string) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	dst = c.appendFilled(dst, s, s.values[memberMetadata])
	return append(dst, '}')
}

// fieldLen is the length of a field with a small number and n bytes of payload.
func fieldLen(n int) int { return 1 + protowire.SizeBytes(n) }

// appendFieldHead appends tag and length of such a field.
func appendFieldHead(dst []byte, number, n int) []byte {
	return protowire.AppendVarint(append(dst, protoTag(number, protowire.BytesType)), uint64(n))
}

func (s *stored) versionLen() int {
	n := 0
	for rev := s.revision; rev > 0; rev /= 10 {
		n++
	}
	return n
}

func (c *Codec) metaLen(s *stored) int {
	n := len(s.meta) + fieldLen(s.versionLen())
	for _, e := range s.own {
		n += 2 + protowire.SizeVarint(uint64(e.size+len(c.ownField))) + len(c.ownField)
	}
	return n
}

// protoLen is the length of an event in protobuf, the same in both views.
func (c *Codec) protoLen(s *stored) int { return fieldLen(c.metaLen(s)) + len(s.rest) }

// appendMeta appends the metadata as field 1, which they are in events and in
// PartialObjectMetadata.
func (c *Codec) appendMeta(dst []byte, s *stored) []byte {
	dst = appendFieldHead(dst, 1, c.metaLen(s))
	dst = append(dst, s.meta[:s.protoRV]...)
	dst = appendFieldHead(dst, fieldResourceVersion, s.versionLen())
	if s.revision > 0 {
		dst = strconv.AppendUint(dst, s.revision, 10)
	}
	at := s.protoRV
	for _, e := range s.own {
		dst = append(dst, s.meta[at:e.proto]...)
		dst = protowire.AppendTag(dst, fieldManagedFields, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(e.size+len(c.ownField)))
		dst = append(dst, s.meta[e.proto:e.field]...)
		dst = append(dst, c.ownField...)
		at = e.proto + e.size
		dst = append(dst, s.meta[e.field:at]...)
	}
	return append(dst, s.meta[at:]...)
}

// appendProto appends the protobuf of an event, without an envelope.
func (c *Codec) appendProto(dst []byte, s *stored, v event.View) []byte {
	dst = c.appendMeta(dst, s)
	if v == event.EventsV1 {
		return append(dst, s.rest...)
	}
	for i, member := range coreOrder {
		if f := s.fields[member]; f.len() > 0 {
			dst = append(dst, protoTag(i+1, wireType(member)))
			dst = append(dst, s.rest[f.from:f.to]...)
		}
	}
	return dst
}

// envelopeTail are the content encoding and type of the envelope, both empty.
const envelopeTail = "\x1a\x00\x22\x00"

// appendEnvelope appends the head of an envelope around n bytes. The caller appends
// these and envelopeTail.
func appendEnvelope(dst []byte, apiVersion, kind string, n int) []byte {
	dst = append(dst, wire.Magic...)
	dst = appendFieldHead(dst, 1, fieldLen(len(apiVersion))+fieldLen(len(kind)))
	dst = append(appendFieldHead(dst, 1, len(apiVersion)), apiVersion...)
	dst = append(appendFieldHead(dst, 2, len(kind)), kind...)
	return appendFieldHead(dst, 2, n)
}
