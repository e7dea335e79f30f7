package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// wires are the ways in which client-go may talk to the server.
func wires(s *server) map[string]*rest.Config {
	binary, text, plain := s.config(), s.config(), s.plainConfig()
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	text.ContentType = runtime.ContentTypeJSON
	plain.ContentType = runtime.ContentTypeJSON
	return map[string]*rest.Config{"protobuf over HTTP2": binary, "JSON over HTTP2": text, "JSON over HTTP1": plain}
}

// restarter starts the server again before every fourth request. Its user
// sends one request at a time.
type restarter struct {
	http.RoundTripper
	t        *testing.T
	server   *server
	requests int
}

// RoundTrip sends a request.
func (r *restarter) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.requests++; r.requests%4 == 0 {
		r.server.restart(r.t)
		utilnet.CloseIdleConnectionsFor(r.RoundTripper)
	}
	return r.RoundTripper.RoundTrip(req)
}

// overWires runs a test over each of them, in a namespace of its own, and once
// more with a server that is started again every few requests.
func overWires(t *testing.T, s *server, test func(t *testing.T, client kubernetes.Interface, ns string)) {
	t.Helper()
	all := wires(s)
	restarts := s.plainConfig()
	restarts.Wrap(func(next http.RoundTripper) http.RoundTripper { return &restarter{RoundTripper: next, t: t, server: s} })
	all["over restarts"] = restarts
	for name, config := range all {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			test(t, client, fmt.Sprintf("%s-%x", namespace(t)[:20], time.Now().UnixNano()))
		})
	}
}

// The four tests of this file ask what the Events conformance tests of
// Kubernetes ask of a cluster.

// TestConformanceLifecycle fetches, patches, updates, deletes and lists an
// event through the events group (12.1).
func TestConformanceLifecycle(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.EventsV1().Events(ns)
		label := metav1.ListOptions{LabelSelector: "testevent-constant=true"}
		created := must(mine.Create(ctx, &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Name: "event-test", Labels: map[string]string{"testevent-constant": "true"}},
			Regarding:           corev1.ObjectReference{Namespace: ns},
			EventTime:           metav1.NewMicroTime(time.Date(2017, time.September, 19, 13, 49, 16, 0, time.UTC)),
			Note:                "This is event-test",
			Action:              "Do",
			Reason:              "Test",
			Type:                corev1.EventTypeNormal,
			ReportingController: "test-controller",
			ReportingInstance:   "test-node",
		}, metav1.CreateOptions{})).or(t)
		first := parseVersion(t, created.ResourceVersion)

		for where, in := range map[string]string{"everywhere": "", "in the namespace": ns} {
			list := must(client.EventsV1().Events(in).List(ctx, label)).or(t)
			if !slices.ContainsFunc(list.Items, func(ev eventsv1.Event) bool { return ev.Namespace == ns && ev.Name == "event-test" }) {
				t.Fatalf("not listed %s", where)
			}
		}
		if list := must(client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "source=test-controller"})).or(t); len(list.Items) != 1 || list.Items[0].Name != "event-test" {
			t.Fatalf("core list by source: %v", list.Items)
		}
		if list := must(mine.List(ctx, metav1.ListOptions{FieldSelector: "reportingController=test-controller"})).or(t); len(list.Items) != 1 || list.Items[0].Name != "event-test" {
			t.Fatalf("list by controller: %v", list.Items)
		}

		before := must(mine.Get(ctx, "event-test", metav1.GetOptions{})).or(t)
		series := &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(time.Date(2014, time.September, 19, 13, 49, 16, 123456000, time.UTC))}
		body := must(json.Marshal(map[string]any{"series": series})).or(t)
		must(mine.Patch(ctx, "event-test", types.StrategicMergePatchType, body, metav1.PatchOptions{})).or(t)
		patched := must(mine.Get(ctx, "event-test", metav1.GetOptions{})).or(t)
		if got := parseVersion(t, patched.ResourceVersion); got <= first {
			t.Errorf("version %d, was %d", got, first)
		}
		want := before.DeepCopy()
		want.Series = series
		same(t, "after the patch", want, patched)

		next := patched.DeepCopy()
		next.Series = &eventsv1.EventSeries{Count: 100, LastObservedTime: metav1.NewMicroTime(time.Date(2014, time.September, 19, 13, 49, 16, 0, time.UTC))}
		next.ResourceVersion, next.ManagedFields = "", nil
		must(mine.Update(ctx, next, metav1.UpdateOptions{})).or(t)
		same(t, "after the update", next, must(mine.Get(ctx, "event-test", metav1.GetOptions{})).or(t))

		if err := mine.Delete(ctx, "event-test", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for where, in := range map[string]string{"everywhere": "", "in the namespace": ns} {
			list := must(client.EventsV1().Events(in).List(ctx, label)).or(t)
			if slices.ContainsFunc(list.Items, func(ev eventsv1.Event) bool { return ev.Namespace == ns }) {
				t.Errorf("still listed %s", where)
			}
		}
	})
}

// TestConformanceCollection deletes a collection of events by label, which are
// gone at once (12.2).
func TestConformanceCollection(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.EventsV1().Events(ns)
		label := metav1.ListOptions{LabelSelector: "testevent-set=true"}
		for _, name := range []string{"test-event-1", "test-event-2", "test-event-3"} {
			must(mine.Create(ctx, stockEvent(ns, name, map[string]string{"testevent-set": "true"}), metav1.CreateOptions{})).or(t)
		}
		must(mine.Create(ctx, stockEvent(ns, "other", nil), metav1.CreateOptions{})).or(t)
		if list := must(mine.List(ctx, label)).or(t); len(list.Items) != 3 {
			t.Fatalf("%d events", len(list.Items))
		}
		if err := mine.DeleteCollection(ctx, metav1.DeleteOptions{}, label); err != nil {
			t.Fatal(err)
		}
		if list := must(mine.List(ctx, label)).or(t); len(list.Items) != 0 {
			t.Errorf("%d events are left", len(list.Items))
		}
		if list := must(mine.List(ctx, metav1.ListOptions{})).or(t); len(list.Items) != 1 {
			t.Errorf("%d events are left in all", len(list.Items))
		}
	})
}

// TestConformanceCoreLifecycle is the life of an event through core (12.3).
func TestConformanceCoreLifecycle(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.CoreV1().Events(ns)
		label := metav1.ListOptions{LabelSelector: "testevent-constant=true"}
		must(mine.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "event-test", Labels: map[string]string{"testevent-constant": "true"}},
			Message:        "This is a test event",
			Reason:         "Test",
			Type:           corev1.EventTypeNormal,
			Count:          1,
			InvolvedObject: corev1.ObjectReference{Namespace: ns},
		}, metav1.CreateOptions{})).or(t)
		if list := must(client.CoreV1().Events("").List(ctx, label)).or(t); !slices.ContainsFunc(list.Items, func(ev corev1.Event) bool { return ev.Namespace == ns }) {
			t.Fatal("not listed")
		}
		must(mine.Patch(ctx, "event-test", types.StrategicMergePatchType, []byte(`{"message":"This is a test event - patched"}`), metav1.PatchOptions{})).or(t)
		next := must(mine.Get(ctx, "event-test", metav1.GetOptions{})).or(t)
		if next.Message != "This is a test event - patched" {
			t.Errorf("message %q", next.Message)
		}
		next.Series = &corev1.EventSeries{Count: 100, LastObservedTime: metav1.NewMicroTime(time.Date(2014, time.September, 19, 13, 49, 16, 0, time.UTC))}
		next.ResourceVersion, next.ManagedFields = "", nil
		must(mine.Update(ctx, next, metav1.UpdateOptions{})).or(t)
		same(t, "after the update", next, must(mine.Get(ctx, "event-test", metav1.GetOptions{})).or(t))
		if err := mine.Delete(ctx, "event-test", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if list := must(mine.List(ctx, label)).or(t); len(list.Items) != 0 {
			t.Error("still listed")
		}
	})
}

// TestConformanceCoreCollection deletes a collection through core (12.4).
func TestConformanceCoreCollection(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.CoreV1().Events(ns)
		label := metav1.ListOptions{LabelSelector: "testevent-set=true"}
		for _, name := range []string{"test-event-1", "test-event-2", "test-event-3"} {
			must(mine.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: name, Labels: map[string]string{"testevent-set": "true"}},
				Message:        "This is " + name,
				Reason:         "Test",
				Type:           corev1.EventTypeNormal,
				Count:          1,
				InvolvedObject: corev1.ObjectReference{Namespace: ns},
			}, metav1.CreateOptions{})).or(t)
		}
		if list := must(mine.List(ctx, label)).or(t); len(list.Items) != 3 {
			t.Fatalf("%d events", len(list.Items))
		}
		if err := mine.DeleteCollection(ctx, metav1.DeleteOptions{}, label); err != nil {
			t.Fatal(err)
		}
		if list := must(mine.List(ctx, label)).or(t); len(list.Items) != 0 {
			t.Errorf("%d events are left", len(list.Items))
		}
	})
}

// same compares events but for what every write changes.
func same[T metav1.Object](t *testing.T, what string, want, got T) {
	t.Helper()
	for _, o := range []metav1.Object{want, got} {
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// stockEvent is a valid event.
func stockEvent(ns, name string, labels map[string]string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name, Labels: labels},
		EventTime:           metav1.NewMicroTime(time.Date(2026, time.January, 2, 3, 4, 5, 6000, time.UTC)),
		ReportingController: "example.com/ctl",
		ReportingInstance:   "ctl-1",
		Action:              "Act",
		Reason:              "Because",
		Type:                corev1.EventTypeNormal,
		Note:                "hello",
		Regarding:           corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Name: "p1", Namespace: ns},
	}
}

// result is what a call returned; or unpacks it or fails the test.
type result[T any] struct {
	value T
	err   error
}

func must[T any](value T, err error) result[T] { return result[T]{value, err} }

func (r result[T]) or(t *testing.T) T {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.value
}

// within is a context for something that must happen soon.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
