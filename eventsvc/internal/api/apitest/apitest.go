// Package apitest has what the tests of package api and of the packages below it share: a server over a real store, and
// requests and answers as these tests write and compare them.
package apitest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"log/slog"
	"math/rand/v2"
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

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/basic"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
)

// Update has golden files written again.
var Update = flag.Bool("update", false, "write the golden files again")

// The paths of the events of one namespace, in both forms.
const (
	EventsPath = "/apis/events.k8s.io/v1/namespaces/default/events"
	CorePath   = "/api/v1/namespaces/default/events"
)

// GoodClient is the client whose token is "good".
const GoodClient = "https://issuer.example\x00good"

// World is a server over a real store in a directory that survives restarts.
type World struct {
	T      testing.TB
	Config api.Config
	Store  bolt.Options
	DB     *bolt.DB
	Server *api.Server

	Compared map[string]int // lines, by the tool that showed them
}

// New opens a server over an empty store.
func New(t *testing.T, changes ...func(*api.Config)) *World {
	t.Helper()
	return Open(t, bolt.Options{}, changes...)
}

// FuzzWorld is shared by all inputs of a fuzz target.
func FuzzWorld(f *testing.F) *World {
	f.Helper()
	w := Open(f, bolt.Options{})
	for _, name := range []string{"a", "b"} {
		w.Do("POST", EventsPath, NewEvent(name)).Must(201)
	}
	return w
}

// Open opens a server over an empty store that has options of its own.
func Open(t testing.TB, o bolt.Options, changes ...func(*api.Config)) *World {
	t.Helper()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	w := &World{T: t, Store: o, Config: api.Config{
		Codec: c, Verify: Verify,
		Policy: OpenPolicy, Withdrawn: NotWithdrawn, Limits: UsualLimits, Probe: (&service.Health{}).Handler, Log: slog.New(slog.DiscardHandler),
	}}
	for _, change := range changes {
		change(&w.Config)
	}
	w.Start()
	t.Cleanup(w.Stop)
	return w
}

// UsualLimits are those of the program unless it is told others.
var UsualLimits = api.LimitsOf(20000, 1024)

// OpenPolicy lets every caller do everything.
var OpenPolicy = sync.OnceValue(policy.AllowAll)

// NotWithdrawn says that no key is gone.
func NotWithdrawn(context.Context, *bearer.Caller) bool { return false }

// Verify knows the tokens "good" and "other".
func Verify(_ context.Context, token string) (*bearer.Caller, error) {
	switch token {
	case "good", "other":
		return &bearer.Caller{Issuer: "https://issuer.example", Subject: token, ClientID: token, Scopes: []string{"events"}}, nil
	}
	return nil, &bearer.Error{Reason: "unknown token", Status: http.StatusUnauthorized}
}

// Start opens the store again, and a server over it.
func (w *World) Start() {
	w.T.Helper()
	var err error
	if w.DB, err = bolt.Open(w.Store); err != nil {
		w.T.Fatal(err)
	}
	w.Config.Store, w.Config.Timeline, w.Config.Fresh = w.DB, w.DB.Timeline(), w.DB.Fresh
	if w.Server, err = api.New(w.Config); err != nil {
		w.T.Fatal(err)
	}
}

// Stop closes the store.
func (w *World) Stop() {
	if err := w.DB.Close(); err != nil {
		w.T.Error(err)
	}
}

// Handler is the server with what the program puts around it.
func (w *World) Handler() http.Handler {
	return httpserver.Access(w.Config.Log, prometheus.NewRegistry(), audit.Handler(w.Config.Audit, w.Server))
}

// Answer is what a request got.
type Answer struct {
	T      testing.TB
	Code   int
	Header http.Header
	Body   []byte
}

// Do sends a request with a good token. Headers are pairs of name and value.
func (w *World) Do(method, path, body string, headers ...string) *Answer {
	w.T.Helper()
	req := httptest.NewRequestWithContext(w.T.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, req)
	return &Answer{w.T, rec.Code, rec.Header(), rec.Body.Bytes()}
}

// Must fails the test unless the answer has the code.
func (a *Answer) Must(code int) *Answer {
	a.T.Helper()
	if a.Code != code {
		a.T.Fatalf("got %d, want %d: %s", a.Code, code, a.Body)
	}
	return a
}

// Object decodes a JSON body.
func (a *Answer) Object() map[string]any {
	a.T.Helper()
	var out map[string]any
	if err := json.Unmarshal(a.Body, &out); err != nil {
		a.T.Fatalf("%v: %s", err, a.Body)
	}
	return out
}

// At reads a field of a JSON body by its path, nil if it is not there.
func (a *Answer) At(path string) any {
	a.T.Helper()
	return Field(a.Object(), path)
}

// Field reads a field of decoded JSON by its path, nil if it is not there.
func Field(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// Status decodes a Status.
func (a *Answer) Status() metav1.Status {
	a.T.Helper()
	var st metav1.Status
	if err := json.Unmarshal(a.Body, &st); err != nil {
		a.T.Fatalf("%v: %s", err, a.Body)
	}
	return st
}

// Names are those of the items of a list.
func (a *Answer) Names() []string {
	a.T.Helper()
	names := []string{}
	items, ok := a.At("items").([]any)
	if !ok {
		a.T.Fatalf("no list: %s", a.Body)
	}
	for _, item := range items {
		names = append(names, Field(item, "metadata.name").(string))
	}
	return names
}

// Equal fails the test with a difference.
func Equal(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// NewEvent is a good event of events/v1 as JSON, with more members behind the
// usual ones. Metadata among them stands instead of the usual.
func NewEvent(name string, more ...string) string {
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

// Create stores good events under names and returns the last one's resourceVersion.
func (w *World) Create(names ...string) string {
	w.T.Helper()
	var rv string
	for _, name := range names {
		rv = w.Do("POST", EventsPath, NewEvent(name)).Must(201).At("metadata.resourceVersion").(string)
	}
	return rv
}

// Golden compares with a file of testdata. Binary ones are kept as a hex dump.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if strings.Contains(name, "protobuf") {
		got = []byte(hex.Dump(got))
	}
	file := filepath.Join("testdata", name)
	if *Update {
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

// AuditLog is the audit log of a test.
type AuditLog struct {
	*audit.Log
	t    *testing.T
	path string
}

// OpenAudit opens an audit log in a new directory.
func OpenAudit(t *testing.T) *AuditLog {
	t.Helper()
	l := &AuditLog{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	var err error
	if l.Log, err = audit.Open(audit.Config{Path: l.path, MaxBytes: 4 << 20, Files: 1, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return l
}

// Entries ends the log, and returns it as it is written, and parsed.
func (l *AuditLog) Entries() (text string, entries []audit.Entry) {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		l.t.Fatal(err)
	}
	data, err := os.ReadFile(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			l.t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return string(data), entries
}

// Sum is what the series of a metric come to: all of them, or those with this value of their first label.
func Sum(t testing.TB, reg *prometheus.Registry, name string, value ...string) (total float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(value) == 0 || m.GetLabel()[0].GetValue() == value[0]) {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return total
}

// WithPasswords lets in the user grafana with the password s3cret, and says how often it was asked.
func WithPasswords(asked *[]string) func(*api.Config) {
	return func(c *api.Config) {
		c.Resource = resource.Config{PublicURL: "https://events.example", Issuers: func() []string { return []string{"https://tokens.example"} }}
		c.Basic = func(ctx context.Context, user, password, source string) (*bearer.Caller, error) {
			if asked != nil {
				*asked = append(*asked, user+":"+password+"@"+source)
			}
			switch password {
			case "s3cret":
				return Verify(ctx, "good")
			case "busy":
				return nil, &basic.BusyError{Reason: "the endpoint is busy", Status: 429, RetryAfter: 7 * time.Second}
			case "down":
				return nil, &basic.BusyError{Reason: "the endpoint is down", Status: 503, RetryAfter: 5 * time.Second}
			}
			return nil, &bearer.Error{Reason: "refused", Status: http.StatusUnauthorized}
		}
	}
}

// BasicHeader is the header of a user and a password.
func BasicHeader(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// ImportLines imports the lines of an export, with what was deleted.
func ImportLines(t testing.TB, to admin.Local, lines string) admin.Imported {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var sum admin.Imported
	report, err := dump.Read(t.Context(), []string{file}, dump.Options{}, func(items []dump.Item) error {
		more, err := to.Import(t.Context(), admin.Arrivals(items, true, false))
		sum.Add(more)
		sum.Problems = append(sum.Problems, more.Problems...)
		return err
	})
	if err != nil || report.Failed > 0 || len(sum.Problems) > 0 {
		t.Fatalf("%+v: %v: %q", sum, err, report.Lines())
	}
	return sum
}

// EveryReference finds references that lead nowhere.
func EveryReference(t *testing.T, v any, prefix string, schemas map[string]any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name, ok := strings.CutPrefix(ref, prefix)
			if !ok || schemas[name] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, value := range v {
			EveryReference(t, value, prefix, schemas)
		}
	case []any:
		for _, value := range v {
			EveryReference(t, value, prefix, schemas)
		}
	}
}

// Clock is a clock that tests turn.
type Clock struct {
	mu  sync.Mutex
	Now time.Time
}

// Read returns the time that it shows.
func (c *Clock) Read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Now
}

// Add turns it.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Now = c.Now.Add(d)
}

// NamespacesPath is where namespaces are listed.
const NamespacesPath = "/api/v1/namespaces"

// Pick picks one of several values.
func Pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// Seats is the sum of a gauge over all classes.
func (w *World) Seats(name string) (n float64) {
	for _, class := range []string{"read", "write", "watch", "refusal"} {
		n += w.Metric(name, class)
	}
	return n
}

// Metric is the sum of a metric of the server, or of its series with a class.
func (w *World) Metric(name string, class ...string) float64 {
	w.T.Helper()
	return Sum(w.T, w.Config.Registry.(*prometheus.Registry), name, class...)
}

// The forms of a patch.
const (
	JSONPatch      = "application/json-patch+json"
	MergePatch     = "application/merge-patch+json"
	StrategicPatch = "application/strategic-merge-patch+json"
	ApplyPatch     = "application/apply-patch+yaml"
)
