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
		{name: "reason", call: put("a", newEvent(ns, "a", keep, `{"reason":"Other"}`)), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "a" is invalid: reason: Invalid value: "Other": field is immutable`, causes: "reason"},
		{name: "all of them", call: put("a", newEvent(ns, "a", keep, `{"regarding":{"name":"p2"},"note":"x","deprecatedSource":{"component":"c"},
			"deprecatedFirstTimestamp":"2026-01-02T03:04:05Z","deprecatedLastTimestamp":"2026-01-02T03:04:05Z","deprecatedCount":2,"type":"Warning",
			"eventTime":"2026-01-02T03:04:05.000007Z","action":"x","related":{"name":"r"},"reportingController":"example.com/x","reportingInstance":"x"}`)),
			code: 422, reason: metav1.StatusReasonInvalid,
			causes: "involvedObject message source firstTimestamp lastTimestamp count type eventTime action related reportingController reportingInstance"},
		{name: "series of 1", call: put("a", newEvent(ns, "a", keep, `{"series":{"count":1,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`)), code: 422, reason: metav1.StatusReasonInvalid, causes: "series.count"},
		{name: "new finalizer while deleting", call: put("going", newEvent(ns, "going", `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`)), code: 422, reason: metav1.StatusReasonInvalid,
			causes: "metadata.finalizers", contains: "Forbidden"},
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
