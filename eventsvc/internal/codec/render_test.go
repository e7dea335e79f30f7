package codec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

var wireFormats = []codec.Format{
	{}, {Pretty: true}, {Media: request.YAML}, {Media: request.Protobuf},
	{As: codec.Partial}, {As: codec.Partial, Pretty: true}, {Media: request.YAML, As: codec.Partial},
	{Media: request.Protobuf, As: codec.Partial},
}

// What goes out is, byte by byte, what the Kubernetes libraries make of the
// same event, in both views, every format and for any group domain.
func TestAppendObjectEqualsLibrary(t *testing.T) {
	t.Parallel()
	for _, domain := range codectest.Domains {
		c := codectest.New(t, domain)
		r := eventtest.NewRandom(uint64(len(domain)))
		for i := range 100 {
			ev := r.Event(c.Group.GroupVersion(event.EventsV1).String())
			revision := []uint64{0, 1, 12345, 1<<64 - 1}[i%4]
			rec := codectest.Record(t, c, ev, revision)
			for _, f := range wireFormats {
				for name, v := range codectest.Views {
					got, err := c.AppendObject([]byte("in front "), f, v, rec)
					if err != nil {
						t.Fatal(err)
					}
					want := codectest.AsView(c, v, ev, revision)
					if f.As == codec.Partial {
						want = asPartial(want)
					}
					if diff := cmp.Diff("in front "+codectest.Library(t, f, want), string(got)); diff != "" {
						t.Fatalf("%s %s %+v, event %d, -library +ours:\n%s", domain, name, f, i, diff)
					}
				}
			}
		}
	}
}

// A byte that JSON escapes is found wherever it is in a text.
func TestEscapesEqualLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for i := range 20 {
		ev := eventtest.Typical()
		ev.Note = strings.Repeat("a", i) + "<" + strings.Repeat("b", 19-i)
		got, err := c.AppendObject(nil, codec.Format{}, event.EventsV1, codectest.Record(t, c, ev, 1))
		if err != nil {
			t.Fatal(err)
		}
		want := codectest.Library(t, codec.Format{}, codectest.AsView(c, event.EventsV1, ev, 1))
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("at %d, -library +ours:\n%s", i, diff)
		}
	}
}

func asPartial(obj runtime.Object) runtime.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	p := meta.AsPartialObjectMetadata(m)
	p.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	return p
}

// Lists of any length are those of the libraries too.
func TestListEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	r := eventtest.NewRandom(7)
	remaining := int64(300)
	for n := range 5 {
		for _, f := range wireFormats {
			for name, v := range codectest.Views {
				listMeta := metav1.ListMeta{ResourceVersion: "99"}
				if n == 3 {
					listMeta.Continue, listMeta.RemainingItemCount = "dG9rZW4", &remaining
				}
				events := make([]*eventsv1.Event, n)
				for i := range events {
					events[i] = r.Event("events.k8s.io/v1")
				}
				got := appendList(t, c, f, v, listMeta, events)
				want := codectest.Library(t, f, libraryList(c, f, v, listMeta, events))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%d events, %s %+v, -library +ours:\n%s", n, name, f, diff)
				}
			}
		}
	}
}

func appendList(t testing.TB, c *codec.Codec, f codec.Format, v event.View, meta metav1.ListMeta, events []*eventsv1.Event) string {
	t.Helper()
	l := c.NewList(f, v)
	if l.NeedsMeasure() {
		for i, ev := range events {
			if err := l.Measure(codectest.Record(t, c, ev, uint64(i)+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := l.AppendHead(nil, meta)
	for i, ev := range events {
		var err error
		if b, err = l.AppendItem(b, codectest.Record(t, c, ev, uint64(i)+1)); err != nil {
			t.Fatal(err)
		}
	}
	return string(l.AppendTail(b))
}

func libraryList(c *codec.Codec, f codec.Format, v event.View, listMeta metav1.ListMeta, events []*eventsv1.Event) runtime.Object {
	partial := &metav1.PartialObjectMetadataList{ListMeta: listMeta, Items: []metav1.PartialObjectMetadata{}}
	partial.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}
	kind := metav1.TypeMeta{Kind: "EventList", APIVersion: c.Group.GroupVersion(v).String()}
	core := &corev1.EventList{TypeMeta: kind, ListMeta: listMeta, Items: []corev1.Event{}}
	ours := &eventsv1.EventList{TypeMeta: kind, ListMeta: listMeta, Items: []eventsv1.Event{}}
	for i, ev := range events {
		obj := codectest.AsView(c, v, ev, uint64(i)+1)
		partial.Items = append(partial.Items, *asPartial(obj).(*metav1.PartialObjectMetadata))
		switch o := obj.(type) {
		case *corev1.Event:
			o.TypeMeta = metav1.TypeMeta{}
			core.Items = append(core.Items, *o)
		case *eventsv1.Event:
			o.TypeMeta = metav1.TypeMeta{}
			ours.Items = append(ours.Items, *o)
		}
	}
	switch {
	case f.As == codec.Partial:
		return partial
	case v == event.CoreV1:
		return core
	default:
		return ours
	}
}

// A stored event decodes to what was stored, with the revision of its write,
// and a store that changes its group domain shows the new one.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	before, after := codectest.New(t, "k8s.io"), codectest.New(t, "example.com")
	r := eventtest.NewRandom(3)
	for range 100 {
		ev := r.Event("events.k8s.io/v1")
		rec := codectest.Record(t, before, ev, 42)
		got, err := before.Event(rec)
		if err != nil {
			t.Fatal(err)
		}
		want := ev.DeepCopy()
		want.ResourceVersion = "42"
		if diff := cmp.Diff(codectest.Library(t, codec.Format{}, want), codectest.Library(t, codec.Format{}, got)); diff != "" {
			t.Fatalf("-stored +decoded:\n%s", diff)
		}
		moved, err := after.Event(rec)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range ev.ManagedFields {
			want := e.APIVersion
			if want == "events.k8s.io/v1" {
				want = "events.example.com/v1"
			}
			if got := moved.ManagedFields[i].APIVersion; got != want {
				t.Errorf("managed fields of %q show %q in the other domain", e.APIVersion, got)
			}
		}
	}
}

// Every character is written as the library writes it, alone and in company.
func TestCharactersEqualLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for char := range rune(0x2100) {
		ev := eventtest.Typical()
		ev.Note, ev.Labels = string(char), map[string]string{"a" + string(char): string(char) + "b"}
		got, err := c.AppendObject(nil, codec.Format{}, event.EventsV1, codectest.Record(t, c, ev, 1))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(codectest.Library(t, codec.Format{}, codectest.AsView(c, event.EventsV1, ev, 1)), string(got)); diff != "" {
			t.Fatalf("%U (-library +ours):\n%s", char, diff)
		}
	}
}
