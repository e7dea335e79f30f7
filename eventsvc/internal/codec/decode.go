package codec

import (
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// DecodeEvent reads an event from a request body. Validation is Ignore, Warn
// or Strict ("" is Warn) and says what becomes of unknown and duplicate
// fields; with Warn they are returned as warnings.
func (c *Codec) DecodeEvent(v event.View, contentType string, body []byte, validation string) (*eventsv1.Event, []string, error) {
	return nil, nil, nil
}

// DecodeDeleteOptions reads the body of a delete. It is not for empty bodies:
// then the options are in the query.
func (c *Codec) DecodeDeleteOptions(contentType string, body []byte) (*metav1.DeleteOptions, error) {
	return nil, nil
}
