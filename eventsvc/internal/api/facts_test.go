package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWatchParameters: any value but false and 0 is true, the first of several
// counts, and what only lists know is ignored.
func TestWatchParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	w.create("b")
	srv := w.serve()
	for _, query := range []string{"watch=foo", "watch", "watch=1&watch=0", "watch=true&limit=1&continue=x", "watch=true&unknown=1", "watch=true&timeout=x"} {
		s := w.watch(srv, eventsPath+"?resourceVersion="+rv+"&"+query)
		equal(t, s.take(1), []change{{"ADDED", "b", "hello"}})
	}
}

// TestNamedGetIsNoWatch: watch=true on one event is ignored.
func TestNamedGetIsNoWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a")
	equal(t, w.do("GET", eventsPath+"/a?watch=true&timeoutSeconds=1", "").must(200).at("kind"), any("Event"))
}

// TestHTTP2: the same over TLS and HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewUnstartedServer(w.server)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	rv := w.create("a")
	s := w.watch(&running{URL: srv.URL, client: srv.Client()}, eventsPath+"?watch=1&resourceVersion="+rv)
	equal(t, s.resp.ProtoMajor, 2)
	w.create("b")
	equal(t, s.take(1), []change{{"ADDED", "b", "hello"}})
	w.server.Drain(t.Context())
	s.ended()
}

// TestFactsOfWrites: what was seen on the wire.
func TestFactsOfWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a")

	st := w.do("POST", "/apis/events.k8s.io/v1/namespaces/Bad_NS/events", newEvent("x")).must(422).status()
	var paths []string
	for _, cause := range st.Details.Causes {
		paths = append(paths, cause.Field)
	}
	equal(t, paths, []string{"namespace", "metadata.namespace"})

	owner := `"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]}`
	w.do("POST", eventsPath, newEvent("x", owner)).must(422)

	apply := newEvent("none", `"metadata":{"name":"none","uid":"u"}`, `"apiVersion":"events.k8s.io/v1","kind":"Event"`)
	conflict := w.do("PATCH", eventsPath+"/none?fieldManager=m", apply, "Content-Type", applyPatch).must(409).status()
	equal(t, conflict.Reason, metav1.StatusReasonConflict)

	for _, body := range []string{`{}`, `null`} {
		equal(t, w.do("POST", eventsPath, body).must(422).status().Details.Kind, "Event")
	}
	unknown := w.do("POST", eventsPath+"?fieldValidation=Strict", newEvent("x", `"Note":"n"`)).must(400).status()
	equal(t, unknown.Message, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "Note"`)

	// The generateName of a stored event may change.
	renamed := w.do("PUT", eventsPath+"/a", newEvent("a", `"metadata":{"name":"a","generateName":"g-"}`)).must(200)
	equal(t, renamed.at("metadata.generateName"), any("g-"))

	// Options of any group, with fields that nobody knows.
	w.do("DELETE", eventsPath+"/a", `{"kind":"DeleteOptions","apiVersion":"other.example/v9","what":1}`).must(200)
}

// TestRetryAfter: clients repeat any request that is answered with it.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", eventsPath+"?resourceVersion=999", "").must(http.StatusGatewayTimeout)
	equal(t, a.header.Get("Retry-After"), "")
	equal(t, a.status().Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}})
}
