package event_test

import (
	"testing"

	"tidings.example/eventsvc/internal/event"
)

func BenchmarkValidateCreate(b *testing.B) {
	ev := valid()
	ev.Labels = map[string]string{"app": "web", "tier": "front"}
	b.ReportAllocs()
	for b.Loop() {
		if errs := event.ValidateCreate(event.EventsV1, ev); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func BenchmarkValidateUpdate(b *testing.B) {
	live := full()
	live.ResourceVersion = "1"
	next := live.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if errs := event.ValidateUpdate(event.EventsV1, next, live); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func BenchmarkAttributes(b *testing.B) {
	ev := full()
	b.ReportAllocs()
	for b.Loop() {
		event.AttributesOf(ev)
	}
}
