package codec

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

const storedFormat = 1

// stored is a parsed value. It is reused from one value to the next.
type stored struct {
	revision uint64
	json     []byte
	meta     []byte // protobuf of the metadata
	rest     []byte // protobuf of all other fields

	jsonRV  int // position of the resourceVersion in json
	protoRV int // position of field 6 in meta
	own     []ownEntry

	values [numMembers]span // in json
	fields [numMembers]span // in rest, without tag; that of metadata is empty
}

type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// ownEntry is a managed fields entry whose apiVersion is the group of this
// service, which is not stored.
type ownEntry struct {
	json  int // position of the apiVersion in json
	proto int // position of the entry in meta; tag and length are not stored
	size  int // of the entry without its apiVersion
	field int // position of the apiVersion field in meta
}

// The reasons of a [store.CorruptError] about a value.
var (
	errFormat    = errors.New("unknown format of the value")
	errTruncated = errors.New("value ends early")
	errHeader    = errors.New("header of the value is damaged")
	errJSON      = errors.New("JSON of the value does not fit its header")
	errProto     = errors.New("protobuf of the value does not fit its header")
)

// header reads the uvarints of a value's head. After the first error it
// returns zeros.
type header struct {
	b   []byte
	err error
}

// next reads a number that is at most limit. Most have one byte.
func (h *header) next(limit int) int {
	if len(h.b) > 0 && h.b[0] < 0x80 && int(h.b[0]) <= limit {
		n := int(h.b[0])
		h.b = h.b[1:]
		return n
	}
	v, n := binary.Uvarint(h.b)
	if n <= 0 || v > uint64(limit) {
		h.err, h.b = errTruncated, nil
		return 0
	}
	h.b = h.b[n:]
	return int(v)
}

// HasFinalizers tells whether an event has finalizers, which delay its deletion. It
// decodes the event only if its JSON has text that looks like them.
func (c *Codec) HasFinalizers(rec *store.View) (bool, error) {
	var s stored
	if err := s.parseWhole(rec); err != nil {
		return false, err
	}
	if !bytes.Contains(s.json, []byte(`"finalizers":[`)) {
		return false, nil
	}
	ev, err := c.Event(rec) // a note may have that text too
	return err == nil && len(ev.Finalizers) > 0, err
}

// parse parses and checks the value of a record.
func (s *stored) parse(rec *store.View) error {
	h, err := s.parseHead(rec)
	if err == nil {
		s.parseSpans(&h)
		err = cmp.Or(s.checkHoles(), s.check(&h))
	}
	return corrupt(rec, err)
}

// parseWhole is parse without the positions of the members, for an event that is
// sent as a whole in events/v1.
func (s *stored) parseWhole(rec *store.View) error {
	_, err := s.parseHead(rec)
	if err == nil {
		err = s.checkHoles()
	}
	return corrupt(rec, err)
}

// corrupt is the error of a record whose value has err, or nil.
func corrupt(rec *store.View, err error) error {
	if err == nil {
		return nil
	}
	return &store.CorruptError{Key: rec.Key, Revision: rec.Revision, Reason: err.Error()}
}

// parseHead finds the parts of a value and the holes in them, and returns the
// rest of the header.
func (s *stored) parseHead(rec *store.View) (header, error) {
	s.revision = rec.Revision
	value := rec.Value
	if len(value) == 0 || value[0] != storedFormat {
		return header{}, errFormat
	}
	limit := len(value)
	h := header{b: value[1:]}
	jsonLen, metaLen, restLen := h.next(limit), h.next(limit), h.next(limit)
	if jsonLen+metaLen+restLen > len(h.b) {
		return header{}, errTruncated
	}
	body := h.b[len(h.b)-jsonLen-metaLen-restLen:]
	h.b = h.b[:len(h.b)-len(body)]
	s.json, s.meta, s.rest = body[:jsonLen], body[jsonLen:jsonLen+metaLen], body[jsonLen+metaLen:]
	s.jsonRV, s.protoRV = h.next(jsonLen), h.next(metaLen)
	s.parseOwn(&h)
	if h.err != nil {
		return h, errHeader
	}
	return h, nil
}

func (s *stored) parseOwn(h *header) {
	s.own = s.own[:0]
	json, proto := s.jsonRV, s.protoRV
	for n := h.next(len(h.b)); n > 0 && h.err == nil; n-- {
		e := ownEntry{json: json + h.next(len(s.json)), proto: proto + h.next(len(s.meta)), size: h.next(len(s.meta))}
		e.field = e.proto + h.next(e.size)
		json, proto = e.json, e.proto+e.size
		s.own = append(s.own, e)
	}
}

func (s *stored) parseSpans(h *header) {
	at := 0
	for i := range s.values {
		s.values[i] = span{at, at}
		if n := h.next(len(s.json)); n > 0 {
			at += jsonHead(i)
			s.values[i] = span{at, at + n}
			at += n
		}
	}
	at = 0
	for i := memberMetadata + 1; i < numMembers; i++ {
		s.fields[i] = span{at, at}
		if n := h.next(len(s.rest)); n > 0 {
			s.fields[i] = span{at + 1, at + 1 + n}
			at += 1 + n
		}
	}
}

// checkHoles checks that the holes are within the bytes, and in the JSON at the right
// member.
func (s *stored) checkHoles() error {
	firstOwn, lastOwn, lastProto := len(s.json), len(s.json), s.protoRV
	if n := len(s.own); n > 0 {
		firstOwn, lastOwn, lastProto = s.own[0].json, s.own[n-1].json, s.own[n-1].proto+s.own[n-1].size
	}
	key := span{s.jsonRV - len(versionKey), s.jsonRV}
	switch {
	case key.from <= 1, key.to+2 > firstOwn, lastOwn > len(s.json),
		string(s.json[key.from:key.to]) != versionKey:
		return errJSON
	case lastProto > len(s.meta):
		return errProto
	}
	return nil
}

// check checks that the members fill json and rest, and that all holes are in the
// metadata.
func (s *stored) check(h *header) error {
	metadata := s.values[memberMetadata]
	lastOwn := s.jsonRV + 2
	if n := len(s.own); n > 0 {
		lastOwn = s.own[n-1].json
	}
	switch {
	case h.err != nil || len(h.b) > 0:
		return errHeader
	case s.values[numMembers-1].to+1 != len(s.json), s.jsonRV-len(versionKey) <= metadata.from, lastOwn > metadata.to:
		return errJSON
	case s.fields[numMembers-1].to != len(s.rest):
		return errProto
	}
	return nil
}

// Event decodes a stored event, with its resourceVersion.
func (c *Codec) Event(rec *store.View) (*eventsv1.Event, error) {
	var s stored
	if err := s.parse(rec); err != nil {
		return nil, err
	}
	d := c.newEncoder()
	defer c.putEncoder(d)
	d.buf = c.appendProto(slices.Grow(d.buf, c.protoLen(&s)), &s, event.EventsV1)
	ev := new(eventsv1.Event)
	if err := ev.Unmarshal(d.buf); err != nil {
		return nil, corrupt(rec, err)
	}
	return ev, nil
}

// Occurrence decodes when and how often a stored event was observed. It is for records of
// older programs, whose attributes do not say that.
func Occurrence(rec *store.View) (event.Occurrence, error) {
	ev, err := new(Codec).Event(rec) // the group shows in managed fields alone
	if err != nil {
		return event.Occurrence{}, err
	}
	return event.OccurrenceOf(ev), nil
}
