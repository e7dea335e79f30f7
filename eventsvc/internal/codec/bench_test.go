package codec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
)

// typical is an event as the stock recorder makes it, of about 1 kB.
func typical() *eventsv1.Event {
	created := metav1.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0.18e9f0a1b2c3d4e5", Namespace: "shop", UID: "6f6c5a0e-7f0f-4c3a-9a44-2f3f0a2b9f11",
			CreationTimestamp: created, Labels: map[string]string{"app": "web", "tier": "front"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "controller", Operation: "Update", APIVersion: "events.k8s.io/v1", Time: &created, FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:action":{},"f:eventTime":{},"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},` +
					`"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}`)},
			}},
		},
		EventTime:           metav1.NewMicroTime(created.Add(-123456 * time.Microsecond)),
		ReportingController: "example.com/web-controller", ReportingInstance: "web-controller-7d9f", Action: "Starting",
		Reason: "Started", Note: "Started container web of pod web-0 after pulling its image within two seconds", Type: "Normal",
		Regarding: corev1.ObjectReference{
			Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "0c2f5f1e-3f52-4b5d-9d2c-7f1a0b6c8e22", APIVersion: "v1",
			ResourceVersion: "81723", FieldPath: "spec.containers{web}",
		},
	}
}

func BenchmarkDraft(b *testing.B) {
	c, ev := newCodec(b, "k8s.io"), typical()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Draft(ev); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	c := newCodec(b, "k8s.io")
	rec := record(b, c, typical(), 1234567)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Event(rec); err != nil {
			b.Fatal(err)
		}
	}
}

var benchFormats = map[string]codec.Format{
	"JSON": {}, "Protobuf": {Media: codec.Protobuf}, "Table": {As: codec.Table, TableVersion: "v1"},
}

func BenchmarkObject(b *testing.B) {
	c := newCodec(b, "k8s.io")
	rec := record(b, c, typical(), 1234567)
	for name, f := range benchFormats {
		for view, v := range map[string]event.View{"Events": event.EventsV1, "Core": event.CoreV1} {
			b.Run(name+"/"+view, func(b *testing.B) {
				b.ReportAllocs()
				dst := make([]byte, 0, 16<<10)
				for b.Loop() {
					if _, err := c.AppendObject(dst, f, v, rec); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkListItem(b *testing.B) {
	c := newCodec(b, "k8s.io")
	rec := record(b, c, typical(), 1234567)
	for name, f := range benchFormats {
		for view, v := range map[string]event.View{"Events": event.EventsV1, "Core": event.CoreV1} {
			b.Run(name+"/"+view, func(b *testing.B) {
				b.ReportAllocs()
				l, dst := c.NewList(f, v), make([]byte, 0, 16<<10)
				for b.Loop() {
					if l.NeedsMeasure() {
						if err := l.Measure(rec); err != nil {
							b.Fatal(err)
						}
					}
					if _, err := l.AppendItem(dst, rec); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkTrackCreate(b *testing.B) {
	c := newCodec(b, "k8s.io")
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{"Fast": nil, "Library": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ev := typical()
			for b.Loop() {
				ev.ManagedFields = entries
				if err := c.TrackUpdate(event.EventsV1, nil, ev, "controller"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPatch(b *testing.B) {
	c, live := newCodec(b, "k8s.io"), typical()
	patch := []byte(`{"series":{"count":2,"lastObservedTime":"2026-05-04T12:00:00.000000Z"}}`)
	for _, t := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		b.Run(string(t), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next, _, err := c.Patch(event.EventsV1, t, patch, live, "")
				if err != nil {
					b.Fatal(err)
				}
				if err := c.TrackUpdate(event.EventsV1, live, next, "controller"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	c := newCodec(b, "k8s.io")
	sent := typical()
	sent.UID, sent.CreationTimestamp, sent.ManagedFields = "", metav1.Time{}, nil
	rec := record(b, c, sent, 0)
	for name, f := range map[string]codec.Format{"JSON": {}, "Protobuf": {Media: codec.Protobuf}} {
		body, err := c.AppendObject(nil, f, event.EventsV1, rec)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.DecodeEvent(event.EventsV1, f.ContentType(false), body, ""); err != nil {
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
	c := newCodec(b, "k8s.io")
	for name, body := range largeBodies(3<<20 - 1000) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				// What has too many values is refused here, the others where the sizes of an event are checked.
				if _, _, err := c.DecodeEvent(event.EventsV1, jsonType, body, ""); err != nil && !apierrors.IsRequestEntityTooLargeError(err) {
					b.Fatal(err)
				}
			}
		})
	}
}
