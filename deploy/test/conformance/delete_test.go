package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestDelete is about DELETE of one event and its preconditions (3.6, 17).
func TestDelete(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	t.Run("status", func(t *testing.T) {
		for group, want := range map[string]string{
			eventsV1: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"events.k8s.io","kind":"events","uid":"%s"}}`,
			coreV1:   `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"events","uid":"%s"}}`,
		} {
			ev := s.create(t, ns, "a")
			a := s.delete(t, in(group, ns, "a"), "").expect(http.StatusOK)
			if got, want := strings.TrimSpace(string(a.body)), fmt.Sprintf(want, ev.text("metadata.uid")); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			s.get(t, in(group, ns, "a")).expect(http.StatusNotFound)
		}
	})
	t.Run("finalizers", func(t *testing.T) {
		first := s.create(t, ns, "f", `{"metadata":{"finalizers":["example.com/f"]}}`)
		path := in(eventsV1, ns, "f")
		marked := s.delete(t, path, "").expect(http.StatusOK).object()
		if marked.text("kind") != "Event" || marked.text("metadata.deletionTimestamp") == "" || marked.version(t) <= first.version(t) {
			t.Errorf("marked: %v", marked)
		}
		equalJSON(t, "grace", marked.at("metadata.deletionGracePeriodSeconds"), `0`)
		again := s.delete(t, path, "").expect(http.StatusOK).object()
		if again.version(t) != marked.version(t) {
			t.Errorf("deleted again: version %d, was %d", again.version(t), marked.version(t))
		}
		refusal{call: call{method: "POST", path: in(eventsV1, ns), body: newEvent(ns, "f")}, code: 409, reason: metav1.StatusReasonAlreadyExists, contains: "object is being deleted: "}.check(t, s)
		last := s.patch(t, path, typeMerge, `{"metadata":{"finalizers":null}}`).expect(http.StatusOK).object()
		if last.version(t) != marked.version(t) {
			t.Errorf("the last update answers version %d, want the old one, %d", last.version(t), marked.version(t))
		}
		s.get(t, path).expect(http.StatusNotFound)
	})
	t.Run("finalizers and orphanDependents", func(t *testing.T) {
		for i, c := range []struct {
			query, body string
			code        int
		}{
			{"?orphanDependents=false", "", http.StatusAccepted},
			{"", `{"orphanDependents":false}`, http.StatusAccepted},
			{"?orphanDependents=true", "", http.StatusOK},
			{"?propagationPolicy=Background", "", http.StatusOK},
		} {
			name := fmt.Sprint("held", i)
			s.create(t, ns, name, `{"metadata":{"finalizers":["example.com/f"]}}`)
			for _, group := range []string{eventsV1, coreV1} { // again, too
				marked := s.delete(t, in(group, ns, name)+c.query, c.body).expect(c.code).object()
				if marked.text("kind") != "Event" || marked.text("metadata.deletionTimestamp") == "" {
					t.Errorf("%s %s: %v", c.query, c.body, marked)
				}
			}
		}
		s.create(t, ns, "free")
		s.delete(t, in(eventsV1, ns, "free")+"?orphanDependents=false", "").expect(http.StatusOK)
	})
	t.Run("options", func(t *testing.T) {
		for i, body := range []string{
			``, `{}`, `{"kind":"DeleteOptions","apiVersion":"v1"}`, `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":-3}`,
			`{"kind":"DeleteOptions","apiVersion":"events.k8s.io/v1","propagationPolicy":"Background"}`, `{"propagationPolicy":"Foreground"}`,
			`{"propagationPolicy":"Orphan","gracePeriodSeconds":30}`, `{"kind":"DeleteOptions","apiVersion":"unknown.example/v1","whatever":1}`, `{"orphanDependents":false}`,
		} {
			s.create(t, ns, fmt.Sprint("o", i))
			s.do(t, call{method: "DELETE", path: in(eventsV1, ns, fmt.Sprint("o", i)), contentType: typeJSON, body: body}).expect(http.StatusOK)
			s.get(t, in(eventsV1, ns, fmt.Sprint("o", i))).expect(http.StatusNotFound)
		}
	})
	// In the original a body switches the query off, so that these really delete.
	t.Run("dry if the query or the body says so", func(t *testing.T) {
		s.create(t, ns, "q")
		events := must(kubernetes.NewForConfig(s.config())).or(t).EventsV1().RESTClient()
		for query, body := range map[string]*metav1.DeleteOptions{"All": {}, "": {DryRun: []string{"All"}}} {
			one, all := events.Delete().Namespace(ns).Resource("events").Name("q").Body(body), events.Delete().Namespace(ns).Resource("events").Body(body)
			if query != "" {
				one, all = one.Param("dryRun", query), all.Param("dryRun", query)
			}
			for _, request := range []*rest.Request{one, all} {
				if err := request.Do(t.Context()).Error(); err != nil {
					t.Fatal(err)
				}
				s.get(t, in(eventsV1, ns, "q")).expect(http.StatusOK)
			}
		}
	})
	t.Run("preconditions that hold", func(t *testing.T) {
		ev := s.create(t, ns, "p")
		s.delete(t, in(eventsV1, ns, "p"), fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, ev.text("metadata.uid"), ev.text("metadata.resourceVersion"))).expect(http.StatusOK)
	})
	ev := s.create(t, ns, "r")
	del := func(query, contentType, body string) call {
		return call{method: "DELETE", path: in(eventsV1, ns, "r") + query, contentType: contentType, body: body}
	}
	checkRefusals(t, s, []refusal{
		{name: "missing", call: call{method: "DELETE", path: in(eventsV1, ns, "none")}, code: 404, reason: metav1.StatusReasonNotFound,
			message: `events.events.k8s.io "none" not found`, details: `{"name":"none","group":"events.k8s.io","kind":"events"}`},
		{name: "uid", call: del("", typeJSON, `{"preconditions":{"uid":"zzz"}}`), code: 409, reason: metav1.StatusReasonConflict, details: `{"name":"r","kind":"Event"}`,
			message: `Operation cannot be fulfilled on Event "r": the UID in the precondition (zzz) does not match the UID in record (` + ev.text("metadata.uid") + `). The object might have been deleted and then recreated`},
		{name: "version", call: del("", typeJSON, `{"preconditions":{"resourceVersion":"1"}}`), code: 409, reason: metav1.StatusReasonConflict,
			message: `Operation cannot be fulfilled on Event "r": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (` + ev.text("metadata.resourceVersion") + `). The object might have been modified`},
		{name: "kind", call: del("", typeJSON, `{"kind":"Pod","apiVersion":"v1"}`), code: 400, reason: metav1.StatusReasonBadRequest, contains: `no kind "Pod" is registered for version "v1"`},
		{name: "media type", call: del("", "text/csv", `{}`), code: 415, reason: metav1.StatusReasonUnsupportedMediaType},
		{name: "policy", call: del("?propagationPolicy=Sideways", "", ""), code: 422, reason: metav1.StatusReasonInvalid, causes: "propagationPolicy"},
		{name: "policy and orphans", call: del("", typeJSON, `{"propagationPolicy":"Orphan","orphanDependents":true}`), code: 422, reason: metav1.StatusReasonInvalid, contains: "DeleteOptions.meta.k8s.io"},
		{name: "dryRun", call: del("?dryRun=Some", "", ""), code: 422, reason: metav1.StatusReasonInvalid, contains: `DeleteOptions.meta.k8s.io "" is invalid: dryRun`},
		{name: "empty dryRun", call: del("?dryRun=", "", ""), code: 422, reason: metav1.StatusReasonInvalid},
	})
	s.get(t, in(eventsV1, ns, "r")).expect(http.StatusOK)
}

// TestDeleteCollection is about DELETE of many (3.6, and what this server
// answers by its own decision: a Status, or the list for clients that ask for
// a Table or metadata only).
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	fill := func(t *testing.T) {
		for _, name := range []string{"a", "b", "c", "d"} {
			s.create(t, ns, name, `{"metadata":{"labels":{"set":"`+name+`"}}}`)
		}
	}
	left := func(t *testing.T, want string) {
		t.Helper()
		if got := strings.Join(s.get(t, path).object().names(), " "); got != want {
			t.Errorf("left are %q, want %q", got, want)
		}
	}
	t.Run("selectors", func(t *testing.T) {
		fill(t)
		s.delete(t, path+"?labelSelector=set+in+(a,b)", "").expect(http.StatusOK)
		left(t, "c d")
		s.delete(t, path+"?fieldSelector=metadata.name%3Dc", "").expect(http.StatusOK)
		left(t, "d")
	})
	t.Run("all at once, watch or not", func(t *testing.T) {
		a := s.delete(t, path+"?watch=true", "").expect(http.StatusOK)
		if st := a.object(); st.text("kind") != "Status" || st.text("status") != "Success" || st.text("details.kind") != "events" || st.text("details.group") != "events.k8s.io" {
			t.Errorf("answer %s", a.body)
		}
		left(t, "")
	})
	t.Run("page by page", func(t *testing.T) {
		fill(t)
		a := s.delete(t, path+"?limit=3", "").expect(http.StatusOK).object()
		left(t, "d")
		token := a.text("metadata.continue")
		if token == "" || a.text("metadata.resourceVersion") == "" {
			t.Fatalf("answer %v", a)
		}
		s.delete(t, path+"?limit=3&continue="+token, "").expect(http.StatusOK)
		left(t, "")
	})
	t.Run("metadata of what was deleted", func(t *testing.T) {
		fill(t)
		a := s.do(t, call{method: "DELETE", path: path, accept: typeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}).expect(http.StatusOK).object()
		if got := strings.Join(a.names(), " "); got != "a b c d" || a.text("kind") != "PartialObjectMetadataList" {
			t.Errorf("answer %v", a)
		}
		left(t, "")
	})
	t.Run("table of what was deleted", func(t *testing.T) {
		fill(t)
		a := s.do(t, call{method: "DELETE", path: path, accept: typeJSON + ";as=Table;g=meta.k8s.io;v=v1"}).expect(http.StatusOK).object()
		if rows, _ := a["rows"].([]any); len(rows) != 4 || a.text("kind") != "Table" {
			t.Errorf("answer %v", a)
		}
		left(t, "")
	})
	t.Run("finalizers are only marked", func(t *testing.T) {
		s.create(t, ns, "f", `{"metadata":{"finalizers":["example.com/f"]}}`)
		s.delete(t, path, "").expect(http.StatusOK)
		left(t, "f")
		if s.get(t, path+"/f").object().text("metadata.deletionTimestamp") == "" {
			t.Error("not marked")
		}
		s.patch(t, path+"/f", typeMerge, `{"metadata":{"finalizers":null}}`).expect(http.StatusOK)
	})
	fill(t)
	checkRefusals(t, s, []refusal{
		{name: "uid precondition", call: call{method: "DELETE", path: path, body: `{"preconditions":{"uid":"zzz"}}`}, code: 409, reason: metav1.StatusReasonConflict},
		{name: "sendInitialEvents", call: call{method: "DELETE", path: path + "?sendInitialEvents=true"}, code: 422, reason: metav1.StatusReasonInvalid, contains: "sendInitialEvents"},
		{name: "selector", call: call{method: "DELETE", path: path + "?fieldSelector=foo%3Dbar"}, code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "policy", call: call{method: "DELETE", path: path + "?propagationPolicy=Sideways"}, code: 422, reason: metav1.StatusReasonInvalid},
		{name: "unsafe option", call: call{method: "DELETE", path: path, body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`}, code: 422, reason: metav1.StatusReasonInvalid, contains: "DeleteOptions.meta.k8s.io"},
		{name: "all namespaces", call: call{method: "DELETE", path: eventsV1 + "/events"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed,
			message: "the server does not allow this method on the requested resource", details: `{}`},
	})
	left(t, "a b c d")
	t.Run("through core", func(t *testing.T) {
		s.delete(t, in(coreV1, ns)+"?labelSelector=set", "").expect(http.StatusOK)
		left(t, "")
	})
}
