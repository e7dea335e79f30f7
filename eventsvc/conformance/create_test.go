package conformance_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCreateForm is about what an accepted event looks like (events-api.md
// 1.1-1.3).
func TestCreateForm(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)

	t.Run("members that are always there, events view", func(t *testing.T) {
		ev := s.create(t, ns, "a").object()
		for _, key := range []string{"metadata", "eventTime", "regarding", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"} {
			if _, ok := ev[key]; !ok {
				t.Errorf("no member %s", key)
			}
		}
		if ev.text("kind") != "Event" || ev.text("apiVersion") != "events.k8s.io/v1" {
			t.Errorf("kind and apiVersion: %v %v", ev["kind"], ev["apiVersion"])
		}
		if _, ok := ev["deprecatedCount"]; ok {
			t.Error("an empty deprecatedCount is shown")
		}
	})
	t.Run("members that are always there, core view", func(t *testing.T) {
		s.post(t, in(coreV1, ns), merge(oldEvent(ns, "bare"), `{"firstTimestamp":null,"lastTimestamp":null,"source":null}`)).expect(http.StatusCreated)
		a := s.get(t, in(coreV1, ns, "bare"))
		for _, text := range []string{`"source":{}`, `"firstTimestamp":null`, `"lastTimestamp":null`, `"eventTime":null`, `"reportingComponent":""`, `"reportingInstance":""`} {
			if !strings.Contains(string(a.body), text) {
				t.Errorf("no %s in %s", text, a.body)
			}
		}
	})
	t.Run("a series through core", func(t *testing.T) {
		s.post(t, in(coreV1, ns), oldEvent(ns, "series", `{"series":{}}`)).expect(http.StatusCreated)
		for group, want := range map[string]string{coreV1: `"series":{"lastObservedTime":null}`, eventsV1: `"series":{"count":0,"lastObservedTime":null}`} {
			if a := s.get(t, in(group, ns, "series")); !strings.Contains(string(a.body), want) {
				t.Errorf("no %s in %s", want, a.body)
			}
		}
	})
	t.Run("order of members", func(t *testing.T) {
		full := newEvent(ns, "order", `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000006Z"},"related":{"name":"x"}}`)
		s.post(t, in(eventsV1, ns), full).expect(http.StatusCreated)
		wantOrder(t, s.get(t, in(eventsV1, ns, "order")).body, "kind", "apiVersion", "metadata", "eventTime", "series", "reportingController",
			"reportingInstance", "action", "reason", "regarding", "related", "note", "type", "deprecatedSource",
			"deprecatedFirstTimestamp", "deprecatedLastTimestamp")
		wantOrder(t, s.get(t, in(coreV1, ns, "order")).body, "kind", "apiVersion", "metadata", "involvedObject", "reason", "message", "source",
			"firstTimestamp", "lastTimestamp", "type", "eventTime", "series", "action", "related", "reportingComponent", "reportingInstance")
	})
	t.Run("micro time in another zone", func(t *testing.T) {
		ev := s.create(t, ns, "zone", `{"eventTime":"2026-01-02T05:04:05.100000+02:00"}`)
		if got := ev.text("eventTime"); got != "2026-01-02T03:04:05.100000Z" {
			t.Errorf("eventTime %s", got)
		}
	})
	t.Run("both views show one object", func(t *testing.T) {
		created := s.create(t, ns, "views", `{"series":{"count":7,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`)
		core := s.get(t, in(coreV1, ns, "views")).expect(http.StatusOK).object()
		for _, pair := range [][2]string{
			{"regarding", "involvedObject"}, {"note", "message"}, {"reportingController", "reportingComponent"},
			{"reportingInstance", "reportingInstance"}, {"eventTime", "eventTime"}, {"series", "series"}, {"type", "type"},
			{"action", "action"}, {"reason", "reason"}, {"metadata", "metadata"}, {"deprecatedSource", "source"},
			{"deprecatedFirstTimestamp", "firstTimestamp"},
		} {
			equalJSON(t, pair[1], core.at(pair[1]), marshal(t, created.at(pair[0])))
		}
		if core["count"] != nil {
			t.Errorf("count %v was derived from the series", core["count"])
		}
		s.post(t, in(coreV1, ns), oldEvent(ns, "old")).expect(http.StatusCreated)
		old := s.get(t, in(eventsV1, ns, "old")).object()
		equalJSON(t, "source", old["deprecatedSource"], `{"component":"kubelet","host":"h1"}`)
		equalJSON(t, "count", old["deprecatedCount"], `1`)
		equalJSON(t, "last", old["deprecatedLastTimestamp"], `"2026-01-02T03:04:06Z"`)
		if old["reportingController"] != nil {
			t.Errorf("reportingController %v was derived", old["reportingController"])
		}
	})
	t.Run("managed fields keep the writer's version", func(t *testing.T) {
		s.create(t, ns, "writer")
		fields := s.get(t, in(coreV1, ns, "writer")).object().at("metadata.managedFields.0")
		o := object(fields.(map[string]any))
		if o.text("apiVersion") != "events.k8s.io/v1" || o.at("fieldsV1.f:note") == nil {
			t.Errorf("managed fields %v", o)
		}
	})
	t.Run("metadata set by the server", func(t *testing.T) {
		before := time.Now().Add(-2 * time.Second)
		ev := s.create(t, ns, "wiped", `{"metadata":{"uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",
			"deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5,"selfLink":"/x"}}`)
		at, err := time.Parse(time.RFC3339, ev.text("metadata.creationTimestamp"))
		if err != nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("creationTimestamp %s", ev.text("metadata.creationTimestamp"))
		}
		if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(ev.text("metadata.uid")) {
			t.Errorf("uid %q", ev.text("metadata.uid"))
		}
		for _, key := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"} {
			if ev.at("metadata."+key) != nil {
				t.Errorf("%s is %v", key, ev.at("metadata."+key))
			}
		}
		if ev.text("metadata.namespace") != ns {
			t.Errorf("namespace %q", ev.text("metadata.namespace"))
		}
	})
	t.Run("no default for type", func(t *testing.T) {
		ev := s.post(t, in(coreV1, ns), oldEvent(ns, "untyped", `{"type":null}`)).expect(http.StatusCreated).object()
		if ev["type"] != nil {
			t.Errorf("type %v", ev["type"])
		}
	})
	t.Run("generated name", func(t *testing.T) {
		base := strings.Repeat("b", 70)
		ev := s.post(t, in(eventsV1, ns), newEvent(ns, "", `{"metadata":{"name":null,"generateName":"`+base+`"}}`)).expect(http.StatusCreated).object()
		if !regexp.MustCompile(`^b{58}[bcdfghjklmnpqrstvwxz2456789]{5}$`).MatchString(ev.text("metadata.name")) {
			t.Errorf("name %q", ev.text("metadata.name"))
		}
		if ev.text("metadata.generateName") != base {
			t.Errorf("generateName %q", ev.text("metadata.generateName"))
		}
	})
	t.Run("duplicate owners", func(t *testing.T) {
		owner := `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
		a := s.post(t, in(eventsV1, ns), newEvent(ns, "owners", `{"metadata":{"ownerReferences":[`+owner+`,`+owner+`]}}`)).expect(http.StatusCreated)
		if !strings.Contains(a.header.Get("Warning"), ".metadata.ownerReferences contains duplicate entries;") {
			t.Errorf("Warning %q", a.header.Get("Warning"))
		}
		equalJSON(t, "owners", a.object().at("metadata.ownerReferences"), `[`+owner+`]`)
	})
}

// object makes copies of the type assertion unnecessary where an answer's
// object is used as one already.
func (o object) object() object { return o }

// wantOrder checks that the members of a JSON object come in this order.
func wantOrder(t *testing.T, body []byte, keys ...string) {
	t.Helper()
	got := memberNames(t, body)
	if strings.Join(got, " ") != strings.Join(keys, " ") {
		t.Errorf("members:\n got %v\nwant %v", got, keys)
	}
}

// TestCreateRules is the table of limits of both views (1.4).
func TestCreateRules(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	at := `"2026-01-02T03:04:05.000006Z"`
	for _, c := range []struct {
		name, group, ns, body string
		want                  int
		causes                string
	}{
		{"minimal in kube-system", eventsV1, "kube-system", newEvent("x", "m", `{"regarding":{"namespace":null},"reportingController":"k8s.io/x","note":null}`), 201, ""},
		{"minimal in default", eventsV1, "default", newEvent("x", "m", `{"regarding":null}`), 201, ""},
		{"minimal in kube-public", eventsV1, "kube-public", newEvent("x", "m", `{"regarding":{"namespace":null}}`), 422, "involvedObject.namespace"},
		{"only a name", eventsV1, ns, `{"metadata":{"name":"b1"},"regarding":{"namespace":"` + ns + `"}}`, 422, "eventTime type"},
		{"instance of 128 bytes", eventsV1, ns, newEvent(ns, "i128", `{"reportingInstance":"`+strings.Repeat("i", 128)+`"}`), 201, ""},
		{"instance of 129 bytes", eventsV1, ns, newEvent(ns, "i129", `{"reportingInstance":"`+strings.Repeat("i", 129)+`"}`), 422, "reportingInstance"},
		{"instance of 128 bytes in 64 runes", eventsV1, ns, newEvent(ns, "r64", `{"reportingInstance":"`+strings.Repeat("ä", 64)+`"}`), 201, ""},
		{"instance of 130 bytes in 65 runes", eventsV1, ns, newEvent(ns, "r65", `{"reportingInstance":"`+strings.Repeat("ä", 65)+`"}`), 422, "reportingInstance"},
		{"action of 129 bytes", eventsV1, ns, newEvent(ns, "a129", `{"action":"`+strings.Repeat("a", 129)+`"}`), 422, "action"},
		{"reason of 129 bytes", eventsV1, ns, newEvent(ns, "c129", `{"reason":"`+strings.Repeat("a", 129)+`"}`), 422, "reason"},
		{"no action", eventsV1, ns, newEvent(ns, "noa", `{"action":null}`), 422, "action"},
		{"no reason", eventsV1, ns, newEvent(ns, "nor", `{"reason":null}`), 422, "reason"},
		{"no instance", eventsV1, ns, newEvent(ns, "noi", `{"reportingInstance":null}`), 422, "reportingInstance"},
		{"no controller", eventsV1, ns, newEvent(ns, "noc", `{"reportingController":null}`), 422, "reportingController reportingController reportingController"},
		{"no controller through core", coreV1, ns, oldEvent(ns, "noc", `{"eventTime":`+at+`,"reportingInstance":"i","action":"a"}`), 422, "reportingComponent reportingComponent reportingComponent"},
		{"controller that is no qualified name", eventsV1, ns, newEvent(ns, "badc", `{"reportingController":"a/b/c"}`), 422, "reportingController"},
		{"note of 1024 bytes", eventsV1, ns, newEvent(ns, "n1024", `{"note":"`+strings.Repeat("n", 1024)+`"}`), 201, ""},
		{"note of 1025 bytes", eventsV1, ns, newEvent(ns, "n1025", `{"note":"`+strings.Repeat("n", 1025)+`"}`), 422, "message"},
		{"note of 1026 bytes in 513 runes", eventsV1, ns, newEvent(ns, "n513", `{"note":"`+strings.Repeat("ä", 513)+`"}`), 422, "message"},
		{"empty note", eventsV1, ns, newEvent(ns, "n0", `{"note":null}`), 201, ""},
		{"long note of an old event through core", coreV1, ns, oldEvent(ns, "n64k", `{"message":"`+strings.Repeat("n", 64<<10)+`"}`), 201, ""},
		{"series of 2", eventsV1, ns, newEvent(ns, "s2", `{"series":{"count":2,"lastObservedTime":`+at+`}}`), 201, ""},
		{"series of 1", eventsV1, ns, newEvent(ns, "s1", `{"series":{"count":1,"lastObservedTime":`+at+`}}`), 422, "series.count"},
		{"series without time", eventsV1, ns, newEvent(ns, "st", `{"series":{"count":2}}`), 422, "series.lastObservedTime"},
		{"series of 1 through core", coreV1, ns, oldEvent(ns, "cs1", `{"series":{"count":1}}`), 201, ""},
		{"regarding in another namespace", eventsV1, ns, newEvent("other", "rn"), 201, ""},
		{"strange type", eventsV1, ns, newEvent(ns, "ty", `{"type":"weird"}`), 422, "type"},
		{"strange type through core", coreV1, ns, oldEvent(ns, "cty", `{"type":"weird"}`), 201, ""},
		{"deprecated fields", eventsV1, ns, newEvent(ns, "dep", `{"deprecatedFirstTimestamp":"2026-01-02T03:04:05Z","deprecatedLastTimestamp":"2026-01-02T03:04:05Z","deprecatedCount":1,"deprecatedSource":{"component":"c"}}`),
			422, "firstTimestamp lastTimestamp count source"},
		{"old event about another namespace", coreV1, ns, oldEvent("other", "oo"), 422, "involvedObject.namespace"},
		{"old event about no namespace", coreV1, ns, oldEvent(ns, "on", `{"involvedObject":{"namespace":null}}`), 422, "involvedObject.namespace"},
		{"old event about no namespace in kube-system", coreV1, "kube-system", oldEvent(ns, "on", `{"involvedObject":{"namespace":null}}`), 422, "involvedObject.namespace"},
		{"old event about no namespace in default", coreV1, "default", oldEvent(ns, "on", `{"involvedObject":{"namespace":null}}`), 201, ""},
		{"upper-case name", eventsV1, ns, newEvent(ns, "Bad_Name"), 422, "metadata.name"},
		{"upper-case name through core", coreV1, ns, oldEvent(ns, "Bad_Name"), 201, ""},
		{"name of 254 bytes", eventsV1, ns, newEvent(ns, strings.Repeat("n", 254)), 422, "metadata.name"},
		{"name of 254 bytes through core", coreV1, ns, oldEvent(ns, strings.Repeat("n", 254)), 201, ""},
		{"name with a slash through core", coreV1, ns, oldEvent(ns, "a/b"), 422, "metadata.name"},
		{"name with a percent sign through core", coreV1, ns, oldEvent(ns, "a%b"), 422, "metadata.name"},
		{"bad label", eventsV1, ns, newEvent(ns, "bl", `{"metadata":{"labels":{"a b":"c"}}}`), 422, "metadata.labels"},
		{"bad label through core", coreV1, ns, oldEvent(ns, "bl", `{"metadata":{"labels":{"a b":"c"}}}`), 422, "metadata.labels"},
		{"too many annotations", eventsV1, ns, newEvent(ns, "ba", `{"metadata":{"annotations":{"a":"`+strings.Repeat("x", 262144)+`"}}}`), 422, "metadata.annotations"},
		{"bad finalizer", eventsV1, ns, newEvent(ns, "bf", `{"metadata":{"finalizers":["not qualified"]}}`), 422, "metadata.finalizers"},
		{"owned by an event", eventsV1, ns, newEvent(ns, "oe", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]}}`), 422, "metadata.ownerReferences[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := call{method: "POST", path: in(c.group, c.ns), contentType: typeJSON, body: c.body}
			if c.want == http.StatusCreated {
				s.do(t, request).expect(c.want)
				return
			}
			refusal{call: request, code: c.want, reason: metav1.StatusReasonInvalid, causes: c.causes}.check(t, s)
		})
	}
	t.Run("through the other view", func(t *testing.T) {
		path := in(eventsV1, ns, "Bad_Name")
		s.get(t, path).expect(http.StatusOK)
		s.patch(t, path, typeMerge, `{"metadata":{"labels":{"a":"b"}}}`).expect(http.StatusOK)
		s.delete(t, path, "").expect(http.StatusOK)
	})
}

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
		{name: "time without fraction", call: post(eventsV1, newEvent(ns, "b1", `{"eventTime":"2026-01-02T03:04:05Z"}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `2006-01-02T15:04:05.000000Z07:00`},
		{name: "time with nanoseconds", call: post(eventsV1, newEvent(ns, "b1", `{"eventTime":"2026-01-02T03:04:05.123456789Z"}`), ""), code: 400, reason: metav1.StatusReasonBadRequest,
			contains: `2006-01-02T15:04:05.000000Z07:00`},
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
