package conformance_test

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestWatchProtobuf is about binary frames (4.1): four bytes of length, then a
// bare WatchEvent whose object has its envelope.
func TestWatchProtobuf(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	want := s.create(t, ns, "a")
	for _, accept := range []string{typeProtobuf, typeProtobuf + ";stream=watch"} {
		res, err := s.plain.Do(s.request(t, call{method: "GET", path: in(eventsV1, ns) + "?watch=true&allowWatchBookmarks=true", accept: accept}))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("Content-Type"); got != typeProtobuf+";stream=watch" {
			t.Errorf("Content-Type %s", got)
		}
		for _, kind := range []string{"ADDED", bookmark} {
			var length [4]byte
			if _, err := io.ReadFull(res.Body, length[:]); err != nil {
				t.Fatal(err)
			}
			frame := make([]byte, binary.BigEndian.Uint32(length[:]))
			if _, err := io.ReadFull(res.Body, frame); err != nil {
				t.Fatal(err)
			}
			var outer metav1.WatchEvent
			if err := outer.Unmarshal(frame); err != nil {
				t.Fatal(err)
			}
			ev := unwrap(t, outer.Object.Raw)
			if outer.Type != kind {
				t.Errorf("got %s, want %s", outer.Type, kind)
			}
			if kind == "ADDED" && (ev.Name != "a" || ev.ResourceVersion != want.text("metadata.resourceVersion") || ev.Note != "hello") {
				t.Errorf("object %v", ev)
			}
			if kind == bookmark && ev.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("bookmark %v", ev)
			}
		}
		res.Body.Close()
	}
}

// unwrap decodes an event from its protobuf envelope.
func unwrap(t *testing.T, raw []byte) *eventsv1.Event {
	t.Helper()
	var ev eventsv1.Event
	decodeProto(t, raw, "events.k8s.io/v1", "Event", &ev)
	return &ev
}

type protobufMessage interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// encodeProto puts a message into the envelope that says what it is.
func encodeProto(t *testing.T, apiVersion, kind string, m protobufMessage) []byte {
	t.Helper()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: must(m.Marshal()).or(t)}
	return append([]byte("k8s\x00"), must(unknown.Marshal()).or(t)...)
}

// decodeProto takes a message out of its envelope.
func decodeProto(t *testing.T, b []byte, apiVersion, kind string, into protobufMessage) {
	t.Helper()
	var unknown runtime.Unknown
	body, ok := strings.CutPrefix(string(b), "k8s\x00")
	if !ok {
		t.Fatalf("no envelope: %q", b)
	}
	if err := unknown.Unmarshal([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if unknown.APIVersion != apiVersion || unknown.Kind != kind {
		t.Fatalf("%s %s, want %s %s", unknown.APIVersion, unknown.Kind, apiVersion, kind)
	}
	if err := into.Unmarshal(unknown.Raw); err != nil {
		t.Fatal(err)
	}
}

// TestWatchForms is about watches of tables and of metadata (4.4).
func TestWatchForms(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	s.create(t, ns, "a")
	s.create(t, ns, "b")
	t.Run("table", func(t *testing.T) {
		w := s.watchAs(t, path+"?watch=true&allowWatchBookmarks=true", typeJSON+";as=Table;g=meta.k8s.io;v=v1")
		got := w.want(t, "ADDED", "ADDED", bookmark)
		if columns, _ := got[0].object["columnDefinitions"].([]any); len(columns) != 10 || got[0].object.text("kind") != "Table" {
			t.Errorf("first %v", got[0].object)
		}
		if v, ok := got[1].object["columnDefinitions"]; !ok || v != nil {
			t.Errorf("columns of the second: %v", v)
		}
		if got[0].object.text("rows.0.object.kind") != "PartialObjectMetadata" || got[0].object.text("rows.0.object.metadata.name") != "a" {
			t.Errorf("row object %v", got[0].object.at("rows.0.object"))
		}
		if got[0].object.text("metadata.resourceVersion") != got[0].object.text("rows.0.object.metadata.resourceVersion") {
			t.Errorf("version %v", got[0].object["metadata"])
		}
		equalJSON(t, "bookmark cells", got[2].object.at("rows.0.cells"), `["<unknown>","","","","","","","<unknown>",1,""]`)
		if o := object(got[2].object.at("rows.0.object").(map[string]any)); annotation(o, metav1.InitialEventsAnnotationKey) != "true" {
			t.Errorf("bookmark %v", got[2].object)
		}
	})
	t.Run("table, no objects", func(t *testing.T) {
		w := s.watchAs(t, path+"?watch=true&allowWatchBookmarks=true&includeObject=None", typeJSON+";as=Table;g=meta.k8s.io;v=v1")
		got := w.want(t, "ADDED", "ADDED", bookmark)
		if got[0].object.at("rows.0.object") != nil {
			t.Errorf("row object %v", got[0].object.at("rows.0.object"))
		}
		if o, _ := got[2].object.at("rows.0.object").(map[string]any); annotation(o, metav1.InitialEventsAnnotationKey) != "true" {
			t.Errorf("bookmark %v", got[2].object)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		w := s.watchAs(t, path+"?watch=true&allowWatchBookmarks=true", typeJSON+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		for _, c := range w.want(t, "ADDED a", "ADDED b", bookmark) {
			if c.object.text("kind") != "PartialObjectMetadata" || c.object["regarding"] != nil {
				t.Errorf("object %v", c.object)
			}
		}
	})
	t.Run("errors stay a Status", func(t *testing.T) {
		w := s.watchAs(t, path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999", typeJSON+";as=Table;g=meta.k8s.io;v=v1")
		if c := w.want(t, "ERROR")[0]; c.object.text("kind") != "Status" {
			t.Errorf("object %v", c.object)
		}
	})
	t.Run("YAML", func(t *testing.T) {
		a := s.do(t, call{method: "GET", path: path + "?watch=true", accept: typeYAML}).expect(http.StatusNotAcceptable)
		for _, text := range []string{"kind: Status\n", "only the following media types are accepted: application/json;stream=watch,"} {
			if !strings.Contains(string(a.body), text) {
				t.Errorf("no %q in %s", text, a.body)
			}
		}
	})
	t.Run("table in protobuf", func(t *testing.T) {
		refusal{call: call{method: "GET", path: path + "?watch=true", accept: typeProtobuf + ";as=Table;g=meta.k8s.io;v=v1"}, code: 406, reason: metav1.StatusReasonNotAcceptable}.check(t, s)
	})
	t.Run("never compressed, never indented", func(t *testing.T) {
		req := s.request(t, call{method: "GET", path: path + "?watch=true&pretty=true&timeoutSeconds=5", header: map[string]string{"Accept-Encoding": "gzip"}})
		res, err := s.plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("Content-Encoding") != "" || strings.Count(string(body), "\n") != 2 {
			t.Errorf("%v, %v: %s", err, res.Header, body)
		}
	})
}
