package conformance_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	asTable   = ";as=Table;g=meta.k8s.io;v=v1"
	asPartial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asList    = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// TestNegotiation is about answers in the form that a client asks for (6).
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a")
	one, all := in(eventsV1, ns, "a"), in(eventsV1, ns)
	get := func(path, accept string) call { return call{method: "GET", path: path, accept: accept} }
	for _, c := range []struct{ name, path, accept, contentType, kind string }{
		{"none", one, "", typeJSON, "Event"},
		{"anything", one, "*/*", typeJSON, "Event"},
		{"unknown parameters", one, "application/json;charset=utf-8;profile=x", typeJSON, "Event"},
		{"YAML", one, typeYAML, typeYAML, "Event"},
		{"protobuf", one, typeProtobuf, typeProtobuf, ""},
		{"protobuf before JSON", all, typeProtobuf + "," + typeJSON, typeProtobuf, ""},
		{"quality", one, "application/json;q=0.5,application/yaml;q=0.9", typeYAML, "Event"},
		{"fallback", one, "text/html,application/json", typeJSON, "Event"},
		{"kubectl's tables", all, typeJSON + asTable + "," + typeJSON + ";as=Table;v=v1beta1;g=meta.k8s.io," + typeJSON, typeJSON, "Table"},
		{"old tables", all, typeJSON + ";as=Table;g=meta.k8s.io;v=v1beta1", typeJSON, "Table"},
		{"table of one", one, typeJSON + asTable, typeJSON, "Table"},
		{"table in YAML", one, typeYAML + asTable, typeYAML, "Table"},
		{"table in protobuf falls back", one, typeProtobuf + asTable + "," + typeJSON, typeJSON, "Event"},
		{"another stream disqualifies", one, "application/json;stream=other,application/yaml", typeYAML, "Event"},
		{"unknown form falls back", one, "application/json;as=Nothing;g=meta.k8s.io;v=v1,application/json", typeJSON, "Event"},
		{"metadata", one, typeJSON + asPartial, typeJSON, "PartialObjectMetadata"},
		{"metadata list", all, typeJSON + asList, typeJSON, "PartialObjectMetadataList"},
		{"metadata in YAML", one, typeYAML + asPartial, typeYAML, "PartialObjectMetadata"},
		{"metadata in protobuf", one, typeProtobuf + asPartial, typeProtobuf, ""},
		{"metadata list in protobuf", all, typeProtobuf + asList, typeProtobuf, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(t, get(c.path, c.accept)).expect(http.StatusOK)
			if got := a.header.Get("Content-Type"); got != c.contentType {
				t.Errorf("Content-Type %q, want %q", got, c.contentType)
			}
			switch c.contentType {
			case typeJSON:
				if got := a.object().text("kind"); got != c.kind {
					t.Errorf("kind %q, want %q", got, c.kind)
				}
			case typeYAML:
				if !strings.Contains(string(a.body), "kind: "+c.kind+"\n") {
					t.Errorf("body %s", a.body)
				}
			case typeProtobuf:
				if !bytes.HasPrefix(a.body, []byte("k8s\x00")) {
					t.Errorf("body %q", a.body)
				}
			}
		})
	}
	only := "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	routed := "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	no := metav1.StatusReasonNotAcceptable
	checkRefusals(t, s, []refusal{
		{name: "HTML", call: get(one, "text/html"), code: 406, reason: no, message: routed, details: `{}`},
		{name: "HTML of a list", call: get(all, "text/html"), code: 406, reason: no, details: `{}`,
			message: routed + ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
		{name: "CBOR", call: get(one, "application/cbor"), code: 406, reason: no, message: routed, details: `{}`},
		{name: "any application type", call: get(one, "application/*"), code: 406, reason: no, message: routed, details: `{}`},
		{name: "any application type as a table", call: get(one, "application/*;as=Table;v=v1;g=meta.k8s.io"), code: 406, reason: no, message: routed, details: `{}`},
		{name: "anything as something unknown", call: get(one, "*/*;as=Other;v=v1;g=meta.k8s.io"), code: 406, reason: no, message: only},
		{name: "JSON as something unknown", call: get(one, typeJSON+";as=Other;v=v1;g=meta.k8s.io"), code: 406, reason: no, message: only},
		{name: "delete as something unknown", call: call{method: "DELETE", path: one, accept: typeJSON + ";as=Other;v=v1;g=meta.k8s.io"}, code: 406, reason: no, message: only},
		{name: "table only in protobuf", call: get(all, typeProtobuf+asTable), code: 406, reason: no, message: only},
		{name: "metadata of a list", call: get(all, typeJSON+asPartial), code: 406, reason: no, contains: "you requested PartialObjectMetadata, but the requested object is a list"},
		{name: "metadata list of an object", call: get(one, typeJSON+asList), code: 406, reason: no, contains: "you requested PartialObjectMetadataList, but the requested object is not a list"},
		{name: "includeObject", call: get(all+"?includeObject=Foo", typeJSON+asTable), code: 400, reason: metav1.StatusReasonBadRequest,
			message: "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty"},
	})
	t.Run("406 is indented", func(t *testing.T) {
		if a := s.do(t, get(one, "text/html")); !strings.HasPrefix(string(a.body), "{\n  \"kind\": \"Status\"") || a.header.Get("Content-Type") != typeJSON {
			t.Errorf("%v: %s", a.header, a.body)
		}
	})
	t.Run("errors in the client's format", func(t *testing.T) {
		a := s.do(t, get(in(eventsV1, ns, "none"), typeProtobuf)).expect(http.StatusNotFound)
		var st metav1.Status
		decodeProto(t, a.body, "v1", "Status", &st)
		if st.Reason != metav1.StatusReasonNotFound || st.Code != 404 {
			t.Errorf("got %v", st)
		}
		if a := s.do(t, get(in(eventsV1, ns, "none"), typeYAML)).expect(http.StatusNotFound); !strings.Contains(string(a.body), "reason: NotFound\n") {
			t.Errorf("body %s", a.body)
		}
	})
	t.Run("writes answer in every form too", func(t *testing.T) {
		post := call{method: "POST", path: all, body: newEvent(ns, "t"), accept: typeJSON + asTable}
		if got := s.do(t, post).expect(http.StatusCreated).object(); got.text("kind") != "Table" {
			t.Errorf("POST: %v", got)
		}
		patch := call{method: "PATCH", path: all + "/t", contentType: typeMerge, body: `{"metadata":{"labels":{"a":"b"}}}`, accept: typeJSON + asPartial}
		if got := s.do(t, patch).expect(http.StatusOK).object(); got.text("kind") != "PartialObjectMetadata" || got.text("metadata.labels.a") != "b" {
			t.Errorf("PATCH: %v", got)
		}
		del := call{method: "DELETE", path: all + "/t", accept: typeJSON + asTable + "," + typeJSON}
		if got := s.do(t, del).expect(http.StatusOK).object(); got.text("kind") != "Status" {
			t.Errorf("DELETE: %v", got)
		}
	})
}

// TestBodies is about requests in every format (6.1).
func TestBodies(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	t.Run("no media type means JSON", func(t *testing.T) {
		s.do(t, call{method: "POST", path: in(eventsV1, ns), body: newEvent(ns, "none")}).expect(http.StatusCreated)
	})
	t.Run("parameters are ignored", func(t *testing.T) {
		s.do(t, call{method: "POST", path: in(eventsV1, ns), contentType: "application/json; charset=utf-8", body: newEvent(ns, "param")}).expect(http.StatusCreated)
	})
	t.Run("YAML", func(t *testing.T) {
		body := "kind: Event\napiVersion: v1\nmetadata:\n  name: yaml\ninvolvedObject:\n  namespace: " + ns + "\nmessage: |\n  two\n  lines\n"
		if got := s.do(t, call{method: "POST", path: in(coreV1, ns), contentType: typeYAML, body: body}).expect(http.StatusCreated).object(); got.text("message") != "two\nlines\n" {
			t.Errorf("message %q", got.text("message"))
		}
	})
	t.Run("protobuf there and back", func(t *testing.T) {
		ev := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "pb", Labels: map[string]string{"a": "b"}},
			EventTime:  metav1.NowMicro(), ReportingController: "e.x/c", ReportingInstance: "i", Action: "a", Reason: "r", Type: "Normal", Note: "n",
		}
		ev.Regarding.Namespace = ns
		body := string(encodeProto(t, "events.k8s.io/v1", "Event", ev))
		a := s.do(t, call{method: "POST", path: in(eventsV1, ns), contentType: typeProtobuf, accept: typeProtobuf, body: body}).expect(http.StatusCreated)
		if got := unwrap(t, a.body); got.Labels["a"] != "b" || got.UID == "" || got.ResourceVersion == "" || !got.EventTime.Time.Equal(ev.EventTime.Truncate(1000)) {
			t.Errorf("answer %v", got)
		}
	})
	t.Run("broken protobuf", func(t *testing.T) {
		for _, body := range []string{"k8s\x00\xff\xff", "nonsense", "k8s"} {
			refusal{call: call{method: "POST", path: in(eventsV1, ns), contentType: typeProtobuf, body: body}, code: 400, reason: metav1.StatusReasonBadRequest}.check(t, s)
		}
	})
}

// TestCompression is about gzip of large answers (6.3).
func TestCompression(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	for i := range 180 {
		s.create(t, ns, fmt.Sprintf("e%03d", i), `{"note":"`+strings.Repeat("x", 1000)+`"}`)
	}
	fetch := func(path string) *answer {
		return s.do(t, call{method: "GET", path: path, header: map[string]string{"Accept-Encoding": "gzip"}}).expect(http.StatusOK)
	}
	large := fetch(in(eventsV1, ns))
	if large.header.Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(large.header.Values("Vary"), ","), "Accept-Encoding") {
		t.Fatalf("headers %v", large.header)
	}
	z, err := gzip.NewReader(bytes.NewReader(large.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	plain := s.get(t, in(eventsV1, ns))
	if plain.header.Get("Content-Encoding") != "" || !bytes.Equal(body, plain.body) {
		t.Error("the compressed answer is another one")
	}
	if small := fetch(in(eventsV1, ns, "e001")); small.header.Get("Content-Encoding") != "" {
		t.Errorf("a small answer is compressed: %v", small.header)
	}
}

// TestHeaders is about what every answer has (6.4).
func TestHeaders(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	for _, path := range []string{in(eventsV1, ns), in(eventsV1, ns, "none")} {
		a := s.get(t, path)
		if a.header.Get("Cache-Control") != "no-cache, private" || a.header.Get("Audit-Id") == "" {
			t.Errorf("%s: headers %v", path, a.header)
		}
		a = s.do(t, call{method: "GET", path: path, header: map[string]string{"Audit-Id": "mine-1", "Kubectl-Command": "kubectl get", "Kubectl-Session": "x"}})
		if a.header.Get("Audit-Id") != "mine-1" {
			t.Errorf("Audit-Id %q", a.header.Get("Audit-Id"))
		}
	}
}
