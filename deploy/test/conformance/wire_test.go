package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The two URL families of the same events.
const (
	eventsV1 = "/apis/events.k8s.io/v1"
	coreV1   = "/api/v1"
)

// Media types.
const (
	typeJSON     = "application/json"
	typeYAML     = "application/yaml"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
	typeMerge    = "application/merge-patch+json"
	typePatch    = "application/json-patch+json"
	typeStrategy = "application/strategic-merge-patch+json"
	typeApply    = "application/apply-patch+yaml"
)

// call is one HTTP request. Empty fields are what a careless client sends.
type call struct {
	method, path string
	contentType  string
	accept       string
	body         string
	header       map[string]string
	anonymous    bool // sends no token
}

// answer is what came back.
type answer struct {
	t      *testing.T
	call   call
	code   int
	header http.Header
	body   []byte
}

func (s *server) request(t *testing.T, c call) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.httpAddr+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if !c.anonymous {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	req.Header.Set("User-Agent", "wire/1.0")
	for name, value := range map[string]string{"Content-Type": c.contentType, "Accept": c.accept} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	return req
}

func (s *server) do(t *testing.T, c call) *answer {
	t.Helper()
	res, err := s.plain.Do(s.request(t, c))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return &answer{t: t, call: c, code: res.StatusCode, header: res.Header, body: body}
}

func (s *server) get(t *testing.T, path string) *answer {
	t.Helper()
	return s.do(t, call{method: "GET", path: path})
}

func (s *server) post(t *testing.T, path, body string) *answer {
	t.Helper()
	return s.do(t, call{method: "POST", path: path, body: body, contentType: typeJSON})
}

func (s *server) put(t *testing.T, path, body string) *answer {
	t.Helper()
	return s.do(t, call{method: "PUT", path: path, body: body, contentType: typeJSON})
}

func (s *server) patch(t *testing.T, path, contentType, body string) *answer {
	t.Helper()
	return s.do(t, call{method: "PATCH", path: path, body: body, contentType: contentType})
}

func (s *server) delete(t *testing.T, path, body string) *answer {
	t.Helper()
	return s.do(t, call{method: "DELETE", path: path, body: body})
}

// expect fails the test unless the answer has the code.
func (a *answer) expect(code int) *answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("%s %s: got %d, want %d: %s", a.call.method, a.call.path, a.code, code, a.body)
	}
	return a
}

// object is the body as JSON.
func (a *answer) object() object {
	a.t.Helper()
	return parse(a.t, a.body)
}

// status is the body as a Status.
func (a *answer) status() metav1.Status {
	a.t.Helper()
	var st metav1.Status
	if err := json.Unmarshal(a.body, &st); err != nil || st.Kind != "Status" || st.APIVersion != "v1" {
		a.t.Fatalf("%s %s: %d: no Status: %s", a.call.method, a.call.path, a.code, a.body)
	}
	return st
}

// newEvent is a complete event for the events group; the patches change it.
func newEvent(ns, name string, patches ...string) string {
	ev := fmt.Sprintf(`{"metadata":{"name":%q},"eventTime":"2026-01-02T03:04:05.000006Z",
		"reportingController":"example.com/ctl","reportingInstance":"ctl-1","action":"Act","reason":"Because",
		"type":"Normal","note":"hello","regarding":{"kind":"Pod","apiVersion":"v1","name":"p1","namespace":%q}}`, name, ns)
	for _, p := range patches {
		ev = merge(ev, p)
	}
	return ev
}

// oldEvent is an event as the legacy recorder writes it through core/v1.
func oldEvent(ns, name string, patches ...string) string {
	ev := fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"kind":"Pod","apiVersion":"v1","name":"p1","namespace":%q},
		"reason":"Because","message":"hello","source":{"component":"kubelet","host":"h1"},"type":"Normal","count":1,
		"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:06Z"}`, name, ns)
	for _, p := range patches {
		ev = merge(ev, p)
	}
	return ev
}

// in is the path of a namespace's events, or of one of them.
func in(group, ns string, name ...string) string {
	return strings.Join(append([]string{group, "namespaces", ns, "events"}, name...), "/")
}

// create stores an event and returns it.
func (s *server) create(t *testing.T, ns, name string, patches ...string) object {
	t.Helper()
	return s.post(t, in(eventsV1, ns), newEvent(ns, name, patches...)).expect(http.StatusCreated).object()
}

// refusal is a request that must be refused, and how.
type refusal struct {
	name string
	call
	code     int
	reason   metav1.StatusReason
	message  string // the whole of it
	contains string // a part of it
	details  string // the whole of it, as JSON
	causes   string // fields of the causes, in order, joined by spaces
}

// check sends the request and compares the Status.
func (r refusal) check(t *testing.T, s *server) {
	t.Helper()
	a := s.do(t, r.call)
	if a.code != r.code {
		t.Fatalf("%s %s: got %d, want %d: %s", r.method, r.path, a.code, r.code, a.body)
	}
	st := a.status()
	if st.Status != metav1.StatusFailure || int(st.Code) != r.code || st.Reason != r.reason {
		t.Errorf("got status %q, code %d, reason %q; want Failure, %d, %q", st.Status, st.Code, st.Reason, r.code, r.reason)
	}
	if r.message != "" && st.Message != r.message {
		t.Errorf("message:\n got %q\nwant %q", st.Message, r.message)
	}
	if !strings.Contains(st.Message, r.contains) {
		t.Errorf("message:\n got %q\nwant one with %q", st.Message, r.contains)
	}
	if r.details != "" {
		equalJSON(t, "details", a.object()["details"], r.details)
	}
	if r.causes != "" {
		var fields []string
		if st.Details != nil {
			for _, c := range st.Details.Causes {
				fields = append(fields, c.Field)
			}
		}
		if got := strings.Join(fields, " "); got != r.causes {
			t.Errorf("causes:\n got %s\nwant %s\nmessage %s", got, r.causes, st.Message)
		}
	}
}

// checkRefusals runs a table against a server.
func checkRefusals(t *testing.T, s *server, table []refusal) {
	t.Helper()
	for _, r := range table {
		t.Run(r.name, func(t *testing.T) { r.check(t, s) })
	}
}
