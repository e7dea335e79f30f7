package conformance_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCreateForm is about what an accepted event looks like.
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
	// The original wants exactly six digits.
	t.Run("micro time of any precision", func(t *testing.T) {
		for sent, want := range map[string]string{"05Z": "05.000000Z", "05.1Z": "05.100000Z", "05.123456789Z": "05.123456Z"} {
			ev := s.post(t, in(eventsV1, ns)+"?dryRun=All", newEvent(ns, "any", `{"eventTime":"2026-01-02T03:04:`+sent+`"}`)).expect(http.StatusCreated).object()
			if got := ev.text("eventTime"); got != "2026-01-02T03:04:"+want {
				t.Errorf("eventTime %s of %s", got, sent)
			}
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
		{"bad finalizer", eventsV1, ns, newEvent(ns, "bf", `{"metadata":{"finalizers":["not qualified"]}}`), 422, "metadata.finalizers metadata.finalizers[0]"},
		{"finalizer without a domain", eventsV1, ns, newEvent(ns, "fd", `{"metadata":{"finalizers":["kubernetes","plain"]}}`), 422, "metadata.finalizers[1]"},
		{"finalizer without a domain through core", coreV1, ns, oldEvent(ns, "plain", `{"metadata":{"finalizers":["plain"]}}`), 201, ""},
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
