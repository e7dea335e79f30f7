package codec_test

import (
	"testing"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// TestNote: the note that is read alone is the one of the whole event.
func TestNote(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	r := eventtest.NewRandom(7)
	for i := range 500 {
		ev := r.Event("events.k8s.io/v1")
		if i%5 == 0 {
			ev.Note = ""
		}
		rec := codectest.Record(t, c, ev, 41)
		got, err := codec.Note(rec)
		if err != nil || string(got) != ev.Note {
			t.Fatalf("event %d: note %q, want %q (%v)", i, got, ev.Note, err)
		}
	}
}

// TestNoteAllocates nothing, however many managers an event has.
func TestNoteAllocates(t *testing.T) {
	rec := codectest.Record(t, codectest.New(t, "k8s.io"), eventtest.InSeries(), 41)
	if n := testing.AllocsPerRun(100, func() { _, _ = codec.Note(rec) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNote(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	rec := codectest.Record(b, c, eventtest.Typical(), 1234567)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.Note(rec); err != nil {
			b.Fatal(err)
		}
	}
}
