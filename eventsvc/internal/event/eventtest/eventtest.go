// Package eventtest makes events for tests.
package eventtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
)

// Random makes events of every shape.
type Random struct{ *rand.Rand }

// NewRandom returns a generator that makes the same events for the same seed.
func NewRandom(seed uint64) Random { return Random{rand.New(rand.NewPCG(seed, 1))} }

var awkward = []string{
	"", "a", "plain text", `quote " and \ backslash`, "<b>&amp;</b>", "tab\tline\nreturn\r", "\x00\x01\x1f",
	"Grüße, 世界 🎉", "\u2028\u2029", "key: value # not yaml", "- item", "yes", "0123", "null", `{"json":[1]}`,
	"a long text that goes on and on until it is longer than a line of YAML is wide, which is eighty columns or so",
}

// Text is one or two of the strings that encoders get wrong.
func (r Random) Text() string {
	s := awkward[r.IntN(len(awkward))]
	if r.IntN(4) == 0 {
		s += awkward[r.IntN(len(awkward))]
	}
	return s
}

func (r Random) sometimes(s string) string {
	if r.IntN(3) == 0 {
		return ""
	}
	return s
}

func (r Random) time() metav1.Time {
	if r.IntN(3) == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(r.Int64N(4e9)+1, 0)
}

func (r Random) microTime() metav1.MicroTime {
	if r.IntN(3) == 0 {
		return metav1.MicroTime{}
	}
	return metav1.NewMicroTime(time.Unix(r.Int64N(4e9)+1, r.Int64N(1e6)*1000))
}

func (r Random) dict() map[string]string {
	if r.IntN(2) == 0 {
		return nil
	}
	m := map[string]string{}
	for range r.IntN(4) {
		m[r.Text()] = r.Text()
	}
	return m
}

func (r Random) reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: r.Text(), Namespace: r.Text(), Name: r.Text(), UID: types.UID(r.Text()),
		APIVersion: r.Text(), ResourceVersion: r.Text(), FieldPath: r.Text(),
	}
}

func (r Random) meta(groupVersion string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: r.sometimes(r.Text()), GenerateName: r.sometimes(r.Text()), Namespace: r.sometimes(r.Text()),
		SelfLink: r.sometimes(r.Text()), UID: types.UID(r.sometimes(r.Text())), ResourceVersion: r.sometimes("77"),
		Generation: int64(r.IntN(2)), CreationTimestamp: r.time(), Labels: r.dict(), Annotations: r.dict(),
	}
	if r.IntN(4) == 0 {
		deleted, grace := metav1.Unix(r.Int64N(4e9)+1, 0), r.Int64N(3)
		m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &deleted, &grace
	}
	for range r.IntN(3) {
		yes := r.IntN(2) == 0
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: r.Text(), Kind: r.Text(), Name: r.Text(), UID: types.UID(r.Text()), Controller: &yes,
		})
		m.Finalizers = append(m.Finalizers, r.Text())
	}
	for range r.IntN(4) {
		at := metav1.Unix(r.Int64N(4e9)+1, 0)
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: r.Text(), Operation: "Update", FieldsType: "FieldsV1", Subresource: r.sometimes(r.Text()), Time: &at,
			APIVersion: []string{groupVersion, "v1", "", "0", "events.k8s.io/v1"}[r.IntN(5)],
			FieldsV1:   &metav1.FieldsV1{Raw: fmt.Appendf(nil, `{"f:metadata":{"f:labels":{"k:{\"a\":\"%d\"}":{}}}}`, r.IntN(9))},
		})
	}
	return m
}

// Event has any member or none. Some of its managed fields are of groupVersion.
func (r Random) Event(groupVersion string) *eventsv1.Event {
	ev := &eventsv1.Event{
		ObjectMeta: r.meta(groupVersion), EventTime: r.microTime(), ReportingController: r.Text(),
		ReportingInstance: r.Text(), Action: r.Text(), Reason: r.Text(), Note: r.Text(), Type: r.Text(),
		DeprecatedSource:         corev1.EventSource{Component: r.Text(), Host: r.Text()},
		DeprecatedFirstTimestamp: r.time(), DeprecatedLastTimestamp: r.time(),
		DeprecatedCount: int32(r.IntN(3)) - 1,
	}
	if r.IntN(4) > 0 {
		ev.Regarding = r.reference()
	}
	if r.IntN(2) == 0 {
		ev.Related = new(r.reference())
	}
	if r.IntN(2) == 0 {
		ev.Series = &eventsv1.EventSeries{Count: int32(r.IntN(3)), LastObservedTime: r.microTime()}
	}
	return ev
}

// Plain is an event as clients create them: mostly simple, sometimes with what
// only the library handles.
func (r Random) Plain() *eventsv1.Event {
	ev := r.Event("")
	ev.ManagedFields, ev.DeletionTimestamp, ev.DeletionGracePeriodSeconds = nil, nil, nil
	if r.IntN(8) > 0 {
		ev.OwnerReferences, ev.Finalizers = nil, nil
	}
	if r.IntN(8) > 0 {
		ev.Labels = map[string]string{"app.kubernetes.io/name": r.Text(), "b": "", "B-c_d": r.Text()}
		ev.Annotations = map[string]string{"example.com/note~1": r.Text()}
	}
	return ev
}

// MergePatch makes merge patches of both views, most of which only set values.
func (r Random) MergePatch(v event.View) string {
	quoted := func() string {
		b, err := json.Marshal(r.Text())
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	time := `"2026-05-04T12:00:00.000000Z"`
	note, ref, count := "note", "regarding", "deprecatedCount"
	if v == event.CoreV1 {
		note, ref, count = "message", "involvedObject", "count"
	}
	members := []string{
		`"` + note + `":` + quoted(), `"type":` + quoted(), `"reason":""`, fmt.Sprintf(`"%s":%d`, count, r.IntN(3)),
		fmt.Sprintf(`"series":{"count":%d,"lastObservedTime":%s}`, r.IntN(3), time), `"series":{"count":7}`, `"series":{}`,
		`"metadata":{"labels":{"b":` + quoted() + `,` + quoted() + `:"x"}}`, `"metadata":{"labels":{}}`,
		`"metadata":{"annotations":{"new":` + quoted() + `},"resourceVersion":"9"}`, `"metadata":{"name":"other"}`,
		`"` + ref + `":{"name":` + quoted() + `}`, `"related":{"kind":"Node"}`, `"eventTime":` + time,
		// What is not plain.
		`"series":null`, `"metadata":{"labels":{"b":null}}`, `"metadata":{"finalizers":["a/b"]}`, `"unknown":1`, `"type":1`,
	}
	var chosen []string
	for _, i := range r.Perm(len(members))[:1+r.IntN(3)] {
		chosen = append(chosen, members[i])
	}
	return "{" + strings.Join(chosen, ",") + "}"
}

// Typical is an event as the stock recorder makes it, of about 1 kB.
func Typical() *eventsv1.Event {
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

// InSeries is Typical in a series of three.
func InSeries() *eventsv1.Event {
	ev := Typical()
	ev.Series = &eventsv1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(time.Date(2026, 5, 4, 12, 55, 0, 0, time.UTC))}
	return ev
}
