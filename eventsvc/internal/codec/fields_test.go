package codec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
)

// plain is an event as clients create them: mostly simple, sometimes with what
// only the library handles.
func (r random) plain() *eventsv1.Event {
	ev := r.event("")
	ev.ManagedFields, ev.DeletionTimestamp, ev.DeletionGracePeriodSeconds = nil, nil, nil
	if r.IntN(8) > 0 {
		ev.OwnerReferences, ev.Finalizers = nil, nil
	}
	if r.IntN(8) > 0 {
		ev.Labels = map[string]string{"app.kubernetes.io/name": r.text(), "b": "", "B-c_d": r.text()}
		ev.Annotations = map[string]string{"example.com/note~1": r.text()}
	}
	return ev
}

// The fast path for new events gives what the library gives. A client that
// sends an empty list of managed fields starts anew in the library, which makes
// it the same question.
func TestTrackCreateEqualsLibrary(t *testing.T) {
	t.Parallel()
	for _, domain := range domains {
		c := newCodec(t, domain)
		r := newRandom(11)
		for i := range 120 {
			for name, v := range allViews {
				fast := r.plain()
				slow := fast.DeepCopy()
				slow.ManagedFields = []metav1.ManagedFieldsEntry{}
				manager := []string{"controller", "", "Grüße"}[i%3]
				for _, ev := range []*eventsv1.Event{fast, slow} {
					if err := c.TrackUpdate(v, nil, ev, manager); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(untimed(t, slow), untimed(t, fast)); diff != "" {
					t.Fatalf("%s %s, event %d, -library +ours:\n%s", domain, name, i, diff)
				}
			}
		}
	}
}

// untimed is the managed fields without their times, which must be recent.
func untimed(t *testing.T, ev *eventsv1.Event) []metav1.ManagedFieldsEntry {
	t.Helper()
	entries := ev.DeepCopy().ManagedFields
	for i := range entries {
		if at := entries[i].Time; at == nil || time.Since(at.Time) > time.Hour {
			t.Fatalf("managed fields have the time %v", at)
		}
		entries[i].Time = nil
	}
	return entries
}

func TestTrackUpdate(t *testing.T) {
	t.Parallel()
	c := newCodec(t, "example.com")
	created := typical()
	created.ManagedFields = nil
	if err := c.TrackUpdate(event.EventsV1, nil, created, "recorder"); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[event.View]map[string]string{
		event.EventsV1: {
			"recorder events.example.com/v1": `{"f:action":{},"f:eventTime":{},"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},` +
				`"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}`,
			"kubectl-patch events.example.com/v1": `{"f:note":{},"f:series":{".":{},"f:count":{},"f:lastObservedTime":{}}}`,
		},
		event.CoreV1: { // which does not know the other group's kinds
			"kubectl-patch v1": `{"f:message":{},"f:series":{".":{},"f:count":{},"f:lastObservedTime":{}}}`,
		},
	} {
		next := created.DeepCopy()
		next.Note = "changed"
		next.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
		if err := c.TrackUpdate(v, created, next, "kubectl-patch"); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range next.ManagedFields {
			got[e.Manager+" "+e.APIVersion] = string(e.FieldsV1.Raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: managed fields (-want +got):\n%s", c.GroupVersion(v), diff)
		}
	}
}

func TestSameObject(t *testing.T) {
	t.Parallel()
	c := newCodec(t, "k8s.io")
	for name, tt := range map[string]struct {
		change func(*eventsv1.Event)
		same   bool
	}{
		"nothing":                {func(*eventsv1.Event) {}, true},
		"resourceVersion":        {func(ev *eventsv1.Event) { ev.ResourceVersion = "7" }, true},
		"time of managed fields": {func(ev *eventsv1.Event) { ev.ManagedFields[0].Time = nil }, true},
		"empty for nil":          {func(ev *eventsv1.Event) { ev.Annotations = map[string]string{} }, true},
		"managed fields":         {func(ev *eventsv1.Event) { ev.ManagedFields[0].Manager = "x" }, false},
		"note":                   {func(ev *eventsv1.Event) { ev.Note = "x" }, false},
		"label":                  {func(ev *eventsv1.Event) { ev.Labels["app"] = "x" }, false},
		"related":                {func(ev *eventsv1.Event) { ev.Related = &corev1.ObjectReference{} }, false},
	} {
		changed := typical()
		tt.change(changed)
		if got := c.SameObject(typical(), changed); got != tt.same {
			t.Errorf("after a change of %s the same: %v", name, got)
		}
	}
}

// TestAppendSet: a set of fields is written as encoding/json has it, or refused
// as there, whether the short way can be taken or not.
func TestAppendSet(t *testing.T) {
	t.Parallel()
	for set, plain := range map[string]bool{
		`{}`:            true,
		`{"f:note":{}}`: true,
		`{"f:metadata":{"f:labels":{".":{},"f:a/b":{}}},"f:series":{".":{},"f:count":{}},"f:type":{}}`: true,
		`{"":{}}`:                           true,
		`{ "f:note": {} }`:                  false,
		`{"f:a":{"k:{\"type\":\"x\"}":{}}}`: false,
		`{"f:<":{}}`:                        false,
		`{"f:ü":{}}`:                        false,
		`{"f:a":[]}`:                        false,
		`{"f:a":{},"f:b":null}`:             false,
		`{"f:a":{}`:                         false,
		`{"f:a":{}}}`:                       false,
		`{"f:a":{},}`:                       false,
		`{"f:a":{}"f:b":{}}`:                false,
		`{,"f:a":{}}`:                       false,
		`{{}}`:                              false,
		`{}{}`:                              false,
		`{"f:a"{}}`:                         false,
		`{"f:a":}`:                          false,
		`{"f:a`:                             false,
		`}`:                                 false,
		strings.Repeat(`{"f:a":`, 9) + "{}" + strings.Repeat("}", 9): false,
		`null`: false,
		``:     false,
	} {
		got, short, err := codec.AppendSet(set)
		want, wantErr := json.Marshal(&metav1.FieldsV1{Raw: []byte(set)})
		if short != plain || (err == nil) != (wantErr == nil) {
			t.Errorf("%s is plain: %t, want %t; error %v, want %v", set, short, plain, err, wantErr)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
}
