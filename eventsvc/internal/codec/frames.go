package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/codec/request"
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

// encoder has the memory in which the object of a frame is made.
type encoder struct {
	parsed stored
	buf    []byte
}

func (c *Codec) newEncoder() *encoder {
	if e, ok := c.encoders.Get().(*encoder); ok {
		return e
	}
	return new(encoder)
}

func (c *Codec) putEncoder(e *encoder) {
	const kept = 64 << 10
	e.parsed = stored{filled: e.parsed.filled[:0]} // without references to the record
	if cap(e.parsed.filled)+cap(e.buf) <= kept {
		c.encoders.Put(e)
	}
}

// slot is the index of the encoded form that this stream sends, in the cache of
// [store.Version.Form]. Metadata are the same in both views.
func (f *Frames) slot() int {
	slot := 0
	if f.format.Media == request.Protobuf {
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
	e := f.c.newEncoder()
	defer f.c.putEncoder(e)
	if err := e.parsed.parse(rec); err != nil {
		return nil, err
	}
	e.buf = f.c.appendBody(e.buf[:0], &e.parsed, f.format, f.view)
	return bytes.Clone(e.buf), e.parsed.failed(rec)
}

func (f *Frames) appendRecord(dst []byte, t watch.EventType, rec *store.View, revision uint64) ([]byte, error) {
	e := f.c.newEncoder()
	defer f.c.putEncoder(e)
	if err := e.parsed.parse(rec); err != nil {
		return dst, err
	}
	e.parsed.revision = revision
	if f.format.As == Table {
		row, err := f.c.appendRow(nil, &e.parsed, rec, f.format, f.view, f.c.Now())
		if err != nil {
			return dst, err
		}
		return f.appendTable(dst, t, revision, row), nil
	}
	e.buf = f.c.appendBody(e.buf[:0], &e.parsed, f.format, f.view)
	return f.appendFrame(dst, t, e.buf), e.parsed.failed(rec)
}

func (f *Frames) appendFrame(dst []byte, t watch.EventType, object []byte) []byte {
	if f.format.Media != request.Protobuf {
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
func (f *Frames) appendTable(dst []byte, t watch.EventType, revision uint64, row []byte) []byte {
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(revision, 10)}
	table := emptyTable(f.format.TableVersion, meta, !f.hasColumns)
	f.hasColumns = true
	table = append(table[:len(table)-len("]}")], row...)
	return f.appendFrame(dst, t, append(table, "]}"...))
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
		return f.appendTable(dst, watch.Bookmark, rv, row), nil
	}
	return f.AppendRuntime(dst, watch.Bookmark, f.bookmark(meta))
}

// bookmark is an object of the kind that the stream sends, with metadata only.
func (f *Frames) bookmark(meta metav1.ObjectMeta) runtime.Object {
	if f.format.As == Partial {
		return partialObject(metaVersion, meta)
	}
	return f.c.Group.Show(f.view, &eventsv1.Event{ObjectMeta: meta})
}

func partialObject(version string, meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	kind := metav1.TypeMeta{Kind: partialKind, APIVersion: metaGroup + "/" + version}
	return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: meta}
}

// bookmarkRow is the row of a bookmark, with blank cells. The mark of the end of the
// initial events is in its object, so that bookmark has one in any case.
func (f *Frames) bookmarkRow(meta metav1.ObjectMeta, initialEnd bool) ([]byte, error) {
	row := metav1.TableRow{Cells: event.TableCells(&eventsv1.Event{}, time.Time{})}
	switch {
	case f.format.IncludeObject == metav1.IncludeObject:
		row.Object.Object = f.bookmark(meta)
	case f.format.IncludeObject != metav1.IncludeNone || initialEnd:
		row.Object.Object = partialObject(f.format.TableVersion, meta)
	}
	return json.Marshal(row)
}

// AppendError appends an ERROR event. Nothing may follow it.
func (f *Frames) AppendError(dst []byte, st *metav1.Status) ([]byte, error) {
	out := *st
	out.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return f.AppendRuntime(dst, watch.Error, &out)
}

// AppendRuntime appends an event about any other object, which carries its kind
// and apiVersion.
func (f *Frames) AppendRuntime(dst []byte, t watch.EventType, obj runtime.Object) ([]byte, error) {
	object, err := encodeRuntime(f.format.Media, obj)
	if err != nil {
		return dst, err
	}
	return f.appendFrame(dst, t, object), nil
}
