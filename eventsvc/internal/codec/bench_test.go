package codec_test

import (
	"testing"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

func BenchmarkDraft(b *testing.B) {
	c, ev := codectest.New(b, "k8s.io"), eventtest.Typical()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Draft(ev); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	rec := codectest.Record(b, c, eventtest.Typical(), 1234567)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Event(rec); err != nil {
			b.Fatal(err)
		}
	}
}

var benchFormats = map[string]codec.Format{
	"JSON": {}, "Protobuf": {Media: request.Protobuf}, "Table": {As: codec.Table, TableVersion: "v1"},
}

func BenchmarkObject(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	rec := codectest.Record(b, c, eventtest.Typical(), 1234567)
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
	c := codectest.New(b, "k8s.io")
	rec := codectest.Record(b, c, eventtest.Typical(), 1234567)
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
