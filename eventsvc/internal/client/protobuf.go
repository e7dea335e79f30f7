package client

import (
	"bytes"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	// magic begins every object of Kubernetes in protobuf. An envelope follows, which says what the message in it is.
	magic = "k8s\x00"
)

// readEvents reads a page of events in protobuf.
func (p *Page) readEvents(body []byte) error {
	message, ok := bytes.CutPrefix(body, []byte(magic))
	if !ok {
		return errors.New("it is no object of Kubernetes in protobuf")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(message); err != nil {
		return err
	}
	var list corev1.EventList
	err := list.Unmarshal(envelope.Raw)
	p.Metadata, p.Events = list.ListMeta, list.Items
	return err
}

// encodeEvents returns a list of events in protobuf.
func encodeEvents(events []corev1.Event) ([]byte, error) {
	list, err := (&corev1.EventList{Items: events}).Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Raw: list}
	message := make([]byte, len(magic)+envelope.Size())
	_, err = envelope.MarshalToSizedBuffer(message[copy(message, magic):])
	return message, err
}
