package fields_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// The fast path for new events gives what the library gives. An empty list of
// managed fields removes those that are there, so the library answers the same
// question for it.
func TestTrackCreateEqualsLibrary(t *testing.T) {
	t.Parallel()
	for _, domain := range codectest.Domains {
		c := codectest.New(t, domain)
		r := eventtest.NewRandom(11)
		for i := range 120 {
			for name, v := range codectest.Views {
				fast := r.Plain()
				slow := fast.DeepCopy()
				slow.ManagedFields = []metav1.ManagedFieldsEntry{}
				manager := []string{"controller", "", "Grüße"}[i%3]
				for _, ev := range []*eventsv1.Event{fast, slow} {
					if err := c.Decoder.Fields.Update(v, nil, ev, manager); err != nil {
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

func TestUpdate(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "example.com")
	created := eventtest.Typical()
	created.ManagedFields = nil
	if err := c.Decoder.Fields.Update(event.EventsV1, nil, created, "recorder"); err != nil {
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
		if err := c.Decoder.Fields.Update(v, created, next, "kubectl-patch"); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range next.ManagedFields {
			got[e.Manager+" "+e.APIVersion] = string(e.FieldsV1.Raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: managed fields (-want +got):\n%s", c.Group.GroupVersion(v), diff)
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
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
		changed := eventtest.Typical()
		tt.change(changed)
		if got := fields.Same(eventtest.Typical(), changed); got != tt.same {
			t.Errorf("after a change of %s the same: %v", name, got)
		}
	}
}

// The same for what one manager changes.
func TestTrackPlainEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "example.com")
	r := eventtest.NewRandom(19)
	plain := 0
	for range 600 {
		for _, v := range codectest.Views {
			stored := r.Plain()
			stored.UID = "u"
			if err := c.Decoder.Fields.Update(v, nil, stored, "controller"); err != nil {
				t.Fatal(err)
			}
			stored = codectest.Live(t, c, stored)
			fast := change(t, r, c, v, stored)
			slow := fast.DeepCopy()
			if !fields.TrackPlain(c.Decoder.Fields, v, stored, fast, "controller") {
				continue
			}
			plain++
			if err := fields.TrackFully(c.Decoder.Fields, v, stored, slow, "controller"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(untimed(t, slow), untimed(t, fast)); diff != "" {
				t.Fatalf("(-library +ours):\n%s", diff)
			}
			if sameTime := fast.ManagedFields[0].Time.Equal(stored.ManagedFields[0].Time); sameTime != slow.ManagedFields[0].Time.Equal(stored.ManagedFields[0].Time) {
				t.Fatalf("the time stays: %v, which is not what the library does (-before +after):\n%s", sameTime, cmp.Diff(stored, slow))
			}
		}
	}
	if plain < 300 {
		t.Errorf("only %d of 1200 changes were plain: the test does not tell", plain)
	}
}

// change is what a put or patch makes of a stored event.
func change(t *testing.T, r eventtest.Random, c *codec.Codec, v event.View, stored *eventsv1.Event) *eventsv1.Event {
	t.Helper()
	if r.IntN(8) == 0 {
		next := r.Plain()
		next.Name, next.Namespace, next.UID = stored.Name, stored.Namespace, stored.UID
		return next
	}
	next, _, err := c.Decoder.Patch(v, types.MergePatchType, []byte(r.MergePatch(v)), stored, "")
	if err != nil {
		return stored.DeepCopy()
	}
	return next
}
func BenchmarkCreate(b *testing.B) {
	c := codectest.New(b, "k8s.io")
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{"Fast": nil, "Library": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ev := eventtest.Typical()
			for b.Loop() {
				ev.ManagedFields = entries
				if err := c.Decoder.Fields.Update(event.EventsV1, nil, ev, "controller"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
