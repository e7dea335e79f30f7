package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestApply is about server-side apply and managed fields (5.5).
func TestApply(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	config := func(name string, patches ...string) string {
		return newEvent(ns, name, append([]string{`{"kind":"Event","apiVersion":"events.k8s.io/v1"}`}, patches...)...)
	}
	apply := func(name, manager, body string, query ...string) call {
		return call{method: "PATCH", path: in(eventsV1, ns, name) + "?fieldManager=" + manager + strings.Join(query, ""), contentType: typeApply, body: body}
	}
	t.Run("creates, then changes", func(t *testing.T) {
		ev := s.do(t, apply("a", "me", config("a", `{"metadata":{"labels":{"x":"1"}}}`))).expect(http.StatusCreated).object()
		if ev.text("metadata.managedFields.0.manager") != "me" || ev.text("metadata.managedFields.0.operation") != "Apply" ||
			ev.text("metadata.managedFields.0.apiVersion") != "events.k8s.io/v1" || ev.text("metadata.managedFields.0.fieldsType") != "FieldsV1" {
			t.Errorf("managed fields %v", ev.at("metadata.managedFields"))
		}
		equalJSON(t, "regarding is one leaf", ev.at("metadata.managedFields.0.fieldsV1.f:regarding"), `{}`)
		same := s.do(t, apply("a", "me", config("a", `{"metadata":{"labels":{"x":"1"}}}`))).expect(http.StatusOK).object()
		if same.version(t) != ev.version(t) {
			t.Errorf("version %d, was %d", same.version(t), ev.version(t))
		}
		// What a manager no longer mentions goes away.
		next := s.do(t, apply("a", "me", config("a", `{"metadata":{"labels":{"y":"2"}}}`))).expect(http.StatusOK).object()
		equalJSON(t, "labels", next.at("metadata.labels"), `{"y":"2"}`)
	})
	t.Run("YAML", func(t *testing.T) {
		body := "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata:\n  name: a\n  labels: {z: '3'}\n"
		ev := s.do(t, apply("a", "other", body)).expect(http.StatusOK).object()
		equalJSON(t, "labels", ev.at("metadata.labels"), `{"y":"2","z":"3"}`)
	})
	t.Run("conflict and force", func(t *testing.T) {
		body := `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a","labels":{"y":"mine"}}}`
		refusal{call: apply("a", "third", body), code: 409, reason: metav1.StatusReasonConflict,
			message: `Apply failed with 1 conflict: conflict with "me": .metadata.labels.y`,
			details: `{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"me\"","field":".metadata.labels.y"}]}`}.check(t, s)
		ev := s.do(t, apply("a", "third", body, "&force=true")).expect(http.StatusOK).object()
		if ev.text("metadata.labels.y") != "mine" {
			t.Errorf("labels %v", ev.at("metadata.labels"))
		}
	})
	t.Run("conflict with an update", func(t *testing.T) {
		s.do(t, call{method: "POST", path: in(eventsV1, ns) + "?fieldManager=poster", body: newEvent(ns, "u", `{"metadata":{"labels":{"a":"1","b":"2"}}}`)}).expect(http.StatusCreated)
		refusal{call: apply("u", "me", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"u","labels":{"a":"x","b":"y"}}}`), code: 409, reason: metav1.StatusReasonConflict,
			message: "Apply failed with 2 conflicts: conflicts with \"poster\" using events.k8s.io/v1:\n- .metadata.labels.a\n- .metadata.labels.b"}.check(t, s)
		// The merge comes before the check of the name.
		refusal{call: apply("u", "me", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"wrong","labels":{"a":"x"}}}`), code: 409, reason: metav1.StatusReasonConflict}.check(t, s)
	})
	t.Run("through core", func(t *testing.T) {
		body := oldEvent(ns, "core", `{"kind":"Event","apiVersion":"v1"}`)
		ev := s.do(t, call{method: "PATCH", path: in(coreV1, ns, "core") + "?fieldManager=me", contentType: typeApply, body: body}).expect(http.StatusCreated).object()
		if ev.at("metadata.managedFields.0.fieldsV1.f:message") == nil {
			t.Errorf("managed fields %v", ev.at("metadata.managedFields"))
		}
	})
	t.Run("dry run", func(t *testing.T) {
		s.do(t, apply("dry", "me", config("dry"), "&dryRun=All")).expect(http.StatusCreated)
		s.get(t, in(eventsV1, ns, "dry")).expect(http.StatusNotFound)
	})
	s.create(t, ns, "there")
	checkRefusals(t, s, []refusal{
		{name: "no manager", call: call{method: "PATCH", path: in(eventsV1, ns, "there"), contentType: typeApply, body: config("there")}, code: 422, reason: metav1.StatusReasonInvalid,
			message: `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`},
		{name: "other view", call: apply("there", "me", config("there", `{"apiVersion":"v1"}`)), code: 400, reason: metav1.StatusReasonBadRequest, contains: `invalid object type: /v1, Kind=Event`},
		{name: "no kind", call: apply("there", "me", newEvent(ns, "there")), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "managed fields", call: apply("there", "me", config("there", `{"metadata":{"managedFields":[{"manager":"x"}]}}`)), code: 400, reason: metav1.StatusReasonBadRequest, contains: `metadata.managedFields must be nil`},
		// 500 in the original.
		{name: "unknown field", call: apply("there", "me", config("there", `{"bogus":1,"metadata":{"namespace":"`+ns+`"}}`), "&force=true"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `failed to create typed patch object (` + ns + `/there; events.k8s.io/v1, Kind=Event): .bogus: field not declared in schema`},
		{name: "duplicate keys, strict", call: apply("there", "me", "apiVersion: events.k8s.io/v1\nkind: Event\nkind: Event\nmetadata: {name: there}\n", "&fieldValidation=Strict"), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `error strict decoding patch: `},
		{name: "other name", call: apply("there", "me", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"other"}}`), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the name of the object (other) does not match the name on the URL (there)`},
		{name: "uid of a missing one", call: apply("none", "me", config("none", `{"metadata":{"uid":"abc"}}`)), code: 409, reason: metav1.StatusReasonConflict},
		{name: "invalid", call: apply("none", "me", config("none", `{"type":"odd"}`)), code: 422, reason: metav1.StatusReasonInvalid, causes: "type"},
	})
}

// TestManagedFields is about what writes record (5.5).
func TestManagedFields(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	entries := func(ev object) []object {
		var all []object
		list, _ := ev.at("metadata.managedFields").([]any)
		for _, e := range list {
			all = append(all, e.(map[string]any))
		}
		return all
	}
	t.Run("the user agent names the manager", func(t *testing.T) {
		ev := s.create(t, ns, "a")
		got := entries(ev)
		if len(got) != 1 || got[0].text("manager") != "wire" || got[0].text("operation") != "Update" || got[0].text("time") == "" {
			t.Errorf("managed fields %v", got)
		}
		equalJSON(t, "fields", got[0]["fieldsV1"], `{"f:action":{},"f:eventTime":{},"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}`)
	})
	t.Run("an agent cut to what fits", func(t *testing.T) {
		a := s.do(t, call{method: "POST", path: in(eventsV1, ns), body: newEvent(ns, "long"), header: map[string]string{"User-Agent": strings.Repeat("x", 200) + "/1"}}).expect(http.StatusCreated)
		if got := entries(a.object()); len(got) != 1 || got[0].text("manager") != strings.Repeat("x", 128) {
			t.Errorf("managed fields %v", got)
		}
	})
	t.Run("series is not one leaf", func(t *testing.T) {
		ev := s.patch(t, in(eventsV1, ns, "a")+"?fieldManager=second", typeMerge, `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000006Z"}}`).expect(http.StatusOK).object()
		got := entries(ev)
		if len(got) != 2 {
			t.Fatalf("managed fields %v", got)
		}
		for _, e := range got {
			if e.text("manager") == "second" {
				equalJSON(t, "fields", e["fieldsV1"], `{"f:series":{".":{},"f:count":{},"f:lastObservedTime":{}}}`)
			}
		}
	})
	t.Run("through both views", func(t *testing.T) {
		ev := s.create(t, ns, "both")
		shown := func(ev object) (all []string) {
			for _, e := range entries(ev) {
				all = append(all, e.text("manager")+" "+e.text("operation")+" "+e.text("apiVersion")+" "+marshal(t, e["fieldsV1"]))
			}
			return all
		}
		for _, c := range []struct {
			group, manager, contentType, body string
			want                              []string
		}{
			// A view knows its own kinds only and drops the entries of the other.
			{coreV1, "one", typeMerge, `{"message":"changed","metadata":{"labels":{"a":"1"}}}`,
				[]string{`one Update v1 {"f:message":{},"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`}},
			{coreV1, "two", typeMerge, `{"count":5,"source":{"component":"c"}}`, []string{
				`one Update v1 {"f:message":{},"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`, `two Update v1 {"f:count":{},"f:source":{"f:component":{}}}`}},
			{eventsV1, "two", typeStrategy, `{"series":{"count":3,"lastObservedTime":"2026-01-02T03:04:06.000006Z"}}`,
				[]string{`two Update events.k8s.io/v1 {"f:series":{".":{},"f:count":{},"f:lastObservedTime":{}}}`}},
			{coreV1, "ap", typeApply, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"both"},"message":"applied"}`,
				[]string{`ap Apply v1 {"f:message":{}}`}},
			{eventsV1, "other", typeApply, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"both","labels":{"a":"2"}}}`,
				[]string{`other Apply events.k8s.io/v1 {"f:metadata":{"f:labels":{"f:a":{}}}}`}},
			// Even where nothing else changes.
			{coreV1, "last", typeMerge, `{}`, nil},
		} {
			next := s.patch(t, in(c.group, ns, "both")+"?fieldManager="+c.manager, c.contentType, c.body).expect(http.StatusOK).object()
			if diff := cmp.Diff(c.want, shown(next)); diff != "" {
				t.Errorf("%s of %s: managed fields (-want +got):\n%s", c.contentType, c.manager, diff)
			}
			if next.version(t) <= ev.version(t) {
				t.Errorf("%s: version %d after %d", c.body, next.version(t), ev.version(t))
			}
			ev = next
		}
	})
	t.Run("kept, reset and kept again", func(t *testing.T) {
		path := in(eventsV1, ns, "r")
		ev := s.create(t, ns, "r")
		stay := merge(marshal(t, ev), `{"metadata":{"managedFields":null,"resourceVersion":null,"labels":{"a":"b"}}}`)
		if got := entries(s.put(t, path, stay).expect(http.StatusOK).object()); len(got) != 1 {
			t.Errorf("managed fields %v", got)
		}
		reset := merge(stay, `{"metadata":{"managedFields":[{}]}}`)
		if got := entries(s.put(t, path, reset).expect(http.StatusOK).object()); len(got) != 0 {
			t.Errorf("managed fields after a reset %v", got)
		}
		body := `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"r","labels":{"c":"d"}}}`
		got := entries(s.do(t, call{method: "PATCH", path: path + "?fieldManager=me", contentType: typeApply, body: body}).expect(http.StatusOK).object())
		managers := map[string]bool{}
		for _, e := range got {
			managers[e.text("manager")] = true
		}
		if !managers["before-first-apply"] || !managers["me"] {
			t.Errorf("managed fields %v", got)
		}
	})
	t.Run("ten managers at most", func(t *testing.T) {
		s.create(t, ns, "many")
		var ev object
		for i := range 12 {
			ev = s.patch(t, fmt.Sprintf("%s?fieldManager=m%02d", in(eventsV1, ns, "many"), i), typeMerge, fmt.Sprintf(`{"metadata":{"labels":{"l%d":"x"}}}`, i)).expect(http.StatusOK).object()
		}
		got := entries(ev)
		if len(got) > 11 || got[0].text("manager") != "ancient-changes" {
			t.Errorf("%d entries, the first of %q", len(got), got[0].text("manager"))
		}
	})
}
