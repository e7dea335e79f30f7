package codec_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

var allViews = map[string]event.View{"events.k8s.io/v1": event.EventsV1, "v1": event.CoreV1}

func newCodec(t testing.TB, domain string) *codec.Codec {
	t.Helper()
	c, err := codec.New(domain)
	if err != nil {
		t.Fatal(err)
	}
	c.Now = func() time.Time { return time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC) }
	return c
}

// record stores an event as the store would.
func record(t testing.TB, c *codec.Codec, ev *eventsv1.Event, revision uint64) *store.Record {
	t.Helper()
	d, err := c.Draft(ev)
	if err != nil {
		t.Fatal(err)
	}
	return recordOf(ev, d, revision)
}

func recordOf(ev *eventsv1.Event, d store.Draft, revision uint64) *store.Record {
	return &store.Record{
		Key:        store.Key{Namespace: ev.Namespace, Name: ev.Name},
		Revision:   revision,
		Attributes: d.Attributes,
		Value:      d.Value,
	}
}

// asView is the object that the original would encode.
func asView(c *codec.Codec, v event.View, ev *eventsv1.Event, revision uint64) runtime.Object {
	shown := ev.DeepCopy()
	shown.ResourceVersion = ""
	if revision > 0 {
		shown.ResourceVersion = strconv.FormatUint(revision, 10)
	}
	shown.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: c.GroupVersion(v).String()}
	if v == event.CoreV1 {
		return event.ToCore(shown)
	}
	return shown
}

// library encodes with the serializers of the Kubernetes libraries.
func library(t testing.TB, f codec.Format, obj runtime.Object) string {
	t.Helper()
	var b bytes.Buffer
	var s runtime.Encoder
	switch f.Media {
	case codec.Protobuf:
		s = protobuf.NewSerializer(nil, nil)
	default:
		s = json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil,
			json.SerializerOptions{Yaml: f.Media == codec.YAML, Pretty: f.Pretty})
	}
	if err := s.Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// random makes events of every shape.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

var awkward = []string{
	"", "a", "plain text", `quote " and \ backslash`, "<b>&amp;</b>", "tab\tline\nreturn\r", "\x00\x01\x1f",
	"Grüße, 世界 🎉", "\u2028\u2029", "key: value # not yaml", "- item", "yes", "0123", "null", `{"json":[1]}`,
	"a long text that goes on and on until it is longer than a line of YAML is wide, which is eighty columns or so",
}

func (r random) text() string {
	s := awkward[r.IntN(len(awkward))]
	if r.IntN(4) == 0 {
		s += awkward[r.IntN(len(awkward))]
	}
	return s
}

func (r random) sometimes(s string) string {
	if r.IntN(3) == 0 {
		return ""
	}
	return s
}

func (r random) time() metav1.Time {
	if r.IntN(3) == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(r.Int64N(4e9)+1, 0)
}

func (r random) microTime() metav1.MicroTime {
	if r.IntN(3) == 0 {
		return metav1.MicroTime{}
	}
	return metav1.NewMicroTime(time.Unix(r.Int64N(4e9)+1, r.Int64N(1e6)*1000))
}

func (r random) dict() map[string]string {
	if r.IntN(2) == 0 {
		return nil
	}
	m := map[string]string{}
	for range r.IntN(4) {
		m[r.text()] = r.text()
	}
	return m
}

func (r random) reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: r.text(), Namespace: r.text(), Name: r.text(), UID: types.UID(r.text()),
		APIVersion: r.text(), ResourceVersion: r.text(), FieldPath: r.text(),
	}
}

func (r random) meta(groupVersion string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: r.sometimes(r.text()), GenerateName: r.sometimes(r.text()), Namespace: r.sometimes(r.text()),
		SelfLink: r.sometimes(r.text()), UID: types.UID(r.sometimes(r.text())), ResourceVersion: r.sometimes("77"),
		Generation: int64(r.IntN(2)), CreationTimestamp: r.time(), Labels: r.dict(), Annotations: r.dict(),
	}
	if r.IntN(4) == 0 {
		deleted, grace := metav1.Unix(r.Int64N(4e9)+1, 0), r.Int64N(3)
		m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &deleted, &grace
	}
	for range r.IntN(3) {
		yes := r.IntN(2) == 0
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: r.text(), Kind: r.text(), Name: r.text(), UID: types.UID(r.text()), Controller: &yes,
		})
		m.Finalizers = append(m.Finalizers, r.text())
	}
	for range r.IntN(4) {
		at := metav1.Unix(r.Int64N(4e9)+1, 0)
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: r.text(), Operation: "Update", FieldsType: "FieldsV1", Subresource: r.sometimes(r.text()), Time: &at,
			APIVersion: []string{groupVersion, "v1", "", "0", "events.k8s.io/v1"}[r.IntN(5)],
			FieldsV1:   &metav1.FieldsV1{Raw: fmt.Appendf(nil, `{"f:metadata":{"f:labels":{"k:{\"a\":\"%d\"}":{}}}}`, r.IntN(9))},
		})
	}
	return m
}

func (r random) event(groupVersion string) *eventsv1.Event {
	ev := &eventsv1.Event{
		ObjectMeta: r.meta(groupVersion), EventTime: r.microTime(), ReportingController: r.text(),
		ReportingInstance: r.text(), Action: r.text(), Reason: r.text(), Note: r.text(), Type: r.text(),
		DeprecatedSource:         corev1.EventSource{Component: r.text(), Host: r.text()},
		DeprecatedFirstTimestamp: r.time(), DeprecatedLastTimestamp: r.time(),
		DeprecatedCount: int32(r.IntN(3)) - 1,
	}
	if r.IntN(4) > 0 {
		ev.Regarding = r.reference()
	}
	if r.IntN(2) == 0 {
		related := r.reference()
		ev.Related = &related
	}
	if r.IntN(2) == 0 {
		ev.Series = &eventsv1.EventSeries{Count: int32(r.IntN(3)), LastObservedTime: r.microTime()}
	}
	return ev
}
