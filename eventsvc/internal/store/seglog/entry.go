package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
)

// Kind is what a record says about its event.
type Kind byte

// The kinds of records. Those of deletions have no attributes; their value says who asked for it, and is empty if the
// service did.
const (
	Created  Kind = 1
	Modified Kind = 2
	Deleted  Kind = 3
)

// The length of a record in front of its key, and of its checksum.
const (
	recordHeader  = 25
	recordTrailer = 4

	checksumBytes = 4
)

// MaxKey is the length that keys are shorter than.
const MaxKey = 1024

var (
	errShort  = errors.New("it is too short for a record")
	errHeader = errors.New("the header makes no sense") // it contradicts itself
)

// An Entry is a parsed record. Its slices share memory with the record.
type Entry struct {
	Revision     uint64
	Kind         Kind
	Previous     uint64 // revision of the version before, 0: none
	Time         time.Time
	Key          []byte // "namespace/name"
	NamespaceLen int    // of the namespace within Key
	Attributes   []byte
	Value        []byte
}

// AppendEntry appends e as a record.
func AppendEntry(dst []byte, e *Entry) []byte {
	start := len(dst)
	dst = append(dst, byte(e.Kind))
	dst = binary.BigEndian.AppendUint16(dst, uint16(e.NamespaceLen))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(e.Key)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Attributes)))
	dst = binary.BigEndian.AppendUint64(dst, e.Previous)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Time.UnixNano()))
	dst = append(dst, e.Key...)
	dst = append(dst, e.Attributes...)
	dst = append(dst, e.Value...)
	return binary.BigEndian.AppendUint32(dst, boltfile.Checksum(e.Revision, dst[start:]))
}

// Size returns the length of e as a record.
func (e *Entry) Size() int64 {
	return int64(recordHeader + len(e.Key) + len(e.Attributes) + len(e.Value) + recordTrailer)
}

// MaxEntryBytes returns the most bytes of a record with a key, and attributes and value, of
// the given lengths.
func MaxEntryBytes(key, content int) int64 {
	return int64(recordHeader + key + content + recordTrailer)
}

// parseEntry verifies and parses the record that is stored under a revision. A damaged one whose header makes
// sense is returned with [boltfile.ErrChecksum].
func parseEntry(revision uint64, b []byte) (Entry, error) {
	if _, lost := lostIn(revision, b); lost {
		return Entry{}, errGap
	}
	e, err := splitEntry(revision, b)
	if err == nil && binary.BigEndian.Uint32(b[len(b)-recordTrailer:]) != boltfile.Checksum(revision, b[:len(b)-recordTrailer]) {
		err = boltfile.ErrChecksum
	}
	return e, err
}

// splitEntry is parseEntry without the checksum.
func splitEntry(revision uint64, b []byte) (Entry, error) {
	if len(b) < recordTrailer {
		return Entry{}, errShort
	}
	return splitBody(revision, b[:len(b)-recordTrailer])
}

// splitBody parses what is in front of the checksum of a record.
func splitBody(revision uint64, b []byte) (Entry, error) {
	if len(b) < recordHeader {
		return Entry{}, errShort
	}
	e := Entry{
		Revision:     revision,
		Kind:         Kind(b[0]),
		NamespaceLen: int(binary.BigEndian.Uint16(b[1:])),
		Previous:     binary.BigEndian.Uint64(b[9:]),
		Time:         time.Unix(0, int64(binary.BigEndian.Uint64(b[17:]))),
	}
	keyLen, attrLen := int(binary.BigEndian.Uint16(b[3:])), int(binary.BigEndian.Uint32(b[5:]))
	body := b[recordHeader:]
	if e.Kind < Created || e.Kind > Deleted || e.NamespaceLen >= keyLen || keyLen+attrLen > len(body) {
		return Entry{}, errHeader
	}
	e.Key, e.Attributes, e.Value = body[:keyLen], body[keyLen:keyLen+attrLen], body[keyLen+attrLen:]
	return e, nil
}

// appendVersion appends the record of a version of columns, without its checksum. It reports false if there is none.
func appendVersion(dst []byte, v *columns.Version) ([]byte, bool) {
	namespace, name, fields, ok := codec.Selectable(v.Value)
	key := len(namespace) + 1 + len(name)
	if !ok || key > math.MaxUint16 {
		return dst, false
	}
	dst = be.AppendUint16(append(dst, v.Kind), uint16(len(namespace)))
	dst = be.AppendUint16(dst, uint16(key))
	length := len(dst)
	dst = be.AppendUint64(append(dst, 0, 0, 0, 0), v.Previous)
	dst = be.AppendUint64(dst, uint64(v.Written))
	dst = append(append(append(dst, namespace...), '/'), name...)
	attributes := len(dst)
	for _, text := range fields {
		dst = appendText(dst, text)
	}
	dst = append(v.Append(append(dst, v.Labels...)), v.Mark...)
	be.PutUint32(dst[length:], uint32(len(dst)-attributes))
	return append(dst, v.Value...), true
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// note returns the note of a version. It shares memory with it.
func (e *Entry) note() ([]byte, error) {
	v := e.View(store.Key{})
	return codec.Note(&v)
}

// UID returns the UID of the event of a version.
func (e *Entry) UID() string {
	v := e.View(store.Key{})
	return string(codec.UID(&v))
}

// AppendText appends the text of a version that searches look at.
func (e *Entry) AppendText(dst []byte) ([]byte, error) {
	note, err := e.note()
	if err != nil {
		return dst, err
	}
	return event.AppendText(dst, note, e.Attributes), nil
}

// Corrupt makes an error, unless it is nil, a [*store.CorruptError] of a revision.
func Corrupt(revision uint64, err error) error {
	if err == nil {
		return nil
	}
	return &store.CorruptError{Revision: revision, Reason: err.Error()}
}

// Named reports whether the key of a damaged record is a valid one.
func (e *Entry) Named() bool {
	return len(e.Key) < MaxKey && e.NamespaceLen > 0 && bytes.IndexByte(e.Key, '/') == e.NamespaceLen &&
		bytes.LastIndexByte(e.Key, '/') == e.NamespaceLen && len(e.Key) > e.NamespaceLen+1 && bytes.IndexByte(e.Key, 0) < 0
}

// StoreKey returns the key of the event.
func (e *Entry) StoreKey() store.Key { return SplitKey(string(e.Key), e.NamespaceLen) }

// SplitKey splits a key behind a namespace of the given length.
func SplitKey(s string, namespace int) store.Key {
	return store.Key{Namespace: s[:namespace], Name: s[namespace+1:]}
}

// KeyOf splits a key at its slash.
func KeyOf(joined []byte) store.Key {
	return SplitKey(string(joined), bytes.IndexByte(joined, '/'))
}

// Seen returns which version e is.
func (e *Entry) Seen() store.Seen {
	return store.Seen{Key: e.StoreKey(), Revision: e.Revision, Bytes: int(e.Size())}
}

// View returns e as a view that shares its memory.
func (e *Entry) View(key store.Key) store.View {
	return store.View{Key: key, Revision: e.Revision, Time: e.Time, Attributes: e.Attributes, Value: e.Value, Bytes: int(e.Size())}
}

// Clone returns e as a record in memory of its own.
func (e *Entry) Clone() store.Record {
	v := e.View(e.StoreKey())
	return v.Clone()
}
