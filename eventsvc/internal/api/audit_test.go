package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// auditLog is the audit log of a test.
type auditLog struct {
	*audit.Log
	t    *testing.T
	path string
}

func openAudit(t *testing.T) *auditLog {
	t.Helper()
	l := &auditLog{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	var err error
	if l.Log, err = audit.Open(audit.Config{Path: l.path, MaxBytes: 1 << 20, Files: 1, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return l
}

// entries ends the log, and returns it as it is written, and parsed.
func (l *auditLog) entries() (text string, entries []audit.Entry) {
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

// TestAudit: one line per request with caller, verb, object, code and rule, and
// nothing of tokens, queries or contents.
func TestAudit(t *testing.T) {
	t.Parallel()
	log := openAudit(t)
	w, _ := newPolicyWorld(t, fullMatrixPolicy(), func(c *api.Config) { c.Audit = log.Log })
	w.config.Verify = func(ctx context.Context, token string) (*bearer.Caller, error) {
		if token == "hidden-token" {
			return nil, &bearer.Error{Reason: "bad", Status: http.StatusUnauthorized}
		}
		return byName(ctx, token)
	}
	var err error
	if w.server, err = api.New(w.config); err != nil {
		t.Fatal(err)
	}
	made := w.as("root", "POST", eventsPath, newEvent("a")).must(201)
	w.as("team", "GET", eventsPath+"/a?secret=1", "").must(403)
	w.as("x+events:read", "GET", "/api/v1/events", "").must(200)
	w.as("only-update", "PUT", eventsPath+"/none", newEvent("none")).must(403)
	w.as("hidden-token", "GET", eventsPath, "").must(401)
	w.as("root", "GET", "/apis", "").must(200)
	srv := w.serve()
	// A watch is told of when it ends.
	watched := w.watch(srv, eventsPath+"?watch=1&resourceVersion="+made.at("metadata.resourceVersion").(string), "Authorization", "Bearer root")
	w.as("root", "GET", eventsPath+"/a", "").must(200)
	srv.stop()
	watched.ended()
	data, entries := log.entries()
	for _, secret := range []string{"hidden-token", "secret", "hello"} {
		if strings.Contains(data, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	var got []string
	for _, e := range entries {
		rule, _, _ := strings.Cut(e.Rule, ",")
		allowed := "-"
		if e.Allowed != nil {
			allowed = map[bool]string{true: "yes", false: "no"}[*e.Allowed]
		}
		got = append(got, strings.Join([]string{e.User, e.Verb, e.Resource, e.Namespace, e.Name, http.StatusText(e.Code), allowed, rule}, "|"))
		if e.Time.IsZero() || e.Method == "" || e.Path == "" {
			t.Errorf("incomplete: %+v", e)
		}
	}
	equal(t, got, []string{
		`root|create|events|default||Created|yes|role "events:admin"`,
		`team|get|events|default|a|Forbidden|no|no rule of the policy allows this client to get in the namespace "default"`,
		`x|list|events|||OK|yes|the token's scope "events:read"`,
		`only-update|update|events|default|none|Forbidden|yes|role "only-update"`,
		`|||||Unauthorized|-|`,
		`root|||||OK|-|`,
		`root|get|events|default|a|OK|yes|role "events:admin"`,
		`root|watch|events|default||OK|yes|role "events:admin"`,
	})
}

// TestAuditID: the answer and the entry have the same id: the client's own if
// it is fit for a log. The entry also has the id of the access line.
func TestAuditID(t *testing.T) {
	t.Parallel()
	log := openAudit(t)
	w := newWorld(t, func(c *api.Config) { c.Audit = log.Log })
	type ids struct{ Audit, Request string }
	var want []ids
	for _, sent := range []string{"", "mine-1", "mine 2", "mine\"3", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		header := w.do("GET", eventsPath, "", "Audit-Id", sent).must(200).header
		got := ids{header.Get("Audit-Id"), header.Get("X-Request-Id")}
		if (got.Audit == sent) != (sent == "mine-1" || len(sent) == 64) || got.Audit == "" {
			t.Errorf("%q: the answer's id is %q", sent, got.Audit)
		}
		if got.Audit == got.Request {
			got.Request = "" // once is enough
		}
		want = append(want, got)
	}
	var got []ids
	_, entries := log.entries()
	for _, e := range entries {
		got = append(got, ids{e.ID, e.RequestID})
	}
	equal(t, got, want)
}

// TestWritesWithoutAudit: while the audit file cannot be written, writes are
// refused and counted if that is the setting, and reads are answered.
func TestWritesWithoutAudit(t *testing.T) {
	t.Parallel()
	for _, refuse := range []bool{false, true} {
		reg := prometheus.NewRegistry()
		log, err := audit.Open(audit.Config{
			Path: "/dev/full", MaxBytes: 1 << 20, Files: 1, RefuseWrites: refuse, Log: slog.New(slog.DiscardHandler), Registry: reg,
		})
		if err != nil {
			t.Skipf("%v: this system has no device that is always full", err)
		}
		w := newWorld(t, func(c *api.Config) { c.Audit, c.Registry = log, reg })
		w.create("a")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		waittest.Until(t, "the log is failing", func() bool { return log.Failing(t.Context()) != nil })
		code := map[bool]int{false: 0, true: http.StatusServiceUnavailable}[refuse]
		for _, c := range []struct {
			method, path, body, media string
			code                      int
		}{
			{"POST", eventsPath, newEvent("b"), "application/json", 201},
			{"PUT", eventsPath + "/a", newEvent("a"), "application/json", 200},
			{"PATCH", eventsPath + "/a", `{"metadata":{"labels":{"x":"y"}}}`, "application/merge-patch+json", 200},
			{"DELETE", eventsPath + "/a", "", "", 200},
			{"DELETE", eventsPath, "", "", 200},
		} {
			a := w.do(c.method, c.path, c.body, "Content-Type", c.media).must(max(c.code, code))
			if refuse && !strings.Contains(a.status().Message, "audit log") {
				t.Errorf("%s: %s", c.method, a.body)
			}
		}
		w.do("GET", eventsPath, "").must(200)
		if n, want := sum(t, reg, "eventsvc_requests_refused_total"), map[bool]float64{true: 5}[refuse]; n != want {
			t.Errorf("%v refusals are counted, want %v", n, want)
		}
		if sum(t, reg, "eventsvc_audit_failing") != 1 {
			t.Error("no metric tells that the audit log fails")
		}
		stop()
		if err := waittest.Within(t, ended); err == nil {
			t.Error("entries are lost, and nobody is told at the end")
		}
	}
}

// TestBombs: requests that would cost much are refused at little cost.
func TestBombs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const depth = 1 << 20
	deep := `{"metadata":{"name":"a"},"note":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	objects := strings.Repeat(`{"a":`, depth/4) + "1" + strings.Repeat("}", depth/4)
	operations := "[" + strings.Repeat(`{"op":"test","path":"/a","value":1},`, 10000) + `{"op":"test","path":"/a","value":1}]`
	anchors := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"
	w.create("live")
	for _, c := range []struct{ name, method, path, body, media string }{
		{"nested lists", "POST", eventsPath, deep, "application/json"},
		{"nested objects", "POST", corePath, objects, "application/json"},
		{"nested lists in YAML", "POST", eventsPath, "note: " + strings.Repeat("[", 20000), "application/yaml"},
		{"aliases in YAML", "POST", eventsPath, anchors, "application/yaml"},
		{"nested merge patch", "PATCH", eventsPath + "/live", objects, "application/merge-patch+json"},
		{"nested strategic patch", "PATCH", eventsPath + "/live", objects, "application/strategic-merge-patch+json"},
		{"nested apply", "PATCH", eventsPath + "/live?fieldManager=m", objects, "application/apply-patch+yaml"},
		{"many operations", "PATCH", eventsPath + "/live", operations, "application/json-patch+json"},
		{"nested options", "DELETE", eventsPath + "/live", objects, "application/json"},
		{"3 MiB and a byte", "POST", eventsPath, strings.Repeat("a", 3<<20+1), "application/json"},
		{"long query", "GET", eventsPath + "?labelSelector=" + strings.Repeat("a%21%3Db,", 1200), "", ""},
	} {
		a := w.do(c.method, c.path, c.body, "Content-Type", c.media)
		if a.code < 400 || a.code >= 500 {
			t.Errorf("%s: %d %.200s", c.name, a.code, a.body)
		}
		if len(a.body) > 64<<10 {
			t.Errorf("%s: the answer has %d bytes", c.name, len(a.body))
		}
	}
	w.do("GET", eventsPath+"/live", "").must(200)
	if w.do("GET", eventsPath, "").must(200).header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("browsers may guess the type of an answer")
	}
}

// sum is what the series of a metric come to.
func sum(t *testing.T, reg *prometheus.Registry, name string) (total float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return total
}
