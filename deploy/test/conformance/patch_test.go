package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPatch is about patches that work (5).
func TestPatch(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	series := `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000006Z"}}`
	t.Run("JSON patch", func(t *testing.T) {
		ev := s.create(t, ns, "j", `{"metadata":{"labels":{"a":"b"}}}`)
		body := fmt.Sprintf(`[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"replace","path":"/metadata/labels/a","value":"c"},
			{"op":"add","path":"/metadata/annotations","value":{"x":"y"}},{"op":"copy","from":"/metadata/labels/a","path":"/metadata/labels/d"},
			{"op":"move","from":"/metadata/labels/d","path":"/metadata/labels/e"},{"op":"remove","path":"/metadata/annotations/x"}]`, ev.text("metadata.resourceVersion"))
		got := s.patch(t, in(eventsV1, ns, "j"), typePatch, body).expect(http.StatusOK).object()
		equalJSON(t, "labels", got.at("metadata.labels"), `{"a":"c","e":"c"}`)
	})
	t.Run("JSON patch works on the view's form", func(t *testing.T) {
		s.create(t, ns, "v")
		got := s.patch(t, in(coreV1, ns, "v"), typePatch, `[{"op":"test","path":"/message","value":"hello"},{"op":"replace","path":"/message","value":"other"}]`).expect(http.StatusOK).object()
		if got.text("message") != "other" {
			t.Errorf("message %q", got.text("message"))
		}
	})
	t.Run("JSON patch edits managed fields and pins the version", func(t *testing.T) {
		ev := s.create(t, ns, "mf")
		body := fmt.Sprintf(`[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"me","operation":"Apply","apiVersion":"events.k8s.io/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:note":{}}}]},
			{"op":"replace","path":"/metadata/resourceVersion","value":%q}]`, ev.text("metadata.resourceVersion"))
		got := s.patch(t, in(eventsV1, ns, "mf")+"?fieldManager=kubectl", typePatch, body).expect(http.StatusOK).object()
		if got.text("metadata.managedFields.0.manager") != "me" || got.text("metadata.managedFields.0.operation") != "Apply" {
			t.Errorf("managed fields %v", got.at("metadata.managedFields"))
		}
	})
	t.Run("merge patch", func(t *testing.T) {
		s.create(t, ns, "m", `{"metadata":{"labels":{"a":"b","c":"d"}}}`)
		got := s.patch(t, in(eventsV1, ns, "m"), typeMerge, `{"metadata":{"labels":{"a":null,"e":"f"}}}`).expect(http.StatusOK).object()
		equalJSON(t, "labels", got.at("metadata.labels"), `{"c":"d","e":"f"}`)
	})
	t.Run("strategic merge patch", func(t *testing.T) {
		s.create(t, ns, "s", `{"metadata":{"finalizers":["example.com/a"],"labels":{"x":"y"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]}}`)
		path := in(eventsV1, ns, "s")
		got := s.patch(t, path, typeStrategy, `{"metadata":{"finalizers":["example.com/b"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u2"}]},`+series[1:]).expect(http.StatusOK).object()
		equalJSON(t, "finalizers", got.at("metadata.finalizers"), `["example.com/b","example.com/a"]`)
		if owners, _ := got.at("metadata.ownerReferences").([]any); len(owners) != 2 {
			t.Errorf("owners %v", owners)
		}
		equalJSON(t, "series", got.at("series.count"), `2`)
		got = s.patch(t, path, typeStrategy, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"],"ownerReferences":[{"$patch":"delete","uid":"u1"}],"labels":{"$patch":"replace","z":"1"}}}`).expect(http.StatusOK).object()
		equalJSON(t, "finalizers", got.at("metadata.finalizers"), `["example.com/b"]`)
		equalJSON(t, "labels", got.at("metadata.labels"), `{"z":"1"}`)
		if owners, _ := got.at("metadata.ownerReferences").([]any); len(owners) != 1 || got.text("metadata.ownerReferences.0.uid") != "u2" {
			t.Errorf("owners %v", owners)
		}
	})
	t.Run("parameters of the media type", func(t *testing.T) {
		s.create(t, ns, "p")
		s.patch(t, in(eventsV1, ns, "p"), typeMerge+"; charset=utf-8", `{"metadata":{"labels":{"a":"b"}}}`).expect(http.StatusOK)
	})
	t.Run("no change keeps the version", func(t *testing.T) {
		ev := s.create(t, ns, "n", series)
		for _, contentType := range []string{typeMerge, typeStrategy} {
			if got := s.patch(t, in(eventsV1, ns, "n"), contentType, series).expect(http.StatusOK).object(); got.version(t) != ev.version(t) {
				t.Errorf("%s: version %d, was %d", contentType, got.version(t), ev.version(t))
			}
		}
	})
	t.Run("the view decides what may change", func(t *testing.T) {
		s.create(t, ns, "w")
		s.patch(t, in(coreV1, ns, "w"), typeMerge, `{"message":"through core"}`).expect(http.StatusOK)
		refusal{call: call{method: "PATCH", path: in(eventsV1, ns, "w"), contentType: typeMerge, body: `{"note":"x"}`}, code: 422, reason: metav1.StatusReasonInvalid, causes: "message"}.check(t, s)
	})
	t.Run("unknown fields warn", func(t *testing.T) {
		s.create(t, ns, "u")
		for _, contentType := range []string{typeMerge, typeStrategy} {
			a := s.patch(t, in(eventsV1, ns, "u"), contentType, `{"noteX":"y"}`).expect(http.StatusOK)
			if got := a.header.Get("Warning"); got != `299 - "unknown field \"noteX\""` {
				t.Errorf("%s: Warning %s", contentType, got)
			}
		}
	})
}

// TestPatchRefused is about patches that do not (5.1-5.4, 17).
func TestPatchRefused(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "p1")
	patch := func(contentType, body string, query ...string) call {
		return call{method: "PATCH", path: in(eventsV1, ns, "p1") + strings.Join(query, ""), contentType: contentType, body: body}
	}
	many := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"Event"},`, n), ",") + "]"
	}
	undisclosed := `the server rejected our request due to an error in our request`
	bad, invalid := metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid
	checkRefusals(t, s, []refusal{
		{name: "plain JSON", call: patch(typeJSON, `{}`), code: 415, reason: metav1.StatusReasonUnsupportedMediaType, message: "415: Unsupported Media Type", details: `{}`},
		{name: "no media type", call: patch("", `{}`), code: 415, reason: metav1.StatusReasonUnsupportedMediaType},
		{name: "CBOR apply", call: patch("application/apply-patch+cbor", `x`), code: 415, reason: metav1.StatusReasonUnsupportedMediaType},
		{name: "missing event", call: call{method: "PATCH", path: in(eventsV1, ns, "none"), contentType: typeMerge, body: `{}`}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "missing event, JSON patch", call: call{method: "PATCH", path: in(eventsV1, ns, "none"), contentType: typePatch, body: `[]`}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "missing event, strategic", call: call{method: "PATCH", path: in(coreV1, ns, "none"), contentType: typeStrategy, body: `{"count":2}`}, code: 404, reason: metav1.StatusReasonNotFound,
			message: `events "none" not found`},
		{name: "other name", call: patch(typeMerge, `{"metadata":{"name":"other"}}`), code: 400, reason: bad, message: `the name of the object (other) does not match the name on the URL (p1)`},
		{name: "name of null", call: patch(typeMerge, `{"metadata":{"name":null}}`), code: 400, reason: bad},
		{name: "other namespace", call: patch(typeMerge, `{"metadata":{"name":"other","namespace":"x"}}`), code: 400, reason: bad, message: `the namespace of the provided object does not match the namespace sent on the request`},
		{name: "other version in a merge patch", call: patch(typeMerge, `{"apiVersion":"v1"}`), code: 422, reason: invalid,
			causes: "involvedObject.namespace reportingController reportingController reportingController involvedObject message reportingController"},
		{name: "other version in a JSON patch", call: patch(typePatch, `[{"op":"replace","path":"/apiVersion","value":"v1"}]`), code: 422, reason: invalid,
			causes: "involvedObject.namespace reportingController reportingController reportingController involvedObject message reportingController"},
		{name: "other version in a strict merge patch", call: patch(typeMerge, `{"apiVersion":"v1"}`, "?fieldValidation=Strict"), code: 422, reason: invalid,
			contains: `strict decoding error: unknown field "deprecatedFirstTimestamp", unknown field "deprecatedLastTimestamp", unknown field "deprecatedSource", unknown field "note"`},
		{name: "version of null", call: patch(typeMerge, `{"apiVersion":null}`), code: 400, reason: bad, message: `the name of the object (p1 based on URL) was undeterminable: name must be provided`},
		{name: "version of a number", call: patch(typeMerge, `{"apiVersion":3}`), code: 422, reason: invalid, contains: ` "" is invalid: patch: Invalid value: `},
		{name: "version of another group", call: patch(typeMerge, `{"apiVersion":"apps/v1"}`), code: 422, reason: invalid, contains: ` "" is invalid: patch: Invalid value: `},
		{name: "other kind in a merge patch", call: patch(typeMerge, `{"kind":"Pod"}`), code: 422, reason: invalid, contains: ` "" is invalid: patch: Invalid value: `},
		{name: "stale version", call: patch(typeMerge, `{"metadata":{"resourceVersion":"1"}}`), code: 409, reason: metav1.StatusReasonConflict},
		// Only that of a PUT is a precondition.
		{name: "other uid", call: patch(typeMerge, `{"metadata":{"uid":"abc"}}`), code: 422, reason: invalid, causes: "metadata.uid"},
		{name: "JSON patch that is an object", call: patch(typePatch, `{"a":1}`), code: 400, reason: bad, contains: `error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp`},
		{name: "JSON patch that is no JSON", call: patch(typePatch, `[{`), code: 400, reason: bad},
		{name: "no JSON for a missing event", call: call{method: "PATCH", path: in(eventsV1, ns, "none"), contentType: typeMerge, body: `{`}, code: 400, reason: bad, message: "invalid JSON patch"},
		{name: "merge patch that is no JSON", call: patch(typeMerge, `{`), code: 400, reason: bad},
		{name: "strategic patch that is no object", call: patch(typeStrategy, `[]`), code: 400, reason: bad},
		{name: "failing test", call: patch(typePatch, `[{"op":"test","path":"/note","value":"x"}]`), code: 422, reason: invalid, message: undisclosed, details: `{}`},
		{name: "missing path", call: patch(typePatch, `[{"op":"remove","path":"/metadata/annotations/none"}]`), code: 422, reason: invalid, message: undisclosed, details: `{}`},
		{name: "bad index", call: patch(typePatch, `[{"op":"replace","path":"/metadata/managedFields/99","value":{}}]`), code: 422, reason: invalid, message: undisclosed},
		{name: "too many operations", call: patch(typePatch, many(10001)), code: 413, reason: metav1.StatusReasonRequestEntityTooLarge,
			message: `Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001`},
		{name: "merge patch of a wrong type", call: patch(typeMerge, `{"series":{"count":"x"}}`), code: 422, reason: invalid,
			contains: `json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32`},
		{name: "strategic patch of a wrong type", call: patch(typeStrategy, `{"series":{"count":"x"}}`), code: 422, reason: invalid,
			contains: `json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32`},
		// The original stores 705032704.
		{name: "strategic patch beyond 32 bits", call: patch(typeStrategy, `{"deprecatedCount":5000000000}`), code: 422, reason: invalid,
			contains: `json: cannot unmarshal number 5000000000 into Go struct field Event.deprecatedCount of type int32`},
		// 500 in the original.
		{name: "unknown directive", call: patch(typeStrategy, `{"metadata":{"$patch":"sideways"}}`), code: 400, reason: bad},
		{name: "strict merge patch", call: patch(typeMerge, `{"noteX":"y"}`, "?fieldValidation=Strict"), code: 422, reason: invalid, contains: `strict decoding error: unknown field "noteX"`},
		{name: "strict strategic patch", call: patch(typeStrategy, `{"noteX":"y"}`, "?fieldValidation=Strict"), code: 422, reason: invalid, contains: `strict decoding error: unknown field "noteX"`},
		{name: "strict JSON patch", call: patch(typePatch, `[{"op":"add","path":"/noteX","value":1}]`, "?fieldValidation=Strict"), code: 422, reason: invalid, contains: `strict decoding error: unknown field "noteX"`},
		{name: "force without apply", call: patch(typeMerge, `{}`, "?force=true"), code: 422, reason: invalid,
			message: `PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`},
		{name: "dryRun", call: patch(typeMerge, `{}`, "?dryRun=None"), code: 422, reason: invalid, contains: `PatchOptions.meta.k8s.io "" is invalid: dryRun`},
	})
	t.Run("other version warns", func(t *testing.T) {
		a := s.do(t, patch(typeMerge, `{"apiVersion":"v1"}`)).expect(http.StatusUnprocessableEntity)
		want := "deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedSource note regarding reportingController"
		if got := unknownFields(a); got != want {
			t.Errorf("warnings of %q, want %q", got, want)
		}
	})
	t.Run("Accept-Patch", func(t *testing.T) {
		if got := s.do(t, patch(typeJSON, `{}`)).header.Get("Accept-Patch"); !strings.Contains(got, typeMerge) || !strings.Contains(got, typeApply) {
			t.Errorf("Accept-Patch %q", got)
		}
	})
	t.Run("version and kind that count for nothing", func(t *testing.T) {
		for _, c := range []call{
			patch(typeMerge, `{"kind":null}`), patch(typeMerge, `{"apiVersion":"events.k8s.io/v1","kind":"Event"}`),
			patch(typeStrategy, `{"apiVersion":"v1"}`), patch(typeStrategy, `{"apiVersion":"apps/v1","kind":"Pod"}`), patch(typeStrategy, `{"apiVersion":null,"kind":null}`),
		} {
			if got := s.do(t, c).expect(http.StatusOK).object(); got.text("apiVersion") != "events.k8s.io/v1" || got.text("kind") != "Event" {
				t.Errorf("%s: %v", c.body, got)
			}
		}
	})
	t.Run("exactly enough operations", func(t *testing.T) {
		s.patch(t, in(eventsV1, ns, "p1"), typePatch, many(10000)).expect(http.StatusOK)
	})
}
