// Package codectest has what tests of codecs share.
package codectest

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Views are both views, by apiVersion.
var Views = map[string]event.View{"events.k8s.io/v1": event.EventsV1, "v1": event.CoreV1}

// New makes a codec whose clock stands still.
func New(t testing.TB, domain string) *codec.Codec {
	t.Helper()
	c, err := codec.New(domain)
	if err != nil {
		t.Fatal(err)
	}
	c.Now = func() time.Time { return time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC) }
	return c
}

// Record stores an event as the store would.
func Record(t testing.TB, c *codec.Codec, ev *eventsv1.Event, revision uint64) *store.View {
	t.Helper()
	d, err := c.Draft(ev)
	if err != nil {
		t.Fatal(err)
	}
	return RecordOf(ev, d, revision)
}

// RecordOf is a record as the store makes it of a draft.
func RecordOf(ev *eventsv1.Event, d store.Draft, revision uint64) *store.View {
	return &store.View{
		Key:        store.Key{Namespace: ev.Namespace, Name: ev.Name},
		Revision:   revision,
		Attributes: d.Attributes,
		Value:      d.Value,
	}
}

// AsView is the object that the original would encode.
func AsView(c *codec.Codec, v event.View, ev *eventsv1.Event, revision uint64) runtime.Object {
	shown := ev.DeepCopy()
	shown.ResourceVersion = ""
	if revision > 0 {
		shown.ResourceVersion = strconv.FormatUint(revision, 10)
	}
	shown.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: c.Group.GroupVersion(v).String()}
	if v == event.CoreV1 {
		return event.ToCore(shown)
	}
	return shown
}

// Library encodes with the serializers of the Kubernetes libraries.
func Library(t testing.TB, f codec.Format, obj runtime.Object) string {
	t.Helper()
	var b bytes.Buffer
	var s runtime.Encoder = protobuf.NewSerializer(nil, nil)
	if f.Media != request.Protobuf {
		s = json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil,
			json.SerializerOptions{Yaml: f.Media == request.YAML, Pretty: f.Pretty})
	}
	if err := s.Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Domains longer and shorter than the default, one so long that lengths in
// protobuf take a second byte.
var Domains = []string{
	"k8s.io", "a.b",
	"a-rather-long-domain-name-of-a-company.with-departments.and-sections.and-teams.and-more-of-the-same.example.com",
}

// Live is a stored event, as Event returns it.
func Live(t testing.TB, c *codec.Codec, ev *eventsv1.Event) *eventsv1.Event {
	t.Helper()
	got, err := c.Event(Record(t, c, ev, 41))
	if err != nil {
		t.Fatal(err)
	}
	return got
}
