package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpdate is about PUT that is accepted (1.5, 17).
func TestUpdate(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	series := `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000006Z"}}`

	t.Run("without a version it always wins", func(t *testing.T) {
		first := s.create(t, ns, "a")
		second := s.put(t, in(eventsV1, ns, "a"), newEvent(ns, "a", series)).expect(http.StatusOK).object()
		if second.version(t) <= first.version(t) {
			t.Errorf("version %d after %d", second.version(t), first.version(t))
		}
		if second.text("metadata.uid") != first.text("metadata.uid") || second.text("metadata.creationTimestamp") != first.text("metadata.creationTimestamp") {
			t.Errorf("identity changed: %v", second["metadata"])
		}
		s.put(t, in(eventsV1, ns, "a"), newEvent(ns, "a", series, `{"metadata":{"resourceVersion":"0"}}`)).expect(http.StatusOK)
	})
	t.Run("with the stored version", func(t *testing.T) {
		ev := s.create(t, ns, "b")
		s.put(t, in(eventsV1, ns, "b"), newEvent(ns, "b", series, fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"uid":%q}}`, ev.text("metadata.resourceVersion"), ev.text("metadata.uid")))).expect(http.StatusOK)
	})
	t.Run("creates what is missing", func(t *testing.T) {
		ev := s.put(t, in(eventsV1, ns, "c"), newEvent(ns, "c", `{"metadata":{"resourceVersion":"1"}}`)).expect(http.StatusCreated).object()
		if ev.text("metadata.uid") == "" {
			t.Error("no uid")
		}
	})
	t.Run("no change keeps the version", func(t *testing.T) {
		ev := s.create(t, ns, "d")
		same := s.put(t, in(eventsV1, ns, "d"), newEvent(ns, "d")).expect(http.StatusOK).object()
		if same.version(t) != ev.version(t) {
			t.Errorf("version %d became %d", ev.version(t), same.version(t))
		}
	})
	t.Run("what is ignored", func(t *testing.T) {
		first := s.create(t, ns, "e")
		ev := s.put(t, in(eventsV1, ns, "e"), newEvent(ns, "e", series, `{"metadata":{"generation":7,"selfLink":"/x","generateName":"other-"}}`)).expect(http.StatusOK).object()
		if ev.text("metadata.generateName") != "other-" || ev.at("metadata.selfLink") != nil {
			t.Errorf("metadata %v", ev["metadata"])
		}
		ev = s.put(t, in(eventsV1, ns, "e"), newEvent(ns, "e", `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z"}}`)).expect(http.StatusOK).object()
		if got := ev.text("metadata.creationTimestamp"); got != first.text("metadata.creationTimestamp") {
			t.Errorf("creationTimestamp %s", got)
		}
	})
	t.Run("series comes, changes and goes", func(t *testing.T) {
		s.create(t, ns, "f")
		path := in(eventsV1, ns, "f")
		s.patch(t, path, typeMerge, series).expect(http.StatusOK)
		s.patch(t, path, typeMerge, `{"series":{"count":100}}`).expect(http.StatusOK)
		if ev := s.patch(t, path, typeMerge, `{"series":null}`).expect(http.StatusOK).object(); ev["series"] != nil {
			t.Errorf("series %v", ev["series"])
		}
	})
	t.Run("the rest of the metadata", func(t *testing.T) {
		s.create(t, ns, "g")
		s.patch(t, in(eventsV1, ns, "g"), typeMerge, `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["example.com/f"],
			"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`).expect(http.StatusOK)
	})
	t.Run("core changes everything else", func(t *testing.T) {
		s.create(t, ns, "h")
		path := in(coreV1, ns, "h")
		ev := s.patch(t, path, typeMerge, `{"message":"other","count":3,"eventTime":null,"series":{"count":1},"type":"odd","reason":"Other",
			"involvedObject":{"name":"p2"},"source":{"component":"c"}}`).expect(http.StatusOK).object()
		if ev.text("message") != "other" || ev["eventTime"] != nil {
			t.Errorf("core event %v", ev)
		}
	})
	t.Run("an old event through the events view", func(t *testing.T) {
		s.post(t, in(coreV1, ns), oldEvent(ns, "old")).expect(http.StatusCreated)
		path := in(eventsV1, ns, "old")
		s.patch(t, path, typeMerge, `{"metadata":{"labels":{"a":"b"}}}`).expect(http.StatusOK)
		s.patch(t, path, typeMerge, series).expect(http.StatusOK)
		refusal{call: call{method: "PATCH", path: path, contentType: typeMerge, body: `{"eventTime":"2026-01-02T03:04:05.000006Z","action":"a","reportingController":"e.x/c","reportingInstance":"i"}`},
			code: 422, reason: metav1.StatusReasonInvalid, contains: "eventTime: Invalid value"}.check(t, s)
	})
	t.Run("deletionTimestamp of null is ignored while deleting", func(t *testing.T) {
		s.create(t, ns, "i", `{"metadata":{"finalizers":["example.com/f"]}}`)
		path := in(eventsV1, ns, "i")
		s.delete(t, path, "").expect(http.StatusOK)
		ev := s.patch(t, path, typeMerge, `{"metadata":{"deletionTimestamp":null,"labels":{"a":"b"}}}`).expect(http.StatusOK).object()
		if ev.text("metadata.deletionTimestamp") == "" {
			t.Error("deletionTimestamp is gone")
		}
	})
	t.Run("invalid UTF-8 is replaced", func(t *testing.T) {
		body := strings.Replace(newEvent(ns, "utf8"), "hello", "a\xffb", 1)
		if ev := s.post(t, in(eventsV1, ns), body).expect(http.StatusCreated).object(); ev.text("note") != "a\uFFFDb" {
			t.Errorf("note %q", ev.text("note"))
		}
	})
}

// TestUpdateRefused is about PUT and PATCH that are not (1.5, 17).
func TestUpdateRefused(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	ev := s.create(t, ns, "a", `{"metadata":{"finalizers":["example.com/f"]}}`)
	s.create(t, ns, "going", `{"metadata":{"finalizers":["example.com/f"]}}`)
	s.delete(t, in(eventsV1, ns, "going"), "").expect(http.StatusOK)
	keep := `{"metadata":{"finalizers":["example.com/f"]}}`
	put := func(name, body string) call {
		return call{method: "PUT", path: in(eventsV1, ns, name), contentType: typeJSON, body: body}
	}
	core := func(name, body string) call {
		return call{method: "PUT", path: in(coreV1, ns, name), contentType: typeJSON, body: body}
	}
	uid := ev.text("metadata.uid")
	modified := `the object has been modified; please apply your changes to the latest version and try again`
	checkRefusals(t, s, []refusal{
		{name: "stale version", call: put("a", newEvent(ns, "a", keep, `{"metadata":{"resourceVersion":"1"}}`)), code: 409, reason: metav1.StatusReasonConflict,
			message: `Operation cannot be fulfilled on events.events.k8s.io "a": ` + modified, details: `{"name":"a","group":"events.k8s.io","kind":"events"}`},
		{name: "stale version, core", call: core("a", oldEvent(ns, "a", keep, `{"metadata":{"resourceVersion":"1"}}`)), code: 409, reason: metav1.StatusReasonConflict,
			message: `Operation cannot be fulfilled on events "a": ` + modified},
		{name: "other uid", call: put("a", newEvent(ns, "a", keep, `{"metadata":{"uid":"abc"}}`)), code: 409, reason: metav1.StatusReasonConflict,
			contains: `Precondition failed: UID in precondition: abc, UID in object meta: ` + uid},
		{name: "uid of a missing one", call: put("none", newEvent(ns, "none", `{"metadata":{"uid":"abc"}}`)), code: 409, reason: metav1.StatusReasonConflict},
		// 500 in the original.
		{name: "version that is no number", call: put("a", newEvent(ns, "a", keep, `{"metadata":{"resourceVersion":"abc"}}`)), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "other name", call: put("a", newEvent(ns, "b", keep)), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the name of the object (b) does not match the name on the URL (a)`},
		{name: "no name", call: put("a", newEvent(ns, "", `{"metadata":{"name":null}}`)), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "other namespace", call: put("a", newEvent(ns, "a", `{"metadata":{"namespace":"other"}}`)), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the namespace of the provided object does not match the namespace sent on the request`},
		{name: "a new one that is invalid", call: put("none", newEvent(ns, "none", `{"type":"odd"}`)), code: 422, reason: metav1.StatusReasonInvalid, causes: "type"},
		{name: "note", call: put("a", newEvent(ns, "a", keep, `{"note":"changed"}`)), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "a" is invalid: message: Invalid value: "changed": field is immutable`},
		{name: "reason, twice in the causes", call: put("a", newEvent(ns, "a", keep, `{"reason":"Other"}`)), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "a" is invalid: reason: Invalid value: "Other": field is immutable`, causes: "reason reason"},
		{name: "all of them", call: put("a", newEvent(ns, "a", keep, `{"regarding":{"name":"p2"},"note":"x","deprecatedSource":{"component":"c"},
			"deprecatedFirstTimestamp":"2026-01-02T03:04:05Z","deprecatedLastTimestamp":"2026-01-02T03:04:05Z","deprecatedCount":2,"type":"Warning",
			"eventTime":"2026-01-02T03:04:05.000007Z","action":"x","related":{"name":"r"},"reportingController":"example.com/x","reportingInstance":"x"}`)),
			code: 422, reason: metav1.StatusReasonInvalid,
			causes: "involvedObject message source firstTimestamp lastTimestamp count type eventTime action related reportingController reportingInstance"},
		{name: "series of 1", call: put("a", newEvent(ns, "a", keep, `{"series":{"count":1,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`)), code: 422, reason: metav1.StatusReasonInvalid, causes: "series.count"},
		{name: "new finalizer while deleting", call: put("going", newEvent(ns, "going", `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`)), code: 422, reason: metav1.StatusReasonInvalid,
			causes: "metadata.finalizers metadata.finalizers", contains: "Forbidden"},
		{name: "new finalizer while deleting, core", call: core("going", merge(marshal(t, s.get(t, in(coreV1, ns, "going")).object()), `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`)),
			code: 422, reason: metav1.StatusReasonInvalid, causes: "metadata.finalizers"},
		{name: "deletionTimestamp", call: put("a", newEvent(ns, "a", keep, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)), code: 422, reason: metav1.StatusReasonInvalid, contains: "metadata.deletionTimestamp"},
		{name: "core still wants a controller", call: core("a", merge(marshal(t, s.get(t, in(coreV1, ns, "a")).object()), `{"reportingComponent":""}`)), code: 422, reason: metav1.StatusReasonInvalid,
			causes: "reportingComponent reportingComponent reportingComponent"},
		{name: "strict", call: call{method: "PUT", path: in(eventsV1, ns, "a") + "?fieldValidation=Strict", contentType: typeJSON, body: newEvent(ns, "a", keep, `{"noteX":"y"}`)}, code: 400, reason: metav1.StatusReasonBadRequest,
			message: `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "noteX"`},
		{name: "dryRun", call: call{method: "PUT", path: in(eventsV1, ns, "a") + "?dryRun=None", contentType: typeJSON, body: newEvent(ns, "a")}, code: 422, reason: metav1.StatusReasonInvalid,
			contains: `UpdateOptions.meta.k8s.io "" is invalid: dryRun`},
	})
	if got := s.get(t, in(eventsV1, ns, "a")).object(); got.version(t) != ev.version(t) {
		t.Errorf("refused writes changed the event: %v", got)
	}
}

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
	t.Run("a body switches the query off", func(t *testing.T) {
		s.create(t, ns, "q")
		s.delete(t, in(eventsV1, ns, "q")+"?dryRun=All", `{}`).expect(http.StatusOK)
		s.get(t, in(eventsV1, ns, "q")).expect(http.StatusNotFound)
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
