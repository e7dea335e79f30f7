package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventsIn is the collection of a namespace.
func eventsIn(base, namespace string) string {
	return base + "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
}

// newEvent is a complete event with the given name and reason.
func newEvent(name, reason string) *eventsv1.Event {
	event := &eventsv1.Event{
		EventTime: metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)), // what the wire can carry
		Type:      "Normal", Reason: reason, Action: "Testing", Note: "something happened",
		ReportingController: "example.com/e2e", ReportingInstance: "e2e-1",
	}
	event.APIVersion, event.Kind, event.Name = "events.k8s.io/v1", "Event", name
	event.Regarding.Kind, event.Regarding.Name, event.Regarding.Namespace = "Pod", "web-0", "default"
	return event
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the API's own types always encode
	}
	return raw
}

// testLifecycle takes one event through token → create → get → list → watch → patch → delete.
func testLifecycle(t *testing.T, w *world) {
	for _, via := range []struct {
		name, base string
		client     *http.Client
	}{{"HTTP", w.events, http.DefaultClient}, {"HTTPS", w.secure, w.https(t)}} {
		t.Run(via.name, func(t *testing.T) {
			namespace := "lifecycle-" + strings.ToLower(via.name)
			one := func(method, url, contentType string, body []byte, want int) *eventsv1.Event {
				t.Helper()
				var got eventsv1.Event
				status, err := call(t.Context(), via.client, request{method, url, w.token(t), contentType, body}, &got)
				if err != nil || status != want {
					t.Fatalf("%s %s: status %d, want %d, %v", method, url, status, want, err)
				}
				return &got
			}
			collection := eventsIn(via.base, namespace)
			sent := newEvent("first", "Created")
			created := one("POST", collection, "application/json", encode(sent), http.StatusCreated)
			if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
				t.Errorf("create left the server's own fields empty: %+v", created.ObjectMeta)
			}
			if created.Reason != sent.Reason || created.Note != sent.Note || !created.EventTime.Equal(&sent.EventTime) {
				t.Errorf("created %+v, sent %+v", created, sent)
			}
			got := one("GET", collection+"/first", "", nil, http.StatusOK)
			if diff := cmp.Diff(created, got); diff != "" {
				t.Errorf("get differs from create (-create +get):\n%s", diff)
			}
			var list eventsv1.EventList
			if status, err := call(t.Context(), via.client, request{"GET", collection, w.token(t), "", nil}, &list); err != nil || status != http.StatusOK {
				t.Fatalf("list: status %d, %v", status, err)
			}
			if list.Kind != "EventList" || len(list.Items) != 1 || list.Items[0].UID != created.UID {
				t.Fatalf("list: %+v, want the created event alone", list)
			}
			changes := watchFrom(t, via.client, collection, list.ResourceVersion, w.token(t))
			patched := one("PATCH", collection+"/first", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"a"}}}`), http.StatusOK)
			if patched.Labels["team"] != "a" || patched.UID != created.UID || patched.ResourceVersion == created.ResourceVersion {
				t.Errorf("patched to %+v", patched.ObjectMeta)
			}
			var status metav1.Status
			if code, err := call(t.Context(), via.client, request{"DELETE", collection + "/first", w.token(t), "", nil}, &status); err != nil || code != http.StatusOK || status.Status != "Success" {
				t.Errorf("delete: %d %+v, %v", code, status, err)
			}
			want := []string{"MODIFIED first " + patched.ResourceVersion, "DELETED first"}
			for i, line := range []string{<-changes, <-changes} {
				if !strings.HasPrefix(line, want[i]) {
					t.Errorf("watch: change %d is %q, want %q", i, line, want[i])
				}
			}
			if code, err := call(t.Context(), via.client, request{"GET", collection + "/first", w.token(t), "", nil}, &status); err != nil || code != http.StatusNotFound || status.Reason != metav1.StatusReasonNotFound {
				t.Errorf("get after delete: %d %+v, %v", code, status, err)
			}
		})
	}
}

// watchFrom gives the changes after a revision as "TYPE name revision". The
// channel is closed when the stream ends, at the latest after the deadline.
func watchFrom(t *testing.T, client *http.Client, collection, revision, token string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, collection+"?watch=true&resourceVersion="+revision, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch: status %s", resp.Status)
	}
	changes := make(chan string, 16)
	go func() {
		defer close(changes)
		defer resp.Body.Close()
		for decoder := json.NewDecoder(resp.Body); ; {
			var change struct {
				Type   string
				Object eventsv1.Event
			}
			if decoder.Decode(&change) != nil {
				return
			}
			changes <- fmt.Sprint(change.Type, " ", change.Object.Name, " ", change.Object.ResourceVersion)
		}
	}()
	return changes
}
