package request

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// Items returns the messages of the first events of a list of core/v1 in protobuf, at most so many.
func Items(body []byte, most int) (items [][]byte, err error) {
	envelope, err := openEnvelope(body)
	if err != nil {
		return nil, cannotRecognize(err, body)
	}
	kind := metav1.TypeMeta{Kind: envelope.Kind, APIVersion: envelope.APIVersion}
	if kind.Kind != event.Kind+"List" || kind.APIVersion != "v1" {
		return nil, unusable(kind, kind.APIVersion, errors.New("it is no EventList of v1"))
	}
	valid := eachField(envelope.Raw, func(number protowire.Number, kind protowire.Type, value []byte) {
		if number == 2 && kind == protowire.BytesType && len(items) < most {
			message, _ := protowire.ConsumeBytes(value)
			items = append(items, message)
		}
	})
	if !valid {
		return nil, unusable(kind, kind.APIVersion, errors.New("the message is cut off or damaged"))
	}
	return items, nil
}

// DecodeItem reads one of [Items].
func (c *Decoder) DecodeItem(message []byte) (*eventsv1.Event, error) {
	obj := event.NewObject(event.CoreV1)
	if err := c.checkKind(event.CoreV1, metav1.TypeMeta{}, readMessage(message, obj), message); err != nil {
		return nil, err
	}
	return event.Hub(obj), nil
}
