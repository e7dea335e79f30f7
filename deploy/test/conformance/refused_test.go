package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCreateRefused is about the bodies of refusals of POST (1.1, 1.3, 1.4,
// 3.5, 6.1, 9.1).
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "there")
	post := func(group, body, query string) call {
		return call{method: "POST", path: in(group, ns) + query, contentType: typeJSON, body: body}
	}
	ev := newEvent(ns, "n1")
	checkRefusals(t, s, []refusal{
		{name: "two causes", call: post(eventsV1, `{"metadata":{"name":"b1"},"regarding":{"namespace":"`+ns+`"}}`, ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]`,
			details: `{"name":"b1","kind":"Event","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"eventTime"},
				{"reason":"FieldValueInvalid","message":"Invalid value: \"\": has invalid value: ","field":"type"}]}`},
		{name: "one cause", call: post(eventsV1, newEvent(ns, "b1", `{"type":"Odd"}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: type: Invalid value: "": has invalid value: Odd`},
		{name: "long instance", call: post(eventsV1, newEvent(ns, "b1", `{"reportingInstance":"`+strings.Repeat("i", 129)+`"}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: reportingInstance: Invalid value: "": can have at most 128 characters`},
		{name: "empty controller", call: post(eventsV1, newEvent(ns, "b1", `{"reportingController":null}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `Event "b1" is invalid: [reportingController: Required value, reportingController: Invalid value: "": name part must be non-empty, reportingController: Invalid value: "": name part must consist of`},
		{name: "namespace of an old event", call: post(coreV1, oldEvent("other", "b1"), ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace`},
		{name: "deprecated count", call: post(eventsV1, newEvent(ns, "b1", `{"deprecatedCount":3}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: count: Invalid value: "": needs to be unset`},
		{name: "series count", call: post(eventsV1, newEvent(ns, "b1", `{"series":{"count":1,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			message: `Event "b1" is invalid: series.count: Invalid value: "": should be at least 2`},
		{name: "no name", call: post(coreV1, oldEvent(ns, "", `{"metadata":{"name":null}}`), ""), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `metadata.name: Required value: name or generateName is required`},
		{name: "time with ten digits", call: post(eventsV1, newEvent(ns, "b1", `{"eventTime":"2026-01-02T03:04:05.1234567890Z"}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `parsing time "2026-01-02T03:04:05.1234567890Z": the fraction has more than nine digits`},
		{name: "count beyond 32 bits", call: post(coreV1, oldEvent(ns, "b1", `{"count":5000000000}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `json: cannot unmarshal number 5000000000 into Go struct field Event.count of type int32`},
		{name: "exists", call: post(eventsV1, newEvent(ns, "there"), ""), code: 409, reason: metav1.StatusReasonAlreadyExists,
			message: `events.events.k8s.io "there" already exists`, details: `{"name":"there","group":"events.k8s.io","kind":"events"}`},
		{name: "exists, core", call: post(coreV1, oldEvent(ns, "there"), ""), code: 409, reason: metav1.StatusReasonAlreadyExists,
			message: `events "there" already exists`, details: `{"name":"there","kind":"events"}`},
		// 500 in the original.
		{name: "resource version", call: post(eventsV1, newEvent(ns, "b1", `{"metadata":{"resourceVersion":"5"}}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `resourceVersion should not be set on objects to be created`},
		{name: "other namespace in the body", call: post(eventsV1, newEvent(ns, "b1", `{"metadata":{"namespace":"other"}}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the namespace of the provided object does not match the namespace sent on the request`},
		{name: "other version in the body", call: post(eventsV1, newEvent(ns, "b1", `{"kind":"Event","apiVersion":"v1"}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)`},
		{name: "other version in the body, bad time", call: post(eventsV1, newEvent(ns, "b1", `{"apiVersion":"v1","eventTime":"x"}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `Event in version "v1" cannot be handled as a Event: parsing time "x"`},
		{name: "other version in the body, strict", call: post(eventsV1, newEvent(ns, "b1", `{"kind":"Event","apiVersion":"v1"}`), "?fieldValidation=Strict"), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field `},
		{name: "other version in the body, core", call: post(coreV1, newEvent(ns, "b1", `{"kind":"Event","apiVersion":"events.k8s.io/v1"}`), "?fieldValidation=Strict"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)`},
		{name: "other kind in the body", call: post(coreV1, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`, ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `Pod in version "v1" cannot be handled as a Event`},
		{name: "broken JSON", call: post(eventsV1, `{"kind":`, ""), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `the object provided is unrecognized (must be of type Event): couldn't get version/kind; json parse error: unexpected end of JSON input ({"kind":)`},
		{name: "empty body", call: post(eventsV1, ``, ""), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "empty object", call: post(eventsV1, `{}`, ""), code: 422, reason: metav1.StatusReasonInvalid},
		{name: "null", call: post(eventsV1, `null`, ""), code: 422, reason: metav1.StatusReasonInvalid},
		{name: "unknown media type", call: call{method: "POST", path: in(eventsV1, ns), contentType: "text/csv", body: ev}, code: 415, reason: metav1.StatusReasonUnsupportedMediaType,
			message: `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
		{name: "too long", call: post(eventsV1, newEvent(ns, "b1", `{"note":"`+strings.Repeat("x", 3<<20)+`"}`), ""), code: 413, reason: metav1.StatusReasonRequestEntityTooLarge,
			message: `Request entity too large: limit is 3145728`},
		{name: "bad namespace in the path", call: call{method: "POST", path: in(eventsV1, "Bad_NS"), body: newEvent("Bad_NS", "n")}, code: 422, reason: metav1.StatusReasonInvalid,
			causes: "namespace metadata.namespace"},
		{name: "dryRun", call: post(eventsV1, ev, "?dryRun=None"), code: 422, reason: metav1.StatusReasonInvalid,
			message: `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"`,
			details: `{"group":"meta.k8s.io","kind":"CreateOptions","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"None\"]: supported values: \"All\"","field":"dryRun"}]}`},
		{name: "empty dryRun", call: post(eventsV1, ev, "?dryRun="), code: 422, reason: metav1.StatusReasonInvalid, causes: "dryRun"},
		{name: "fieldManager too long", call: post(eventsV1, ev, "?fieldManager="+strings.Repeat("m", 129)), code: 422, reason: metav1.StatusReasonInvalid, causes: "fieldManager"},
		{name: "fieldManager not printable", call: post(eventsV1, ev, "?fieldManager=a%07b"), code: 422, reason: metav1.StatusReasonInvalid, causes: "fieldManager"},
		{name: "fieldValidation", call: post(eventsV1, ev, "?fieldValidation=Maybe"), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `supported values: "", "Ignore", "Strict", "Warn"`},
		{name: "strict", call: post(eventsV1, strings.Replace(newEvent(ns, "b1", `{"noteX":"y"}`), `"note":`, `"note":"a","note":`, 1), "?fieldValidation=Strict"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `Event in version "v1" cannot be handled as a Event: strict decoding error: duplicate field "note", unknown field "noteX"`},
		{name: "strict, other case", call: post(eventsV1, newEvent(ns, "b1", `{"Note":"y"}`), "?fieldValidation=Strict"), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `unknown field "Note"`},
		{name: "timeout", call: post(eventsV1, ev, "?timeout=abc"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `invalid timeout specified in the request URL - time: invalid duration "abc"`},
		{name: "nothing acceptable", call: call{method: "POST", path: in(eventsV1, ns), accept: "text/html", body: newEvent(ns, "never")}, code: 406, reason: metav1.StatusReasonNotAcceptable},
	})
	s.get(t, in(eventsV1, ns, "never")).expect(http.StatusNotFound)
	// A body is read as the version that it names.
	for path, c := range map[string]struct{ body, want string }{
		in(eventsV1, ns):         {newEvent(ns, "b1", `{"apiVersion":"v1"}`), "note regarding reportingController"},
		in(coreV1, ns):           {oldEvent(ns, "b1", `{"apiVersion":"events.k8s.io/v1"}`), "count firstTimestamp involvedObject lastTimestamp message source"},
		in(eventsV1, ns) + "/b1": {newEvent(ns, "b1", `{"apiVersion":"v1"}`), "note regarding reportingController"},
	} {
		t.Run("other version in the body warns of "+c.want, func(t *testing.T) {
			method := "POST"
			if strings.HasSuffix(path, "/b1") {
				method = "PUT"
			}
			a := s.do(t, call{method: method, path: path, contentType: typeJSON, body: c.body}).expect(http.StatusBadRequest)
			if got := unknownFields(a); got != c.want {
				t.Errorf("%s %s: warnings of %q, want %q", method, path, got, c.want)
			}
		})
	}
}

// TestFieldValidation is about what is not refused (3.5).
func TestFieldValidation(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	body := func(name string) string {
		return strings.Replace(newEvent(ns, name, `{"noteX":"y"}`), `"note":"hello"`, `"note":"a","note":"hello"`, 1)
	}
	t.Run("warn is the default", func(t *testing.T) {
		a := s.post(t, in(eventsV1, ns), body("w1")).expect(http.StatusCreated)
		got := strings.Join(a.header.Values("Warning"), "|")
		for _, want := range []string{`299 - "unknown field \"noteX\""`, `299 - "duplicate field \"note\""`} {
			if !strings.Contains(got, want) {
				t.Errorf("Warning %s, want %s", got, want)
			}
		}
		if a.object().text("note") != "hello" {
			t.Errorf("note %q, want the last duplicate", a.object().text("note"))
		}
	})
	t.Run("ignore", func(t *testing.T) {
		a := s.post(t, in(eventsV1, ns)+"?fieldValidation=Ignore", body("w2")).expect(http.StatusCreated)
		if w := a.header.Values("Warning"); len(w) > 0 {
			t.Errorf("Warning %v", w)
		}
	})
	t.Run("duplicate keys in YAML", func(t *testing.T) {
		text := fmt.Sprintf("metadata: {name: y1}\neventTime: 2026-01-02T03:04:05.000006Z\nreportingController: e.x/c\nreportingInstance: i\n"+
			"action: a\nreason: r\nregarding: {namespace: %s}\ntype: Warning\ntype: Normal\n", ns)
		a := s.do(t, call{method: "POST", path: in(eventsV1, ns), contentType: typeYAML, body: text}).expect(http.StatusCreated)
		if got := a.header.Get("Warning"); got != `299 - "line 9: key \"type\" already set in map"` {
			t.Errorf("Warning %s", got)
		}
	})
}

// TestDryRun checks that nothing of a dry run stays (3.7).
func TestDryRun(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	before := s.create(t, ns, "a")
	path := in(eventsV1, ns, "a")

	created := s.post(t, in(eventsV1, ns)+"?dryRun=All", newEvent(ns, "b")).expect(http.StatusCreated).object()
	if created.text("metadata.uid") == "" || created.text("metadata.creationTimestamp") == "" || created.at("metadata.resourceVersion") != nil {
		t.Errorf("dry-run create: %v", created["metadata"])
	}
	s.get(t, in(eventsV1, ns, "b")).expect(http.StatusNotFound)
	s.post(t, in(eventsV1, ns)+"?dryRun=All", newEvent(ns, "a")).expect(http.StatusConflict)
	generated := s.post(t, in(eventsV1, ns)+"?dryRun=All", newEvent(ns, "", `{"metadata":{"name":null,"generateName":"g-"}}`)).expect(http.StatusCreated).object()
	if !strings.HasPrefix(generated.text("metadata.name"), "g-") {
		t.Errorf("name %q", generated.text("metadata.name"))
	}
	patched := s.patch(t, path+"?dryRun=All", typeMerge, `{"metadata":{"labels":{"x":"y"}}}`).expect(http.StatusOK).object()
	if patched.text("metadata.labels.x") != "y" || patched.version(t) != before.version(t) {
		t.Errorf("dry-run patch: %v", patched["metadata"])
	}
	s.put(t, path+"?dryRun=All", newEvent(ns, "a", `{"metadata":{"labels":{"x":"y"}}}`)).expect(http.StatusOK)
	gone := s.delete(t, path+"?dryRun=All", "").expect(http.StatusOK).object()
	if gone.text("status") != "Success" || gone.text("details.uid") != before.text("metadata.uid") {
		t.Errorf("dry-run delete: %v", gone)
	}
	s.delete(t, in(eventsV1, ns)+"?dryRun=All", "").expect(http.StatusOK)
	after := s.get(t, in(eventsV1, ns)).object()
	if got := after.names(); len(got) != 1 || got[0] != "a" || after.version(t) != before.version(t) {
		t.Errorf("after all: %v at %s, want a at %s", got, after.text("metadata.resourceVersion"), before.text("metadata.resourceVersion"))
	}
}

// unknownFields are the fields that the warnings of an answer name, in order.
func unknownFields(a *answer) string {
	var names []string
	for _, warning := range a.header.Values("Warning") {
		name, _ := strings.CutPrefix(warning, `299 - "unknown field \"`)
		names = append(names, strings.TrimSuffix(name, `\""`))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
