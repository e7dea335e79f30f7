package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestGroupDomain serves the group under another name. What is stored does not
// depend on it: a restart with yet another name serves the same events.
func TestGroupDomain(t *testing.T) {
	t.Parallel()
	s, ns := start(t, "--group-domain", "example.com"), namespace(t)
	here := "/apis/events.example.com/v1"
	ev := s.post(t, in(here, ns), newEvent(ns, "a", `{"apiVersion":"events.example.com/v1","kind":"Event"}`)).expect(http.StatusCreated).object()
	if ev.text("apiVersion") != "events.example.com/v1" || ev.text("metadata.managedFields.0.apiVersion") != "events.example.com/v1" {
		t.Errorf("event %v", ev)
	}
	refusal{call: call{method: "GET", path: in(here, ns, "x")}, code: 404, reason: metav1.StatusReasonNotFound,
		message: `events.events.example.com "x" not found`, details: `{"name":"x","group":"events.example.com","kind":"events"}`}.check(t, s)
	s.get(t, in(eventsV1, ns, "a")).expect(http.StatusNotFound)
	s.watch(t, in(here, ns)+"?watch=true").want(t, "ADDED a")

	gvr := schema.GroupVersionResource{Group: "events.example.com", Version: "v1", Resource: "events"}
	for what, config := range map[string]*rest.Config{"TLS": s.config(), "plain": s.plainConfig()} {
		client := must(dynamic.NewForConfig(config)).or(t)
		list := must(client.Resource(gvr).List(t.Context(), metav1.ListOptions{})).or(t)
		if len(list.Items) != 1 || list.GetAPIVersion() != "events.example.com/v1" {
			t.Errorf("%s: list %v", what, list)
		}
	}
	t.Run("protobuf", func(t *testing.T) { protobufOf(t, s, in(here, ns), "events.example.com/v1") })
	k := s.kubectl(t, must(run.kubectl()).or(t))
	k.want(t, args("get events.events.example.com -n", ns, "-o", "name"), "event.events.example.com/a\n")
	k.want(t, args("label events.events.example.com a x=y -n", ns), "labeled")
	k.want(t, args("apply --server-side -f", k.file(t, "b.json", newEvent("team", "b", `{"apiVersion":"events.example.com/v1","kind":"Event"}`))), "serverside-applied")
	k.want(t, args("explain events --api-version=events.example.com/v1"), "events.example.com", "regarding")

	s.extra = []string{"--group-domain", "other.example"}
	s.restart(t)
	ev = s.get(t, in("/apis/events.other.example/v1", ns, "a")).expect(http.StatusOK).object()
	if ev.text("apiVersion") != "events.other.example/v1" || ev.text("metadata.managedFields.0.apiVersion") != "events.other.example/v1" {
		t.Errorf("event %v", ev)
	}
	s.get(t, in(here, ns, "a")).expect(http.StatusNotFound)
}

// protobufOf writes, reads, watches and deletes in protobuf.
func protobufOf(t *testing.T, s *server, path, apiVersion string) {
	binary := func(method, path string, body []byte) *answer {
		return s.do(t, call{method: method, path: path, accept: typeProtobuf, contentType: typeProtobuf, body: string(body)})
	}
	var list eventsv1.EventList
	decodeProto(t, binary("GET", path, nil).expect(http.StatusOK).body, apiVersion, "EventList", &list)
	ev := list.Items[0]
	ev.ObjectMeta = metav1.ObjectMeta{Name: "binary"}
	var made eventsv1.Event
	decodeProto(t, binary("POST", path, encodeProto(t, apiVersion, "Event", &ev)).expect(http.StatusCreated).body, apiVersion, "Event", &made)
	if made.Name != "binary" || made.Note != ev.Note || made.UID == "" {
		t.Errorf("made %v", &made)
	}
	w := s.do(t, call{method: "GET", path: path + "?watch=true&timeoutSeconds=5&fieldSelector=metadata.name%3Dbinary", accept: typeProtobuf}).expect(http.StatusOK)
	var frame metav1.WatchEvent
	if err := frame.Unmarshal(w.body[4:]); err != nil {
		t.Fatal(err)
	}
	var seen eventsv1.Event
	decodeProto(t, frame.Object.Raw, apiVersion, "Event", &seen)
	if seen.UID != made.UID {
		t.Errorf("seen %v", &seen)
	}
	var st metav1.Status
	decodeProto(t, binary("DELETE", path+"/binary", encodeProto(t, apiVersion, "DeleteOptions", &metav1.DeleteOptions{})).expect(http.StatusOK).body, "v1", "Status", &st)
	if st.Status != metav1.StatusSuccess {
		t.Errorf("status %v", st)
	}
}

// TestDeclaredNamespaces asks for declared namespaces, as the original does (13).
func TestDeclaredNamespaces(t *testing.T) {
	t.Parallel()
	s := start(t, "--namespaces", "team")
	checkRefusals(t, s, []refusal{
		{name: "create", call: call{method: "POST", path: in(eventsV1, "nope"), body: newEvent("nope", "a")}, code: 404, reason: metav1.StatusReasonNotFound,
			message: `namespaces "nope" not found`, details: `{"name":"nope","kind":"namespaces"}`},
		{name: "before validation", call: call{method: "POST", path: in(eventsV1, "nope"), body: newEvent("nope", "a", `{"type":"odd"}`)}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "bad name", call: call{method: "POST", path: in(eventsV1, "Bad_NS"), body: newEvent("Bad_NS", "a")}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "put that creates", call: call{method: "PUT", path: in(eventsV1, "nope", "a"), body: newEvent("nope", "a")}, code: 404, reason: metav1.StatusReasonNotFound, message: `namespaces "nope" not found`},
		{name: "patch", call: call{method: "PATCH", path: in(eventsV1, "nope", "a"), contentType: typeMerge, body: `{}`}, code: 404, reason: metav1.StatusReasonNotFound, message: `events.events.k8s.io "a" not found`},
	})
	for _, ns := range []string{"team", "default", "kube-system"} {
		s.create(t, ns, "a")
	}
	if list := s.get(t, in(eventsV1, "nope")).expect(http.StatusOK).object(); len(list.names()) != 0 {
		t.Errorf("list %v", list)
	}
}

// TestNamespaces is about the namespaces that nobody declares (13).
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := start(t)
	path := coreV1 + "/namespaces"
	list := s.get(t, path).expect(http.StatusOK).object()
	if got := strings.Join(list.names(), " "); got != "default kube-node-lease kube-public kube-system" || list.text("kind") != "NamespaceList" {
		t.Errorf("got %s", got)
	}
	w := s.watch(t, path+"?watch=true&resourceVersion="+list.text("metadata.resourceVersion"))
	s.create(t, "team", "a")
	w.want(t, "ADDED team")
	one := s.get(t, path+"/team").expect(http.StatusOK).object()
	if one.text("status.phase") != "Active" || marshal(t, one.at("spec.finalizers")) != `["kubernetes"]` || marshal(t, one.at("metadata.labels")) != `{"kubernetes.io/metadata.name":"team"}` {
		t.Errorf("namespace %v", one)
	}
	s.delete(t, in(eventsV1, "team"), "").expect(http.StatusOK)
	w.want(t, "DELETED team")
	table := s.do(t, call{method: "GET", path: path, accept: typeJSON + asTable}).expect(http.StatusOK).object()
	for i, name := range []string{"Name", "Status", "Age"} {
		if columns := table["columnDefinitions"].([]any); len(columns) != 3 || object(columns[i].(map[string]any)).text("name") != name {
			t.Errorf("columns %v", columns)
		}
	}
	if a := s.do(t, call{method: "GET", path: path, accept: typeProtobuf}).expect(http.StatusOK); !strings.HasPrefix(string(a.body), "k8s\x00") {
		t.Errorf("protobuf %q", a.body)
	}
	t.Run("names", func(t *testing.T) {
		for name, code := range map[string]int{"1": 201, strings.Repeat("a", 63): 201, strings.Repeat("a", 64): 422, "a.b": 422, "A": 422, "-a": 422} {
			s.post(t, in(eventsV1, name), newEvent(name, "a")).expect(code)
			s.post(t, in(coreV1, name), oldEvent(name, "b")).expect(code)
		}
	})
	checkRefusals(t, s, []refusal{
		{name: "missing", call: call{method: "GET", path: path + "/nope"}, code: 404, reason: metav1.StatusReasonNotFound, message: `namespaces "nope" not found`},
		{name: "create", call: call{method: "POST", path: path, body: `{"metadata":{"name":"x"}}`}, code: 405, reason: metav1.StatusReasonMethodNotAllowed},
		{name: "delete", call: call{method: "DELETE", path: path + "/team"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed},
	})
}

// TestProtocols: the tests use the protocol versions that they claim to use.
func TestProtocols(t *testing.T) {
	t.Parallel()
	s := start(t)
	for config, want := range map[*rest.Config]string{s.config(): "HTTP/2.0", s.plainConfig(): "HTTP/1.1"} {
		client := must(rest.HTTPClientFor(config)).or(t)
		req := must(http.NewRequestWithContext(t.Context(), "GET", config.Host+"/version", nil)).or(t)
		res := must(client.Do(req)).or(t)
		res.Body.Close()
		if res.Proto != want {
			t.Errorf("%s: %s, want %s", config.Host, res.Proto, want)
		}
	}
}
