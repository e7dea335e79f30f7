package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// only waits until a namespace has exactly one event of the group for which
// the condition holds.
func (s *server) only(t *testing.T, group, ns string, condition func(object) bool) object {
	t.Helper()
	var found object
	eventually(t, "the one event of "+ns, func() error {
		list := s.get(t, in(group, ns)).expect(http.StatusOK).object()
		items, _ := list["items"].([]any)
		if len(items) != 1 || !condition(items[0].(map[string]any)) {
			return fmt.Errorf("have %v", items)
		}
		found = items[0].(map[string]any)
		return nil
	})
	return found
}

// TestEventsBroadcaster is the recorder of the events group: one event, then a
// series of it, over a restart and a deletion (11.1).
func TestEventsBroadcaster(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	adapter := events.NewEventBroadcasterAdapterWithContext(t.Context(), client)
	defer adapter.Shutdown()
	adapter.StartRecordingToSink(t.Context().Done())
	recorder := adapter.NewRecorder("my-controller")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "podx", Namespace: ns, UID: "u1"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pody", Namespace: ns + "-2", UID: "u2"}}

	recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Because", "Act", "note %d", 1)
	first := s.only(t, eventsV1, ns, func(object) bool { return true })
	if !strings.HasPrefix(first.text("metadata.name"), "podx.") || first["series"] != nil || first.text("note") != "note 1" ||
		!strings.HasPrefix(first.text("reportingInstance"), "my-controller-") || first.text("regarding.uid") != "u1" {
		t.Errorf("recorded %v", first)
	}
	s.restart(t)
	recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Because", "Act", "note %d", 2)
	series := s.only(t, eventsV1, ns, func(o object) bool { return o["series"] != nil })
	if series.text("metadata.uid") != first.text("metadata.uid") || marshal(t, series.at("series.count")) != "2" || series.text("note") != "note 1" {
		t.Errorf("series %v", series)
	}

	// The event of a series that is gone is made again.
	recorder.Eventf(other, nil, corev1.EventTypeWarning, "Because", "Act", "once")
	gone := s.only(t, eventsV1, ns+"-2", func(object) bool { return true })
	s.delete(t, in(eventsV1, ns+"-2"), "").expect(http.StatusOK)
	recorder.Eventf(other, nil, corev1.EventTypeWarning, "Because", "Act", "twice")
	again := s.only(t, eventsV1, ns+"-2", func(o object) bool { return o["series"] != nil })
	if again.text("metadata.name") != gone.text("metadata.name") || again.text("metadata.uid") == gone.text("metadata.uid") {
		t.Errorf("made again: %v", again)
	}
}

// TestRecordBroadcaster is the legacy recorder: one event and a count, through
// core, over a restart and a deletion (11.2).
func TestRecordBroadcaster(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "legacy", Host: "h1"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "podx", Namespace: ns, UID: "u1"}}

	counted := func(n string) func(object) bool {
		return func(o object) bool { return fmt.Sprint(o["count"]) == n }
	}
	recorder.Event(pod, corev1.EventTypeNormal, "LReason", "msg")
	first := s.only(t, coreV1, ns, counted("1"))
	equalJSON(t, "source", first["source"], `{"component":"legacy","host":"h1"}`)
	s.restart(t)
	recorder.Event(pod, corev1.EventTypeNormal, "LReason", "msg")
	second := s.only(t, coreV1, ns, counted("2"))
	if second.text("metadata.uid") != first.text("metadata.uid") || second["eventTime"] != nil {
		t.Errorf("counted %v", second)
	}
	s.delete(t, in(coreV1, ns), "").expect(http.StatusOK)
	recorder.Event(pod, corev1.EventTypeNormal, "LReason", "msg")
	again := s.only(t, coreV1, ns, counted("3"))
	if again.text("metadata.uid") == first.text("metadata.uid") {
		t.Errorf("made again: %v", again)
	}
}
