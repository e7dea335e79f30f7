package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRetention is about events that grow old (10), and about versions that
// are no longer held (3.3, 3.4). One server with a short retention serves all
// cases, because this test mostly waits. What it does between two waits takes
// only a part of the retention, even on a busy machine.
func TestRetention(t *testing.T) {
	t.Parallel()
	s, ns := start(t, "--retention", "10s"), namespace(t)
	path := in(eventsV1, ns)
	from := s.get(t, path).object().text("metadata.resourceVersion")
	w := s.watch(t, path+"?watch=true&resourceVersion="+from)

	first := s.create(t, ns, "a")
	s.create(t, ns, "held", `{"metadata":{"finalizers":["example.com/f"]}}`)
	s.create(t, ns, "c")
	page := s.get(t, path+"?limit=1").expect(http.StatusOK).object()
	w.want(t, "ADDED a", "ADDED held", "ADDED c")

	t.Run("expiry looks like a delete", func(t *testing.T) {
		gone := map[string]object{}
		for range 3 {
			c := w.next(t)
			if c.kind != "DELETED" {
				t.Fatalf("got %s", c)
			}
			gone[c.object.text("metadata.name")] = c.object
		}
		for _, name := range []string{"a", "held", "c"} { // finalizers do not hold an event that nobody deleted
			if gone[name] == nil {
				t.Fatalf("gone are %v", gone)
			}
		}
		if a := gone["a"]; a.version(t) <= first.version(t) || a.text("note") != "hello" || a.at("metadata.deletionTimestamp") != nil {
			t.Errorf("DELETED %v", a)
		}
		s.get(t, path+"/a").expect(http.StatusNotFound)
		if names := s.get(t, path).object().names(); len(names) != 0 {
			t.Errorf("left are %v", names)
		}
	})
	old := first.text("metadata.resourceVersion")
	t.Run("a list at an old version", func(t *testing.T) {
		eventually(t, "410 for an old version", func() error {
			return everywhere(func() error {
				return wantCode(s.get(t, path+"?resourceVersionMatch=Exact&resourceVersion="+old), http.StatusGone)
			})
		})
		refusal{call: call{method: "GET", path: path + "?resourceVersionMatch=Exact&resourceVersion=" + old}, code: 410, reason: metav1.StatusReasonExpired,
			message: "The resourceVersion for the provided list is too old."}.check(t, s)
		refusal{call: call{method: "GET", path: path + "?limit=1&resourceVersion=" + old}, code: 410, reason: metav1.StatusReasonExpired}.check(t, s)
		s.get(t, path+"?resourceVersion="+old).expect(http.StatusOK)
	})
	t.Run("an old token", func(t *testing.T) {
		var a *answer
		eventually(t, "410 for an old token", func() error {
			return everywhere(func() error {
				a = s.get(t, path+"?limit=1&continue="+page.text("metadata.continue"))
				return wantCode(a, http.StatusGone)
			})
		})
		for i := range 3 {
			s.create(t, ns, fmt.Sprintf("b%d", i))
		}
		st := a.status()
		if st.Reason != metav1.StatusReasonExpired || st.Continue == "" || !strings.HasPrefix(st.Message,
			"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.") {
			t.Errorf("answer %s", a.body)
		}
		rest := s.get(t, path+"?limit=2&continue="+st.Continue).expect(http.StatusOK).object()
		if got := strings.Join(rest.names(), " "); got != "b0 b1" {
			t.Errorf("the fresh token leads to %q", got)
		}
		last := s.get(t, path+"?limit=2&continue="+rest.text("metadata.continue")).expect(http.StatusOK).object()
		if got := strings.Join(last.names(), " "); got != "b2" || last.version(t) != rest.version(t) {
			t.Errorf("and then to %q", got)
		}
	})
	t.Run("a watch from an old version", func(t *testing.T) {
		w := s.watch(t, path+"?watch=true&resourceVersion="+old)
		c := w.want(t, "ERROR")[0]
		equalJSON(t, "error", c.object, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}`)
		w.end(t)
	})
	t.Run("the initial state at an old version", func(t *testing.T) {
		ns := ns + "-2"
		s.create(t, ns, "z")
		w := s.watch(t, in(eventsV1, ns)+"?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="+old)
		w.want(t, "ADDED z", bookmark)
	})
	t.Run("writes start it again, no-ops do not", func(t *testing.T) {
		ns := ns + "-3"
		path := in(eventsV1, ns)
		w := s.watch(t, path+"?watch=true&resourceVersion="+s.get(t, path).object().text("metadata.resourceVersion"))
		s.create(t, ns, "touched")
		s.create(t, ns, "idle")
		w.want(t, "ADDED touched", "ADDED idle")
		s.patch(t, path+"/idle", typeMerge, `{}`).expect(http.StatusOK)
		s.patch(t, path+"/touched", typeMerge, `{"metadata":{"labels":{"a":"b"}}}`).expect(http.StatusOK)
		w.want(t, "MODIFIED touched", "DELETED idle", "DELETED touched")
	})
}

func wantCode(a *answer, code int) error {
	if a.code == code {
		return nil
	}
	return fmt.Errorf("got %d: %.200s", a.code, a.body)
}
