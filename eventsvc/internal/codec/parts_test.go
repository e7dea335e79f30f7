package codec_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/wire"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/eventsvc/internal/store"
)

// partFormats are all formats that differ in what they are made of.
func partFormats() (fs []codec.Format) {
	for _, media := range []wire.Media{wire.JSON, wire.YAML, wire.Protobuf} {
		for _, as := range []codec.Transform{codec.None, codec.Partial} {
			fs = append(fs, codec.Format{Media: media, As: as})
		}
	}
	for _, media := range []wire.Media{wire.JSON, wire.YAML} {
		for _, include := range []metav1.IncludeObjectPolicy{"", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject} {
			fs = append(fs, codec.Format{Media: media, As: codec.Table, TableVersion: "v1", IncludeObject: include})
		}
	}
	return append(fs, codec.Format{Pretty: true}, codec.Format{As: codec.Partial, Pretty: true})
}

// answers are an event as an object and in a list.
func answers(t *testing.T, c *codec.Codec, f codec.Format, v event.View, rec *store.Record) string {
	t.Helper()
	object, err := c.AppendObject(nil, f, v, rec)
	if err != nil {
		t.Fatal(err)
	}
	l := c.NewList(f, v)
	if l.NeedsMeasure() {
		if err := l.Measure(rec); err != nil {
			t.Fatal(err)
		}
	}
	list, err := l.AppendItem(l.AppendHead(nil, metav1.ListMeta{}), rec)
	if err != nil {
		t.Fatal(err)
	}
	return string(object) + string(l.AppendTail(list))
}

// R13: what a format does not use of a value may be anything: nobody has
// verified it.
func TestFormatsReadWhatTheyUse(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	r := eventtest.NewRandom(13)
	for name, ev := range map[string]*eventsv1.Event{
		"typical": eventtest.Typical(), "in series": eventtest.InSeries(), "old style": oldStyle(), "random": r.Event("events.k8s.io/v1"), "other": r.Event("v1"),
	} {
		d, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Parted() || d.Value[d.First] != '{' || d.Value[d.Second-1] != '}' {
			t.Fatalf("%s: the first part is not the JSON: %d to %d of %q", name, d.First, d.Second, d.Value)
		}
		good := codectest.RecordOf(ev, d, 41)
		for _, f := range partFormats() {
			for viewName, v := range codectest.Views {
				want := answers(t, c, f, v, good)
				for _, other := range []byte{0, 'x', 0xff} {
					spoiled := codectest.RecordOf(ev, d, 41)
					spoiled.Value = unusedSetTo(d, f.Uses(), other)
					if diff := cmp.Diff(want, answers(t, c, f, v, spoiled)); diff != "" {
						t.Errorf("%s as %+v of %s depends on more than it uses: %s", name, f, viewName, diff)
					}
				}
			}
		}
	}
}

// unusedSetTo is a value of which everything that is not used is one byte.
func unusedSetTo(d store.Draft, uses store.Part, other byte) []byte {
	value := bytes.Clone(d.Value)
	var unused []byte
	switch uses {
	case store.FirstPart:
		unused = value[d.Second:]
	case store.SecondPart:
		unused = value[d.First:d.Second]
	}
	for i := range unused {
		unused[i] = other
	}
	return value
}

func TestUses(t *testing.T) {
	t.Parallel()
	for want, fs := range map[store.Part][]codec.Format{
		store.FirstPart:  {{}, {Media: wire.YAML}, {As: codec.Partial}, {Pretty: true}},
		store.SecondPart: {{Media: wire.Protobuf}, {Media: wire.Protobuf, As: codec.Partial}, {As: codec.Table, IncludeObject: metav1.IncludeNone}},
		store.WholeValue: {{As: codec.Table}, {As: codec.Table, IncludeObject: metav1.IncludeObject}},
	} {
		for _, f := range fs {
			if got := f.Uses(); got != want {
				t.Errorf("%+v uses %d, want %d", f, got, want)
			}
		}
	}
}
