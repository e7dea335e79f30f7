package codec_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/eventsvc/internal/store"
)

// useValue does with a value whatever can be done with one. Nothing may panic,
// and what is refused is refused as damaged.
func useValue(t testing.TB, c *codec.Codec, rec *store.View) error {
	t.Helper()
	var first error
	note := func(err error) {
		var corrupt *store.CorruptError
		if err != nil && (!errors.As(err, &corrupt) || corrupt.Key != rec.Key || corrupt.Revision != rec.Revision) {
			t.Errorf("error %v is not about this record", err)
		}
		if first == nil {
			first = err
		}
	}
	_, err := c.Event(rec)
	note(err)
	_, err = codec.Note(rec)
	note(err)
	for _, v := range codectest.Views {
		for _, f := range []codec.Format{{}, {Media: request.Protobuf}, {As: codec.Partial}, {Media: request.Protobuf, As: codec.Partial}, {As: codec.Table, TableVersion: "v1"}} {
			_, err := c.AppendObject(nil, f, v, rec)
			note(err)
			l := c.NewList(f, v)
			if l.NeedsMeasure() {
				note(l.Measure(rec))
			}
			_, err = l.AppendItem(l.AppendHead(nil, metav1.ListMeta{}), rec)
			note(err)
			frames := c.NewFrames(f, v)
			_, err = frames.AppendInitial(nil, rec)
			note(err)
			version := &store.Version{Record: store.Record(*rec)}
			_, err = frames.AppendDelivery(nil, store.Delivery{Type: store.Modified, Object: version, Revision: 9})
			note(err)
			_, err = frames.AppendDelivery(nil, store.Delivery{Type: store.Removed, Object: version, Revision: 9})
			note(err)
		}
	}
	return first
}

// Any byte of a value may be damaged, and a value may end anywhere.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	good := codectest.Record(t, c, eventtest.InSeries(), 41)
	if err := useValue(t, c, good); err != nil {
		t.Fatal(err)
	}
	for n := range good.Value {
		rec := *good
		rec.Value = good.Value[:n]
		if useValue(t, c, &rec) == nil {
			t.Errorf("a value cut off after %d bytes is accepted", n)
		}
	}
	for at := range 120 {
		for _, bit := range []byte{1, 4, 0x40, 0x80} {
			rec := *good
			rec.Value = slices.Clone(good.Value)
			rec.Value[at] ^= bit
			useValue(t, c, &rec) //nolint:errcheck // only that nothing panics: not every bit shows
		}
	}
	more := *good
	more.Value = append(slices.Clone(good.Value), 'x')
	if useValue(t, c, &more) == nil {
		t.Error("a value with a byte too much is accepted")
	}
}

func FuzzStoredValue(f *testing.F) {
	c := codectest.New(f, "k8s.io")
	r := eventtest.NewRandom(2)
	f.Add(codectest.Record(f, c, eventtest.InSeries(), 1).Value, uint64(1))
	f.Add(codectest.Record(f, c, oldStyle(), 1).Value, uint64(0))
	f.Add(codectest.Record(f, c, r.Event("events.k8s.io/v1"), 1).Value, uint64(1<<63))
	f.Fuzz(func(t *testing.T, value []byte, revision uint64) {
		rec := &store.View{Key: store.Key{Namespace: "n", Name: "e"}, Revision: revision, Value: value}
		before := bytes.Clone(value)
		useValue(t, c, rec) //nolint:errcheck // only that nothing panics
		if !bytes.Equal(before, value) {
			t.Error("the value was changed")
		}
	})
}

// Attributes are taken along, and the resourceVersion of the writer is not.
func TestDraft(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	a, b := eventtest.Typical(), eventtest.Typical()
	b.ResourceVersion, b.Kind, b.APIVersion = "12345", "Event", "v1"
	first, second := codectest.Record(t, c, a, 1), codectest.Record(t, c, b, 1)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("stored with and without resourceVersion and kind:\n%s", diff)
	}
	if !bytes.Equal(first.Attributes, event.AttributesOf(a)) {
		t.Error("the attributes are those of another event")
	}
	if b.ResourceVersion != "12345" || b.ManagedFields[0].APIVersion != "events.k8s.io/v1" {
		t.Error("the event was changed")
	}
}

// What cannot be shown as JSON must not be stored: managed fields in protobuf
// may hold anything.
func TestDraftRefusesBadFields(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.Typical()
	ev.ManagedFields[0].FieldsV1.Raw = []byte("{")
	if _, err := c.Draft(ev); err == nil {
		t.Error("managed fields that are no JSON are stored")
	}
}
