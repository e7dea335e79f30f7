package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// AppendObject appends one event as the whole body of an answer. A record
// without a revision, as a dry run makes, shows no resourceVersion.
func (c *Codec) AppendObject(dst []byte, f Format, v event.View, rec *store.Record) ([]byte, error) {
	return dst, nil
}

// AppendStatus appends a Status as the whole body of an answer.
func (c *Codec) AppendStatus(dst []byte, f Format, st *metav1.Status) ([]byte, error) {
	return dst, nil
}

// AppendRuntime appends any other object, which carries its kind and
// apiVersion, as the whole body of an answer.
func (c *Codec) AppendRuntime(dst []byte, f Format, obj runtime.Object) ([]byte, error) {
	return dst, nil
}
