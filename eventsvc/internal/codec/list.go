package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// List writes one list: the head, every item, the tail. Where NeedsMeasure,
// every item is shown to Measure first, because the format says its length
// before its content.
type List struct{}

// NewList starts a list.
func (c *Codec) NewList(f Format, v event.View) *List { return &List{} }

// NeedsMeasure tells whether Measure must see every item before AppendHead.
func (l *List) NeedsMeasure() bool { return false }

// Measure counts an item in.
func (l *List) Measure(rec *store.Record) error { return nil }

// AppendHead appends what comes before the items.
func (l *List) AppendHead(dst []byte, meta metav1.ListMeta) []byte { return dst }

// AppendItem appends the next item.
func (l *List) AppendItem(dst []byte, rec *store.Record) ([]byte, error) { return dst, nil }

// AppendTail appends what comes after the items.
func (l *List) AppendTail(dst []byte) []byte { return dst }
