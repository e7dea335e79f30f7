package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// kind is what a log record says about its event.
type kind byte

const (
	created  kind = 1
	modified kind = 2
	deleted  kind = 3
)

// A log record, all numbers big-endian (doc.go draws it):
//
//	kind 1 | form 1 | namespace length 2 | key length 2 | attributes length 4 | previous revision 8 | time 8
//	key "namespace/name" | attributes | value | CRC32C 4
//
// The checksum also covers the revision, which is the key of the record, so
// that a record found in another's place is damage too.
const (
	recordHeader  = 26
	recordTrailer = 4
	maxKey        = 1024
)

// be is the byte order of everything on disk.
var be = binary.BigEndian

// errHeader reports a record whose header contradicts itself.
var errHeader = errors.New("the header makes no sense")

// entry is a parsed log record. Its slices share memory with the record.
type entry struct {
	revision   uint64
	kind       kind
	previous   uint64 // revision of the version before, 0: none
	time       time.Time
	key        []byte // "namespace/name"
	namespace  int    // length of the namespace within key
	attributes []byte
	value      []byte

	first, second int // where in the value its parts begin; it has none if second is 0
}

// take makes a draft the content of a record.
func (e *entry) take(d *store.Draft) {
	e.attributes, e.value = d.Attributes, d.Value
	if d.Parted() {
		e.first, e.second = d.First, d.Second
	}
}

// appendRecord encodes e behind dst.
func appendRecord(dst []byte, e *entry) []byte {
	start := len(dst)
	form, attributes := byte(formWhole), len(e.attributes)
	if e.parted() {
		form, attributes = formParts, attributes+partsBytes
	}
	dst = append(dst, byte(e.kind), form)
	dst = be.AppendUint16(dst, uint16(e.namespace))
	dst = be.AppendUint16(dst, uint16(len(e.key)))
	dst = be.AppendUint32(dst, uint32(attributes))
	dst = be.AppendUint64(dst, e.previous)
	dst = be.AppendUint64(dst, uint64(e.time.UnixNano()))
	dst = append(dst, e.key...)
	dst = append(dst, e.attributes...)
	if e.parted() {
		dst = e.appendParts(dst, start)
	}
	dst = append(dst, e.value...)
	return be.AppendUint32(dst, boltfile.Checksum(e.revision, dst[start:]))
}

// size is the length of the record that e was parsed from.
func (e *entry) size() int64 {
	n := recordHeader + len(e.key) + len(e.attributes) + len(e.value) + recordTrailer
	if e.parted() {
		n += partsBytes
	}
	return int64(n)
}

// recordBytes is the most that a record of so long a key, attributes and value
// takes.
func recordBytes(key, content int) int64 {
	return int64(recordHeader + key + partsBytes + content + recordTrailer)
}

// parseRecord checks and splits the record stored under a revision.
func parseRecord(revision uint64, b []byte) (entry, error) {
	e, err := splitRecord(revision, b)
	if err == nil && be.Uint32(b[len(b)-recordTrailer:]) != boltfile.Checksum(revision, b[:len(b)-recordTrailer]) {
		return entry{}, boltfile.ErrChecksum
	}
	return e, err
}

// splitRecord is parseRecord without the checksum.
func splitRecord(revision uint64, b []byte) (entry, error) {
	if len(b) < recordHeader+recordTrailer {
		return entry{}, fmt.Errorf("%d bytes are too few for a record", len(b))
	}
	body := b[:len(b)-recordTrailer]
	e := entry{
		revision:  revision,
		kind:      kind(body[0]),
		namespace: int(be.Uint16(body[2:])),
		previous:  be.Uint64(body[10:]),
		time:      time.Unix(0, int64(be.Uint64(body[18:]))),
	}
	keyLen, attrLen := int(be.Uint16(body[4:])), int(be.Uint32(body[6:]))
	body = body[recordHeader:]
	if e.kind < created || e.kind > deleted || e.namespace >= keyLen || keyLen+attrLen > len(body) {
		return entry{}, errHeader
	}
	e.key, e.attributes, e.value = body[:keyLen], body[keyLen:keyLen+attrLen], body[keyLen+attrLen:]
	if !e.splitParts(b[1]) {
		return entry{}, errHeader
	}
	return e, nil
}

// named reports whether the key of a record that is damaged may be one.
func (e *entry) named() bool {
	return len(e.key) < maxKey && e.namespace > 0 && bytes.IndexByte(e.key, '/') == e.namespace &&
		bytes.LastIndexByte(e.key, '/') == e.namespace && len(e.key) > e.namespace+1 && bytes.IndexByte(e.key, 0) < 0
}

func (e *entry) storeKey() store.Key { return splitKey(string(e.key), e.namespace) }

func splitKey(s string, namespace int) store.Key {
	return store.Key{Namespace: s[:namespace], Name: s[namespace+1:]}
}

// keyOf splits a key of the index.
func keyOf(joined []byte) store.Key {
	return splitKey(string(joined), bytes.IndexByte(joined, '/'))
}

func (e *entry) seen() store.Seen {
	return store.Seen{Key: e.storeKey(), Revision: e.revision, Bytes: int(e.size())}
}

// shown is e as it is in the transaction.
func (e *entry) shown(key store.Key) store.Record {
	return store.Record{Key: key, Revision: e.revision, Time: e.time, Attributes: e.attributes, Value: e.value, Bytes: int(e.size())}
}

// record copies e out of the transaction, into one piece of memory.
func (e *entry) record() store.Record {
	buf := make([]byte, len(e.attributes)+len(e.value))
	return e.recordInto(buf, e.storeKey())
}

// recordInto is record with the memory given: as many bytes as attributes and
// value have.
func (e *entry) recordInto(buf []byte, key store.Key) store.Record {
	n := copy(buf, e.attributes)
	copy(buf[n:], e.value)
	return store.Record{
		Key:        key,
		Revision:   e.revision,
		Time:       e.time,
		Attributes: buf[:n:n],
		Value:      buf[n:],
		Bytes:      int(e.size()),
	}
}

// texts makes strings of bytes, many in one piece of memory.
type texts struct{ b strings.Builder }

func (t *texts) text(b []byte) string {
	if t.b.Cap()-t.b.Len() < len(b) {
		t.b = strings.Builder{}
		t.b.Grow(max(len(b), 4<<10))
	}
	from := t.b.Len()
	t.b.Write(b)
	return t.b.String()[from:]
}

func revisionKey(revision uint64) []byte {
	return be.AppendUint64(nil, revision)
}

// revisionOf reads a key of the log bucket. A damaged page may have any bytes there.
func revisionOf(k []byte) (uint64, error) {
	if len(k) != 8 {
		return 0, fmt.Errorf("%q is no key of the log: %w", k, boltfile.ErrChecksum)
	}
	return be.Uint64(k), nil
}
