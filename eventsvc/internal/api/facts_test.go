package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
)

// TestWatchParameters: any value but false and 0 is true, the first of several
// counts, and what only lists know is ignored.
func TestWatchParameters(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	w.Create("b")
	srv := w.Serve()
	for _, query := range []string{"watch=foo", "watch", "watch=1&watch=0", "watch=true&limit=1&continue=x", "watch=true&unknown=1", "watch=true&timeout=x"} {
		s := w.Watch(srv, apitest.EventsPath+"?resourceVersion="+rv+"&"+query)
		apitest.Equal(t, s.Take(1), []apitest.Change{{"ADDED", "b", "hello"}})
	}
}

// TestNamedGetIsNoWatch: watch=true on one event is ignored.
func TestNamedGetIsNoWatch(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	apitest.Equal(t, w.Do("GET", apitest.EventsPath+"/a?watch=true&timeoutSeconds=1", "").Must(200).At("kind"), any("Event"))
}

// TestHTTP2: the same over TLS and HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	srv := httptest.NewUnstartedServer(w.Server)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	rv := w.Create("a")
	s := w.Watch(&apitest.Running{URL: srv.URL, Client: srv.Client()}, apitest.EventsPath+"?watch=1&resourceVersion="+rv)
	apitest.Equal(t, s.Resp.ProtoMajor, 2)
	w.Create("b")
	apitest.Equal(t, s.Take(1), []apitest.Change{{"ADDED", "b", "hello"}})
	w.Server.Drain(t.Context())
	s.Ended()
}

// TestFactsOfWrites: what was seen on the wire.
func TestFactsOfWrites(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")

	st := w.Do("POST", "/apis/events.k8s.io/v1/namespaces/Bad_NS/events", apitest.NewEvent("x")).Must(422).Status()
	var paths []string
	for _, cause := range st.Details.Causes {
		paths = append(paths, cause.Field)
	}
	apitest.Equal(t, paths, []string{"namespace", "metadata.namespace"})

	owner := `"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]}`
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("x", owner)).Must(422)

	apply := apitest.NewEvent("none", `"metadata":{"name":"none","uid":"u"}`, `"apiVersion":"events.k8s.io/v1","kind":"Event"`)
	conflict := w.Do("PATCH", apitest.EventsPath+"/none?fieldManager=m", apply, "Content-Type", apitest.ApplyPatch).Must(409).Status()
	apitest.Equal(t, conflict.Reason, metav1.StatusReasonConflict)

	for _, body := range []string{`{}`, `null`} {
		apitest.Equal(t, w.Do("POST", apitest.EventsPath, body).Must(422).Status().Details.Kind, "Event")
	}
	unknown := w.Do("POST", apitest.EventsPath+"?fieldValidation=Strict", apitest.NewEvent("x", `"Note":"n"`)).Must(400).Status()
	apitest.Equal(t, unknown.Message, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "Note"`)

	// The generateName of a stored event may change.
	renamed := w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a", `"metadata":{"name":"a","generateName":"g-"}`)).Must(200)
	apitest.Equal(t, renamed.At("metadata.generateName"), any("g-"))

	// Options of any group, with fields that nobody knows.
	w.Do("DELETE", apitest.EventsPath+"/a", `{"kind":"DeleteOptions","apiVersion":"other.example/v9","what":1}`).Must(200)
}

// TestRetryAfter: clients repeat any request that is answered with it.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("GET", apitest.EventsPath+"?resourceVersion=999", "").Must(http.StatusGatewayTimeout)
	apitest.Equal(t, a.Header.Get("Retry-After"), "")
	apitest.Equal(t, a.Status().Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}})
}
