package event_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

var moment = metav1.Date(2026, 5, 4, 12, 0, 0, 123456000, time.UTC)

// valid is a new event that both views accept.
func valid() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: "e", Namespace: "shop"},
		EventTime:           metav1.MicroTime(moment),
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-1",
		Action:              "Start",
		Reason:              "Started",
		Note:                "It started.",
		Type:                "Normal",
		Regarding:           corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0", APIVersion: "v1"},
	}
}

// full is an event with something in every field.
func full() *eventsv1.Event {
	ev := valid()
	ev.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
	ev.Labels = map[string]string{"app": "web"}
	ev.Related = &corev1.ObjectReference{Kind: "Node", Name: "n1"}
	ev.Series = &eventsv1.EventSeries{Count: 3, LastObservedTime: metav1.MicroTime(moment)}
	ev.DeprecatedSource = corev1.EventSource{Component: "kubelet", Host: "n1"}
	ev.DeprecatedFirstTimestamp = moment
	ev.DeprecatedLastTimestamp = moment
	ev.DeprecatedCount = 7
	return ev
}

// TestConversionIsLossless: both views hold the same data, and nothing is derived.
func TestConversionIsLossless(t *testing.T) {
	t.Parallel()
	for name, ev := range map[string]*eventsv1.Event{"full": full(), "valid": valid(), "empty": {}} {
		if diff := cmp.Diff(ev, event.FromCore(event.ToCore(ev))); diff != "" {
			t.Errorf("%s: there and back (-before +after):\n%s", name, diff)
		}
	}
	got := event.ToCore(full())
	want := &corev1.Event{
		TypeMeta: full().TypeMeta, ObjectMeta: full().ObjectMeta, InvolvedObject: full().Regarding,
		Reason: "Started", Message: "It started.", Source: corev1.EventSource{Component: "kubelet", Host: "n1"},
		FirstTimestamp: moment, LastTimestamp: moment, Count: 7, Type: "Normal", EventTime: metav1.MicroTime(moment),
		Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.MicroTime(moment)}, Action: "Start",
		Related: full().Related, ReportingController: "example.com/controller", ReportingInstance: "controller-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("core/v1 (-want +got):\n%s", diff)
	}
}
