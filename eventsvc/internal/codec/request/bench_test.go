package request_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

func BenchmarkPatch(b *testing.B) {
	c, live := codectest.New(b, "k8s.io"), eventtest.Typical()
	patch := []byte(`{"series":{"count":2,"lastObservedTime":"2026-05-04T12:00:00.000000Z"}}`)
	for _, t := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		b.Run(string(t), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next, _, err := c.Decoder.Patch(event.EventsV1, t, patch, live, "")
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Decoder.Fields.Update(event.EventsV1, live, next, "controller"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	sent := eventtest.Typical()
	sent.UID, sent.CreationTimestamp, sent.ManagedFields = "", metav1.Time{}, nil
	rec := codectest.Record(b, c, sent, 0)
	for name, f := range map[string]codec.Format{"JSON": {}, "Protobuf": {Media: request.Protobuf}} {
		body, err := c.AppendObject(nil, f, event.EventsV1, rec)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, f.ContentType(false), body, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// largeBodies are events with annotations of that many bytes.
func largeBodies(size int) map[string][]byte {
	var many strings.Builder
	for i := 0; many.Len() < size; i++ {
		fmt.Fprintf(&many, `"a%d":"b",`, i)
	}
	bodies := map[string][]byte{}
	for name, annotations := range map[string]string{
		"One": `"a":"` + strings.Repeat("x", size) + `"`, "Text": `"a":"` + strings.Repeat("ä", size/2) + `"`,
		"Escapes": `"a":"` + strings.Repeat(`\n`, size/2) + `"`, "Many": many.String() + `"a":"b"`,
	} {
		bodies[name] = []byte(`{"metadata":{"name":"a","annotations":{` + annotations + `}},"regarding":{"namespace":"large"},"type":"Normal"}`)
	}
	return bodies
}

// What an attacker sends, of 3 MiB: nearly all of it must be looked at to say
// that it is too large.
func BenchmarkDecodeLarge(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	for name, body := range largeBodies(3<<20 - 1000) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				// What has too many values is refused here, the others where the sizes of an event are checked.
				if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, jsonType, body, ""); err != nil && !apierrors.IsRequestEntityTooLargeError(err) {
					b.Fatal(err)
				}
			}
		})
	}
}
