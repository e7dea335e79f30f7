package api_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
)

var update = flag.Bool("update", false, "write the golden files again")

// Some tests wait for seconds, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	os.Exit(m.Run())
}

const (
	eventsPath = "/apis/events.k8s.io/v1/namespaces/default/events"
	corePath   = "/api/v1/namespaces/default/events"
)

// goodClient is the client whose token is "good".
const goodClient = "https://issuer.example\x00good"

// world is a server over a real store in a directory that survives restarts.
type world struct {
	t      testing.TB
	config api.Config
	store  bolt.Options
	db     *bolt.DB
	server *api.Server

	compared map[string]int // lines, by the tool that showed them
}

func newWorld(t *testing.T, changes ...func(*api.Config)) *world {
	t.Helper()
	return openWorld(t, bolt.Options{}, changes...)
}

// newWorldAt has a clock that the test turns, keeps events for 48 hours and
// history for one.
func newWorldAt(t *testing.T, c *clock) *world {
	t.Helper()
	return openWorld(t, bolt.Options{Retention: 48 * time.Hour, History: time.Hour, Now: c.read, SegmentBytes: 1 << 10})
}

// fuzzWorld is shared by all inputs of a fuzz target.
func fuzzWorld(f *testing.F) *world {
	f.Helper()
	w := openWorld(f, bolt.Options{})
	for _, name := range []string{"a", "b"} {
		w.do("POST", eventsPath, newEvent(name)).must(201)
	}
	return w
}

func openWorld(t testing.TB, o bolt.Options, changes ...func(*api.Config)) *world {
	t.Helper()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	w := &world{t: t, store: o, config: api.Config{
		Codec: c, Verify: verify,
		Policy: openPolicy, Withdrawn: notWithdrawn, Limits: usualLimits, Probe: (&service.Health{}).Handler, Log: slog.New(slog.DiscardHandler),
	}}
	for _, change := range changes {
		change(&w.config)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// usualLimits are those of the program unless it is told others.
var usualLimits = api.Limits{
	MaxWatches: 20000, MaxClientWatches: 4096, MaxRequests: 1024, MaxClientRequests: 256,
	MaxBody: 3 << 20, MaxQuery: 8 << 10, MaxSelectorTerms: 200,
}

// openPolicy lets every caller do everything.
var openPolicy = sync.OnceValue(policy.AllowAll)

// notWithdrawn says that no key is gone.
func notWithdrawn(context.Context, *bearer.Caller) bool { return false }

// verify knows the tokens "good" and "other".
func verify(_ context.Context, token string) (*bearer.Caller, error) {
	switch token {
	case "good", "other":
		return &bearer.Caller{Issuer: "https://issuer.example", Subject: token, ClientID: token, Scopes: []string{"events"}}, nil
	}
	return nil, &bearer.Error{Reason: "unknown token", Status: http.StatusUnauthorized}
}

func (w *world) start() {
	w.t.Helper()
	var err error
	if w.db, err = bolt.Open(w.store); err != nil {
		w.t.Fatal(err)
	}
	w.config.Store, w.config.Timeline, w.config.Fresh = w.db, w.db.Timeline(), w.db.Fresh
	if w.server, err = api.New(w.config); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
}

// handler is the server with what the program puts around it.
func (w *world) handler() http.Handler {
	return httpserver.Access(w.config.Log, prometheus.NewRegistry(), audit.Handler(w.config.Audit, w.server))
}

// answer is what a request got.
type answer struct {
	t      testing.TB
	code   int
	header http.Header
	body   []byte
}

// do sends a request with a good token. Headers are pairs of name and value.
func (w *world) do(method, path, body string, headers ...string) *answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler().ServeHTTP(rec, req)
	return &answer{w.t, rec.Code, rec.Header(), rec.Body.Bytes()}
}

// must fails the test unless the answer has the code.
func (a *answer) must(code int) *answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("got %d, want %d: %s", a.code, code, a.body)
	}
	return a
}

// object decodes a JSON body.
func (a *answer) object() map[string]any {
	a.t.Helper()
	var out map[string]any
	if err := json.Unmarshal(a.body, &out); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// at reads a field of a JSON body by its path, nil if it is not there.
func (a *answer) at(path string) any {
	a.t.Helper()
	return field(a.object(), path)
}

func field(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// status decodes a Status.
func (a *answer) status() metav1.Status {
	a.t.Helper()
	var st metav1.Status
	if err := json.Unmarshal(a.body, &st); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return st
}

// names are those of the items of a list.
func (a *answer) names() []string {
	a.t.Helper()
	names := []string{}
	items, ok := a.at("items").([]any)
	if !ok {
		a.t.Fatalf("no list: %s", a.body)
	}
	for _, item := range items {
		names = append(names, field(item, "metadata.name").(string))
	}
	return names
}

// equal fails the test with a difference.
func equal(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// newEvent is a good event of events/v1 as JSON, with more members behind the
// usual ones. Metadata among them stands instead of the usual.
func newEvent(name string, more ...string) string {
	members := []string{
		`"metadata":{"name":"` + name + `","labels":{"app":"` + name + `"}}`,
		`"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"example.com/ctl","reportingInstance":"ctl-1"`,
		`"action":"Do","reason":"Because","type":"Normal","note":"hello"`,
		`"regarding":{"kind":"Pod","namespace":"default","name":"p1"}`,
	}
	if len(more) > 0 && strings.HasPrefix(more[0], `"metadata"`) {
		members = members[1:]
	}
	return "{" + strings.Join(append(members, more...), ",") + "}"
}

// create stores good events under names and returns the last one's resourceVersion.
func (w *world) create(names ...string) string {
	w.t.Helper()
	var rv string
	for _, name := range names {
		rv = w.do("POST", eventsPath, newEvent(name)).must(201).at("metadata.resourceVersion").(string)
	}
	return rv
}

// golden compares with a file of testdata. Binary ones are kept as a hex dump.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if strings.Contains(name, "protobuf") {
		got = []byte(hex.Dump(got))
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

func TestLifeOfAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do("POST", eventsPath, newEvent("e1")).must(201)
	equal(t, made.at("kind"), any("Event"))
	equal(t, made.at("apiVersion"), any("events.k8s.io/v1"))
	equal(t, made.at("metadata.namespace"), any("default"))
	rv := made.at("metadata.resourceVersion").(string)

	got := w.do("GET", eventsPath+"/e1", "").must(200)
	equal(t, got.object(), made.object())
	equal(t, w.do("GET", corePath+"/e1", "").must(200).at("message"), any("hello"))
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"e1"})
	equal(t, w.do("GET", "/apis/events.k8s.io/v1/events", "").must(200).names(), []string{"e1"})

	patched := w.do("PATCH", eventsPath+"/e1", `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`,
		"Content-Type", "application/strategic-merge-patch+json").must(200)
	equal(t, patched.at("series.count"), any(2.0))
	if patched.at("metadata.resourceVersion") == rv {
		t.Error("a patch that changes something keeps the resourceVersion")
	}

	put := w.do("PUT", eventsPath+"/e1", newEvent("e1", `"series":{"count":3,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}`)).must(200)
	equal(t, put.at("series.count"), any(3.0))

	gone := w.do("DELETE", eventsPath+"/e1", "").must(200).status()
	equal(t, gone.Details, &metav1.StatusDetails{
		Name: "e1", Group: "events.k8s.io", Kind: "events", UID: gone.Details.UID,
	})
	w.do("GET", eventsPath+"/e1", "").must(404)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{})
}

func TestEverythingSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a", "b")
	before := w.do("GET", eventsPath, "").must(200)
	w.stop()
	w.start()
	equal(t, w.do("GET", eventsPath, "").must(200).object(), before.object())
	w.create("c")
	s := w.watch(w.serve(), eventsPath+"?watch=1&resourceVersion="+rv)
	equal(t, s.take(1), []change{{"ADDED", "c", "hello"}})
}

func requireNamespaces(c *api.Config) {
	c.Namespaces = []string{"declared"}
}
