package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/codec/wire"
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

// AppendObject appends one event as the whole body of an answer. A record without a
// revision, which is that of a dry run, has no resourceVersion.
func (c *Codec) AppendObject(dst []byte, f Format, v event.View, rec *store.View) ([]byte, error) {
	if f.As == Table {
		return c.appendObjectTable(dst, f, v, rec)
	}
	var s stored
	if err := s.parse(rec); err != nil {
		return dst, err
	}
	if f.Media == wire.Protobuf {
		return c.appendObjectProto(dst, &s, f.As, v), nil
	}
	return f.appendText(dst, func(dst []byte) []byte { return c.appendObjectText(dst, &s, f.As, v) })
}

// appendObjectText appends an event, or its metadata only, as compact JSON.
func (c *Codec) appendObjectText(dst []byte, s *stored, as Transform, v event.View) []byte {
	if as == Partial {
		return c.appendPartialJSON(dst, s, metaVersion)
	}
	return c.appendObjectJSON(dst, s, v)
}

// appendObjectProto appends an event, or its metadata only, in an envelope.
func (c *Codec) appendObjectProto(dst []byte, s *stored, as Transform, v event.View) []byte {
	if as == Partial {
		dst = appendEnvelope(dst, metaAPIVersion, partialKind, fieldLen(c.metaLen(s)))
		dst = c.appendMeta(dst, s)
	} else {
		dst = appendEnvelope(dst, c.APIVersion(v), event.Kind, c.protoLen(s))
		dst = c.appendProto(dst, s, v)
	}
	return append(dst, envelopeTail...)
}

// appendText appends compact JSON as the format wants it: with a newline,
// indented, or as YAML.
func (f Format) appendText(dst []byte, text func(dst []byte) []byte) ([]byte, error) {
	switch {
	case f.Media == wire.YAML:
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

// AppendStatus appends a Status as the whole body of an answer.
func (c *Codec) AppendStatus(dst []byte, f Format, st *metav1.Status) ([]byte, error) {
	return c.AppendRuntime(dst, f, withStatusKind(st))
}

// withStatusKind returns a Status with kind and apiVersion.
func withStatusKind(st *metav1.Status) *metav1.Status {
	out := *st
	out.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &out
}

// protoMessage has the methods for encoding that every type of the Kubernetes API
// has.
type protoMessage interface {
	Size() int
	MarshalTo([]byte) (int, error)
}

// AppendRuntime appends any other object, which carries its kind and
// apiVersion, as the whole body of an answer.
func (c *Codec) AppendRuntime(dst []byte, f Format, obj runtime.Object) ([]byte, error) {
	if f.Media == wire.Protobuf {
		return appendRuntimeProto(dst, obj)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return dst, fmt.Errorf("encode %T as JSON: %w", obj, err)
	}
	return f.appendText(dst, func(dst []byte) []byte { return append(dst, text...) })
}

func appendRuntimeProto(dst []byte, obj runtime.Object) ([]byte, error) {
	m, ok := obj.(protoMessage)
	if !ok {
		return dst, fmt.Errorf("%T has no protobuf form", obj)
	}
	n := m.Size()
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	dst = appendEnvelope(dst, apiVersion, kind, n)
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	if _, err := m.MarshalTo(dst[at:]); err != nil {
		return dst[:at], fmt.Errorf("encode %T as protobuf: %w", obj, err)
	}
	return append(dst, envelopeTail...), nil
}
