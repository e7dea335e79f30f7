package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Frames writes the events of one watch stream, each with its framing.
type Frames struct{}

// NewFrames starts a watch stream.
func (c *Codec) NewFrames(f Format, v event.View) *Frames { return &Frames{} }

// AppendInitial appends the ADDED event of an object that was there when the
// watch began.
func (f *Frames) AppendInitial(dst []byte, rec *store.Record) ([]byte, error) { return dst, nil }

// AppendDelivery appends one change.
func (f *Frames) AppendDelivery(dst []byte, d store.Delivery) ([]byte, error) { return dst, nil }

// AppendBookmark appends a BOOKMARK event; initialEnd marks the one that ends
// the initial events.
func (f *Frames) AppendBookmark(dst []byte, rv uint64, initialEnd bool) ([]byte, error) {
	return dst, nil
}

// AppendError appends an ERROR event. Nothing may follow it.
func (f *Frames) AppendError(dst []byte, st *metav1.Status) ([]byte, error) { return dst, nil }
