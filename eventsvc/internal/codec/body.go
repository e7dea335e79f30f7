package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// The group and version of transformed answers; tables have v1beta1 too.
const (
	metaGroup      = "meta.k8s.io"
	metaVersion    = "v1"
	metaAPIVersion = metaGroup + "/" + metaVersion
	partialKind    = "PartialObjectMetadata"
)

// AppendObject appends one event as the whole body of an answer. The record of
// a dry run has no revision, and the object no resourceVersion.
func (c *Codec) AppendObject(dst []byte, f Format, v event.View, rec *store.View) ([]byte, error) {
	if f.As == Table { // of one row
		var meta metav1.ListMeta
		if rec.Revision > 0 {
			meta.ResourceVersion = strconv.FormatUint(rec.Revision, 10)
		}
		l := c.NewList(f, v)
		dst, err := l.AppendItem(l.AppendHead(dst, meta), rec)
		return l.AppendTail(dst), err
	}
	var s stored
	if err := s.parse(rec); err != nil {
		return dst, err
	}
	if f.Media == request.Protobuf {
		dst = c.appendBody(dst, &s, f, v)
		return dst, s.failed(rec)
	}
	dst, err := f.appendText(dst, func(dst []byte) []byte { return c.appendBody(dst, &s, f, v) })
	return dst, cmp.Or(s.failed(rec), err)
}

// appendBody appends an event, or its metadata only, as a body: compact JSON, or
// protobuf in an envelope.
func (c *Codec) appendBody(dst []byte, s *stored, f Format, v event.View) []byte {
	switch {
	case f.Media == request.Protobuf && f.As == Partial:
		dst = appendEnvelope(dst, metaAPIVersion, partialKind, fieldLen(len(c.meta(s))))
		return append(c.appendMeta(dst, s), envelopeTail...)
	case f.Media == request.Protobuf:
		dst = appendEnvelope(dst, c.Group.APIVersion(v), event.Kind, c.protoLen(s))
		return append(c.appendProto(dst, s, v), envelopeTail...)
	case f.As == Partial:
		return c.appendPartialJSON(dst, s, metaVersion)
	default:
		return c.appendObjectJSON(dst, s, v)
	}
}

// appendText appends compact JSON as the format wants it: with a newline,
// indented, or as YAML.
func (f Format) appendText(dst []byte, text func(dst []byte) []byte) ([]byte, error) {
	switch {
	case f.Media == request.YAML:
		y, err := yaml.JSONToYAML(text(nil))
		return append(dst, y...), err
	case f.Pretty:
		return appendIndented(dst, text(nil), ""), nil
	default:
		return append(text(dst), '\n'), nil
	}
}

// appendIndented appends compact JSON with two blanks for each level and prefix
// in front of every line but the first. Like kube-apiserver it writes no newline at
// the end.
func appendIndented(dst, text []byte, prefix string) []byte {
	var b bytes.Buffer
	// The text comes from the encoders of this package and is valid.
	_ = json.Indent(&b, text, prefix, "  ")
	return append(dst, b.Bytes()...)
}

// AppendRuntime appends any other object, which carries its kind and apiVersion,
// as the whole body of an answer.
func AppendRuntime(dst []byte, f Format, obj runtime.Object) ([]byte, error) {
	body, err := encodeRuntime(f.Media, obj)
	if err != nil || f.Media == request.Protobuf {
		return append(dst, body...), err
	}
	return f.appendText(dst, func(dst []byte) []byte { return append(dst, body...) })
}

// encodeRuntime encodes an object as compact JSON, or as protobuf in an envelope.
func encodeRuntime(media request.Media, obj runtime.Object) ([]byte, error) {
	if media != request.Protobuf {
		text, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("encode %T as JSON: %w", obj, err)
		}
		return text, nil
	}
	m, ok := obj.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	message, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %T as protobuf: %w", obj, err)
	}
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return append(append(appendEnvelope(nil, apiVersion, kind, len(message)), message...), envelopeTail...), nil
}
