package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/codec/wire"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Frames writes the events of one watch stream, each with its framing: in JSON
// an object and a newline, in protobuf four bytes of length and a WatchEvent.
// It is for one goroutine.
type Frames struct {
	c      *Codec
	format Format
	view   event.View

	hasColumns bool // the columns of the table have been sent
}

// frameBuffer is the memory for making one frame. Streams share them, because most
// are idle most of the time.
type frameBuffer struct {
	s       stored
	scratch []byte
}

func (c *Codec) newFrameBuffer() *frameBuffer {
	if w, ok := c.frames.Get().(*frameBuffer); ok {
		return w
	}
	return new(frameBuffer)
}

func (c *Codec) putFrameBuffer(w *frameBuffer) {
	const kept = 64 << 10
	w.s = stored{own: w.s.own[:0]} // without references to the record
	if cap(w.scratch) <= kept {
		c.frames.Put(w)
	}
}

// NewFrames starts a watch stream.
func (c *Codec) NewFrames(f Format, v event.View) *Frames {
	return &Frames{c: c, format: f, view: v}
}

// AppendInitial appends the ADDED event of an object that existed when the watch
// began.
func (f *Frames) AppendInitial(dst []byte, rec *store.View) ([]byte, error) {
	return f.appendRecord(dst, watch.Added, rec, rec.Revision)
}

// AppendDelivery appends one change. The object in it is encoded once for all
// watchers of the same format, except for tables and deletions.
func (f *Frames) AppendDelivery(dst []byte, d store.Delivery) ([]byte, error) {
	t := watch.Added
	switch d.Type {
	case store.Removed:
		// The last state, with the revision of the change that ended it.
		return f.appendRecord(dst, watch.Deleted, d.Object.View(), d.Revision)
	case store.Modified:
		t = watch.Modified
	}
	if f.format.As == Table {
		return f.appendRecord(dst, t, d.Object.View(), d.Object.Revision)
	}
	object, err := d.Object.Form(f.slot(), f.encode)
	if err != nil {
		return dst, err
	}
	return f.appendFrame(dst, t, object), nil
}

// slot is the index of the encoded form that this stream sends, in the cache of
// [store.Version.Form]. Metadata are the same in both views.
func (f *Frames) slot() int {
	slot := 0
	if f.format.Media == wire.Protobuf {
		slot = 1
	}
	if f.format.As == Partial {
		return slot + 4
	}
	return slot + 2*int(f.view)
}

// encode returns the object of a frame in memory of exactly its size, because it is
// cached.
func (f *Frames) encode(rec *store.View) ([]byte, error) {
	w := f.c.newFrameBuffer()
	defer f.c.putFrameBuffer(w)
	if err := w.s.parse(rec); err != nil {
		return nil, err
	}
	w.scratch = f.appendObject(w.scratch[:0], &w.s)
	return bytes.Clone(w.scratch), nil
}

// appendObject appends an event as the object of a frame.
func (f *Frames) appendObject(dst []byte, s *stored) []byte {
	if f.format.Media == wire.Protobuf {
		return f.c.appendObjectProto(dst, s, f.format.As, f.view)
	}
	return f.c.appendObjectText(dst, s, f.format.As, f.view)
}

func (f *Frames) appendRecord(dst []byte, t watch.EventType, rec *store.View, revision uint64) ([]byte, error) {
	w := f.c.newFrameBuffer()
	defer f.c.putFrameBuffer(w)
	if err := w.s.parse(rec); err != nil {
		return dst, err
	}
	w.s.revision = revision
	if f.format.As == Table {
		row, err := f.c.appendRow(nil, &w.s, rec, f.format, f.view, f.c.Now())
		if err != nil {
			return dst, err
		}
		return f.appendTable(dst, t, revision, row)
	}
	w.scratch = f.appendObject(w.scratch[:0], &w.s)
	return f.appendFrame(dst, t, w.scratch), nil
}

// appendFrame appends an encoded object with the type of its event.
func (f *Frames) appendFrame(dst []byte, t watch.EventType, object []byte) []byte {
	if f.format.Media != wire.Protobuf {
		dst = append(dst, `{"type":"`...)
		dst = append(dst, t...)
		dst = append(dst, `","object":`...)
		dst = append(dst, object...)
		return append(dst, "}\n"...)
	}
	raw := fieldLen(len(object)) // RawExtension: the object is its field 1
	dst = binary.BigEndian.AppendUint32(dst, uint32(fieldLen(len(t))+fieldLen(raw)))
	dst = append(appendFieldHead(dst, 1, len(t)), t...)
	dst = appendFieldHead(dst, 2, raw)
	return append(appendFieldHead(dst, 1, len(object)), object...)
}

// appendTable appends a frame with a table of one row. Only the first table of
// a stream has columns.
func (f *Frames) appendTable(dst []byte, t watch.EventType, revision uint64, row []byte) ([]byte, error) {
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(revision, 10)}
	table, err := emptyTable(f.format.TableVersion, meta, !f.hasColumns)
	if err != nil {
		return dst, err
	}
	f.hasColumns = true
	table = append(table[:len(table)-len("]}")], row...)
	return f.appendFrame(dst, t, append(table, "]}"...)), nil
}

// AppendBookmark appends a BOOKMARK event; initialEnd marks the one that ends
// the initial events.
func (f *Frames) AppendBookmark(dst []byte, rv uint64, initialEnd bool) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(rv, 10)}
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	if f.format.As == Table {
		row, err := f.bookmarkRow(meta, initialEnd)
		if err != nil {
			return dst, err
		}
		return f.appendTable(dst, watch.Bookmark, rv, row)
	}
	return f.AppendRuntime(dst, watch.Bookmark, f.bookmark(meta))
}

// bookmark is an object of the kind that the stream sends, with metadata only.
func (f *Frames) bookmark(meta metav1.ObjectMeta) runtime.Object {
	kind := metav1.TypeMeta{Kind: event.Kind, APIVersion: f.c.APIVersion(f.view)}
	switch {
	case f.format.As == Partial:
		kind = metav1.TypeMeta{Kind: partialKind, APIVersion: metaAPIVersion}
		return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: meta}
	case f.view == event.CoreV1:
		return &corev1.Event{TypeMeta: kind, ObjectMeta: meta}
	default:
		return &eventsv1.Event{TypeMeta: kind, ObjectMeta: meta}
	}
}

// bookmarkRow is the row of a bookmark, with blank cells. The mark of the end of the
// initial events is in its object, so that bookmark has one in any case.
func (f *Frames) bookmarkRow(meta metav1.ObjectMeta, initialEnd bool) ([]byte, error) {
	row := metav1.TableRow{Cells: event.TableCells(&eventsv1.Event{}, time.Time{})}
	switch {
	case f.format.IncludeObject == metav1.IncludeObject:
		row.Object.Object = f.bookmark(meta)
	case f.format.IncludeObject != metav1.IncludeNone || initialEnd:
		kind := metav1.TypeMeta{Kind: partialKind, APIVersion: metaGroup + "/" + f.format.TableVersion}
		row.Object.Object = &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: meta}
	}
	return json.Marshal(row)
}

// AppendError appends an ERROR event. Nothing may follow it.
func (f *Frames) AppendError(dst []byte, st *metav1.Status) ([]byte, error) {
	return f.AppendRuntime(dst, watch.Error, withStatusKind(st))
}

// AppendRuntime appends an event about any other object, which carries its kind
// and apiVersion.
func (f *Frames) AppendRuntime(dst []byte, t watch.EventType, obj runtime.Object) ([]byte, error) {
	if f.format.Media == wire.Protobuf {
		object, err := appendRuntimeProto(nil, obj)
		return f.appendFrame(dst, t, object), err
	}
	object, err := json.Marshal(obj)
	if err != nil {
		return dst, fmt.Errorf("encode %T as JSON: %w", obj, err)
	}
	return f.appendFrame(dst, t, object), nil
}
