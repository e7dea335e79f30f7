package ctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
)

// creating is a server that creates events by the rules of both views, and keeps them by name.
type creating struct {
	sync.Mutex
	events map[string]*eventsv1.Event
}

func (c *creating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	view := event.EventsV1
	if strings.HasPrefix(r.URL.Path, "/api/v1/") {
		view = event.CoreV1
	}
	obj := event.NewObject(view)
	if err == nil {
		var unknown []error
		unknown, err = event.Decode(body, obj, true)
		err = errors.Join(append(unknown, err)...)
	}
	if group := obj.GetObjectKind().GroupVersionKind(); err == nil && (group.Kind != "Event" || !strings.Contains(r.URL.Path, group.GroupVersion().String()+"/")) {
		err = fmt.Errorf("%s at %s", group, r.URL.Path)
	}
	ev := event.Hub(obj)
	if err == nil {
		err = event.ValidateCreate(view, ev).ToAggregate()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	c.Lock()
	defer c.Unlock()
	c.events[ev.Name] = ev
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

// recordLines records a file on a server, and returns the error and what was printed to standard error.
func recordLines(t *testing.T, handler http.Handler, r record, lines string) (said string, err error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	r.File, r.Server, r.GroupDomain, r.Type = filepath.Join(dir, "lines"), server.URL, "k8s.io", "Normal"
	r.Parallel, r.Timeout, r.Output, r.ReportingController, r.ReportingInstance = 4, time.Minute, "table", "tidings.example/record", "here"
	if err := os.WriteFile(r.File, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	err = r.Run(t.Context(), IO{Out: &bytes.Buffer{}, Err: stderr})
	text, readErr := os.ReadFile(stderr.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(text), err
}

// TestRecordOfDumps: a file in another form than one event a line is refused as a whole, and the error says what reads
// it.
func TestRecordOfDumps(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{
		"{\n  \"kind\": \"List\"\n}\n", "[\n{}\n]\n", `[{"kind":"Event"}]`, "apiVersion: v1\n", "---\nkind: Event\n", "\x1f\x8b\x08\n",
		`{"kind":"EventList","items":[]}`, `{"type":"ADDED","object":{}}`,
	} {
		refuse := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%q: something is sent", lines) })
		if said, err := recordLines(t, refuse, record{}, lines); err == nil || !strings.Contains(err.Error(), "eventsvc import reads it") || said != "" {
			t.Errorf("%q: %v, %s", lines, err, said)
		}
	}
}

// TestRecordRefuses: a line with a field or a kind that would be lost is refused with its number, and the others are
// recorded.
func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	const good = `{"metadata":{"name":"%s"},"eventTime":"2026-01-05T12:00:00Z","reason":"R","regarding":{"kind":"Pod","name":"web"}}`
	var lines, want []string
	for line, problem := range map[string]string{
		`{"reason":"R","message":"m"}`:                                                `unknown field "message"; correct it or leave it out, and if the event is one of core/v1, write "apiVersion":"v1"`,
		`{"kind":"Event","reason":"R","involvedObject":{"kind":"Pod"}}`:               `unknown field "involvedObject"; correct`,
		`{"apiVersion":"events.k8s.io/v1","kind":"Event","reason":"R","message":"m"}`: `unknown field "message": correct it or leave it out`,
		`{"apiVersion":"v1","kind":"Event","reason":"R","note":"n"}`:                  `unknown field "note": correct it or leave it out`,
		`{"apiVersion":"v1","reason":"R","regarding":{}}`:                             `unknown field "regarding": correct`,
		`{"reason":"R","regarding":{"kind":"Pod","nam":"web"}}`:                       `unknown field "regarding.nam"`,
		`{"reason":"R","metadata":{"label":{}}}`:                                      `unknown field "metadata.label"`,
		`{"reason":"R","series":{"count":2,"last":""}}`:                               `unknown field "series.last"`,
		`{"Reason":"R"}`:              `unknown field "Reason"`,
		`{"reason":"R","reason":"S"}`: `duplicate field "reason"`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}}`: `it is a "Pod" of "v1": write an Event of events.k8s.io/v1 or v1`,
		`{"apiVersion":"v1","kind":"List","items":[]}`:                       `it is a "List" of "v1": write an Event of events.k8s.io/v1 or v1, and the items of a list one a line`,
		`{"apiVersion":"events.k8s.io/v1","kind":"EventList","items":[]}`:    `it is a "EventList" of "events.k8s.io/v1"`,
		`{"apiVersion":"events.k8s.io/v1beta1","kind":"Event","reason":"R"}`: `it is a "Event" of "events.k8s.io/v1beta1"`,
		`{"kind":"Alert","reason":"R"}`:                                      `it is a "Alert" of "no apiVersion"`,
		`{"type":"ADDED","object":{"kind":"Event"}}`:                         `unknown field "object"`,
		`{"apiVersion":"v1","reason":"R","count":5000000000}`:                "no event in JSON: json: cannot unmarshal number 5000000000",
		`{"reason":5}`:     "no event in JSON: json: cannot unmarshal number",
		`{"reason":"R"} x`: "no event in JSON: ",
		`{"reason":`:       "no event in JSON: ",
		`null`:             "no event in JSON: a line is one object",
		`["reason"]`:       "no event in JSON: a line is one object",
		`reason=R`:         "no event in JSON: a line is one object",
	} {
		lines = append(lines, fmt.Sprintf(good, fmt.Sprint("e", len(lines))), line, "")
		want = append(want, fmt.Sprintf("eventsvc: line %d: %s", len(lines)-1, problem))
	}
	stored := &creating{events: map[string]*eventsv1.Event{}}
	said, err := recordLines(t, stored, record{}, strings.Join(lines, "\n"))
	for _, text := range want {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in\n%s", text, said)
		}
	}
	if want := fmt.Sprintf("%d of %d events are not recorded", len(want), 2*len(want)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if len(stored.events) != len(want) {
		t.Errorf("%d events are stored, want %d", len(stored.events), len(want))
	}
}

// TestRecordCore: an event of core/v1 is stored as it is, whichever view has printed it.
func TestRecordCore(t *testing.T) {
	t.Parallel()
	first, last := metav1.NewTime(time.Unix(1767614400, 0)), metav1.NewTime(time.Unix(1767618000, 0))
	at := metav1.NewMicroTime(time.Unix(1767614400, 123456000))
	old := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "old", Namespace: "shop", Labels: map[string]string{"a": "b"}},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web", Namespace: "shop", APIVersion: "v1", FieldPath: "spec"},
		Reason:         "BackOff", Message: strings.Repeat("m", 2000), Type: "Warning", Count: 7, FirstTimestamp: first, LastTimestamp: last,
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"},
	}
	node := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "node", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		Reason:         "NodeNotReady", Message: "m", Type: "Normal", Count: 1, FirstTimestamp: first, LastTimestamp: first,
		Source: corev1.EventSource{Component: "node-controller"},
	}
	series := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "series", Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web", Namespace: "shop"},
		Related:        &corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		Reason:         "Killing", Message: "m", Type: "Normal", EventTime: at, Series: &corev1.EventSeries{Count: 3, LastObservedTime: at},
		Action: "Kill", ReportingController: "kubelet", ReportingInstance: "node-1",
	}
	for _, sent := range []corev1.Event{old, node, series} {
		for _, view := range []event.View{event.CoreV1, event.EventsV1} {
			read := sent
			read.UID, read.ResourceVersion, read.CreationTimestamp = "u", "5", last // as a server shows it
			group, err := event.NewGroup("k8s.io")
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(group.Show(view, event.FromCore(&read)))
			if err != nil {
				t.Fatal(err)
			}
			stored := &creating{events: map[string]*eventsv1.Event{}}
			if said, err := recordLines(t, stored, record{}, string(line)); err != nil {
				t.Fatalf("%s: %v %s", line, err, said)
			}
			if diff := cmp.Diff(event.FromCore(&sent), stored.events[sent.Name]); diff != "" {
				t.Errorf("%s (-sent +stored):\n%s", line, diff)
			}
		}
	}
}

// TestRecordCoreCompletes: the settings fill in what a line of core/v1 leaves out.
func TestRecordCoreCompletes(t *testing.T) {
	t.Parallel()
	stored := &creating{events: map[string]*eventsv1.Event{}}
	said, err := recordLines(t, stored, record{Namespace: "shop", Regarding: "Job/nightly", Note: "n"}, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"bare"},"reason":"R"}
{"apiVersion":"v1","metadata":{"name":"source"},"reason":"R","eventTime":"2026-01-05T12:00:00Z","source":{"component":"kubelet","host":"node-1"}}
`)
	if err != nil {
		t.Fatal(err, said)
	}
	job := corev1.ObjectReference{Kind: "Job", Name: "nightly", Namespace: "shop"}
	bare := stored.events["bare"]
	if bare.EventTime.IsZero() || bare.Regarding != job || bare.Note != "n" || bare.Type != "Normal" || bare.Action != "R" || bare.ReportingController != "tidings.example/record" {
		t.Errorf("%+v", bare)
	}
	if ev := stored.events["source"]; ev.ReportingController != "kubelet" || ev.ReportingInstance != "node-1" || ev.DeprecatedSource.Component != "kubelet" || ev.Regarding != job {
		t.Errorf("%+v", ev)
	}
}

// TestRecordWaitsForToken: while the token service is away or busy, lines are sent again, and standard error says so
// once. A client that it refuses is told at once.
func TestRecordWaitsForToken(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case r.FormValue("client_id") == "wrong":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"invalid_client"}`)
		case n == 1:
			panic(http.ErrAbortHandler) // no answer
		case n == 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"error":"temporarily_unavailable"}`)
		default:
			_, _ = fmt.Fprint(w, `{"access_token":"t","token_type":"Bearer","expires_in":300}`)
		}
	}))
	t.Cleanup(endpoint.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Repeat(`{"reason":"R","regarding":{"kind":"Pod","name":"web"}}`+"\n", 8)
	stored := &creating{events: map[string]*eventsv1.Event{}}
	r := record{access: access{Connection: Connection{TokenURL: endpoint.URL, ClientID: "demo", ClientSecretFile: secret}}}
	said, err := recordLines(t, stored, r, lines)
	if err != nil || len(stored.events) != 8 || strings.Count(said, "eventsvc: trying again for 1m0s: no token: ") != 1 {
		t.Errorf("%d stored, %v: %s", len(stored.events), err, said)
	}
	r.ClientID = "wrong"
	if said, err := recordLines(t, stored, r, lines); err == nil || strings.Contains(said, "trying again") || strings.Count(said, "(invalid_client)") != 8 {
		t.Errorf("a client that is refused: %v: %s", err, said)
	}
}
