package codec

import (
	"bytes"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// List writes one list: the head, every item, the tail. If NeedsMeasure, the caller
// passes every item to Measure first, because the format has its length before its
// content. It is for one goroutine.
type List struct {
	c      *Codec
	format Format
	view   event.View
	now    time.Time

	s        stored
	measured int    // bytes of all items, in protobuf
	items    int    // items appended
	tail     []byte // what follows the items
	scratch  []byte
}

// NewList starts a list.
func (c *Codec) NewList(f Format, v event.View) *List {
	return &List{c: c, format: f, view: v, now: c.Now()}
}

// NeedsMeasure tells whether Measure must see every item before AppendHead.
func (l *List) NeedsMeasure() bool { return l.format.Media == request.Protobuf }

// Measure adds the length of an item to the length of the list.
func (l *List) Measure(rec *store.View) error {
	if err := l.s.parse(rec); err != nil {
		return err
	}
	l.measured += fieldLen(l.itemLen())
	return l.s.failed(rec)
}

// itemLen is the length of the current item in protobuf.
func (l *List) itemLen() int {
	if l.format.As == Partial {
		return fieldLen(len(l.c.meta(&l.s)))
	}
	return l.c.protoLen(&l.s)
}

func (l *List) kind() metav1.TypeMeta {
	if l.format.As == Partial {
		return metav1.TypeMeta{Kind: partialKind + "List", APIVersion: metaAPIVersion}
	}
	return metav1.TypeMeta{Kind: event.Kind + "List", APIVersion: l.c.Group.APIVersion(l.view)}
}

// AppendHead appends what comes before the items.
func (l *List) AppendHead(dst []byte, meta metav1.ListMeta) []byte {
	if l.format.Media == request.Protobuf {
		return l.appendProtoHead(dst, meta)
	}
	if l.format.As == Table {
		return l.split(dst, emptyTable(l.format.TableVersion, meta, true), "rows")
	}
	text, _ := json.Marshal(struct { // strings and numbers: no error
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
		Items           []struct{} `json:"items"`
	}{l.kind(), meta, []struct{}{}})
	return l.split(dst, text, "items")
}

func (l *List) appendProtoHead(dst []byte, meta metav1.ListMeta) []byte {
	l.tail = []byte(envelopeTail)
	kind := l.kind()
	head, _ := meta.Marshal() // strings and numbers: no error
	dst = appendEnvelope(dst, kind.APIVersion, kind.Kind, fieldLen(len(head))+l.measured)
	return append(appendFieldHead(dst, 1, len(head)), head...)
}

// split cuts an empty list where its items belong. It appends what comes before
// them and keeps what follows as the tail.
func (l *List) split(dst, text []byte, member string) []byte {
	cut := len(text) - len("]}")
	switch {
	case l.format.Media == request.YAML:
		// YAML sorts its keys, so there are members after the items.
		text, _ = yaml.JSONToYAML(text)
		empty := []byte("\n" + member + ": []\n")
		cut = bytes.LastIndex(text, empty) + len(empty) - len(" []\n")
		l.tail = text[cut+len(" []\n"):]
		return append(dst, text[:cut]...)
	case l.format.Pretty:
		text = appendIndented(nil, text, "")
		cut = len(text) - len("]\n}")
		l.tail = text[cut:]
	default:
		l.tail = append(text[cut:], '\n')
	}
	return append(dst, text[:cut]...)
}

// AppendItem appends the next item.
func (l *List) AppendItem(dst []byte, rec *store.View) ([]byte, error) {
	if err := l.s.parse(rec); err != nil {
		return dst, err
	}
	first := l.items == 0
	l.items++
	switch {
	case l.format.Media == request.Protobuf:
		return l.appendProto(dst), l.s.failed(rec)
	case l.format.Media == request.YAML && first:
		dst = append(dst, '\n')
	case l.format.Media == request.JSON && !first:
		dst = append(dst, ',')
	}
	if l.format.Media == request.JSON && !l.format.Pretty {
		return l.appendItem(dst, rec)
	}
	text, err := l.appendItem(append(l.scratch[:0], '['), rec)
	if err != nil {
		return dst, err
	}
	l.scratch = append(text, ']')
	if l.format.Pretty {
		return appendIndented(append(dst, "\n    "...), text[len("["):], "    "), nil
	}
	// In YAML a sequence of one looks as it does in a longer sequence.
	y, err := yaml.JSONToYAML(l.scratch)
	return append(dst, y...), err
}

// Rewind discards the items appended so far: the next item is the first.
func (l *List) Rewind() { l.items = 0 }

func (l *List) appendProto(dst []byte) []byte {
	dst = appendFieldHead(dst, 2, l.itemLen())
	if l.format.As == Partial {
		return l.c.appendMeta(dst, &l.s)
	}
	return l.c.appendProto(dst, &l.s, l.view)
}

// appendItem appends the current item as compact JSON.
func (l *List) appendItem(dst []byte, rec *store.View) (_ []byte, err error) {
	switch l.format.As {
	case Table:
		if dst, err = l.c.appendRow(dst, &l.s, rec, l.format, l.view, l.now); err != nil {
			return dst, err
		}
	case Partial:
		dst = l.c.appendPartialJSON(dst, &l.s, metaVersion)
	default:
		dst = l.c.appendMembers(append(dst, '{'), &l.s, l.view)
	}
	return dst, l.s.failed(rec)
}

// AppendTail appends what comes after the items.
func (l *List) AppendTail(dst []byte) []byte {
	switch {
	case l.items == 0 && l.format.Media == request.YAML:
		dst = append(dst, " []\n"...)
	case l.items > 0 && l.format.Media == request.JSON && l.format.Pretty:
		dst = append(dst, "\n  "...)
	}
	return append(dst, l.tail...)
}
