package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// TestAudit: one line per request with caller, verb, object, code and rule, and
// nothing of tokens, queries or contents.
func TestAudit(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Audit = log.Log })
	w.Config.Verify = func(ctx context.Context, token string) (*bearer.Caller, error) {
		if token == "hidden-token" {
			return nil, &bearer.Error{Reason: "bad", Status: http.StatusUnauthorized}
		}
		return apitest.ByName(ctx, token)
	}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	made := w.As("root", "POST", apitest.EventsPath, apitest.NewEvent("a")).Must(201)
	w.As("team", "GET", apitest.EventsPath+"/a?secret=1", "").Must(403)
	w.As("x+events:read", "GET", "/api/v1/events", "").Must(200)
	w.As("only-update", "PUT", apitest.EventsPath+"/none", apitest.NewEvent("none")).Must(403)
	w.As("hidden-token", "GET", apitest.EventsPath, "").Must(401)
	w.As("root", "GET", "/apis", "").Must(200)
	srv := w.Serve()
	// A watch is told of when it ends.
	watched := w.Watch(srv, apitest.EventsPath+"?watch=1&resourceVersion="+made.At("metadata.resourceVersion").(string), "Authorization", "Bearer root")
	w.As("root", "GET", apitest.EventsPath+"/a", "").Must(200)
	srv.Stop()
	watched.Ended()
	data, entries := log.Entries()
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
	apitest.Equal(t, got, []string{
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

// TestAuditEntriesAreSmall: a client without rights writes no large entries, whatever it puts where, so it cannot
// replace what the log has by few requests. What nothing can be named is refused before the policy.
func TestAuditEntriesAreSmall(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Audit = log.Log })
	asked := 0
	for _, long := range []string{"%01", "x", "%22", "%3C", "%E2%80%A8"} {
		for _, n := range []int{60, 700, 5000} {
			text := strings.Repeat(long, n)
			for _, path := range []string{
				"/api/v1/namespaces/" + text + "/events", "/apis/events.k8s.io/v1/namespaces/" + text + "/events/" + text,
				"/apis/events.k8s.io/v1/namespaces/shop/events/" + text, "/api/v1/namespaces/" + text, "/api/v1/watch/namespaces/" + text + "/events",
				"/query/v1/events?namespace=" + text, "/query/v1/groups?by=type&search=namespace:" + text, "/loki/api/v1/label/" + text + "/values",
				"/livez/" + text, "/" + text, "/api/v1/events?fieldSelector=metadata.name%3D" + text + "&" + text + "=1",
			} {
				for _, method := range []string{"GET", "PUT", "DELETE"} {
					asked++
					answer := w.As("nobody", method, path, "", "User-Agent", text, "Audit-Id", text, "X-Request-Id", text)
					if answer.Code < 400 {
						t.Errorf("%s %.60s is answered %d", method, path, answer.Code)
					}
				}
			}
			w.As("nobody", "GET", "/api/v1/events", "", "Impersonate-User", strings.Repeat("é\"", n), "Impersonate-Extra-"+strings.Repeat("a", n), "b")
			asked++
		}
	}
	w.As("root", "GET", "/api/v1/namespaces/shop/events/"+strings.Repeat("x", 769), "").Must(404)
	w.As("nobody", "GET", "/api/v1/namespaces/shop/events/"+strings.Repeat("x", 769), "").Must(404)
	data, entries := log.Entries()
	if len(entries) != asked+2 {
		t.Errorf("%d entries of %d requests", len(entries), asked+2)
	}
	for line := range strings.Lines(data) {
		if len(line) > 3<<10 {
			t.Errorf("an entry has %d bytes: %.300s", len(line), line)
		}
	}
	if last := entries[len(entries)-1]; last.Allowed != nil {
		t.Errorf("the policy decided about a name that is too long: %+v", last)
	}
}

// TestAuditID: the answer and the entry have the same id: the client's own if
// it is fit for a log. The entry also has the id of the access line.
func TestAuditID(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	w := apitest.New(t, func(c *api.Config) { c.Audit = log.Log })
	type ids struct{ Audit, Request string }
	var want []ids
	for _, sent := range []string{"", "mine-1", "mine 2", "mine\"3", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		header := w.Do("GET", apitest.EventsPath, "", "Audit-Id", sent).Must(200).Header
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
	_, entries := log.Entries()
	for _, e := range entries {
		got = append(got, ids{e.ID, e.RequestID})
	}
	apitest.Equal(t, got, want)
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
		w := apitest.New(t, func(c *api.Config) { c.Audit, c.Registry = log, reg })
		w.Create("a")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		waittest.Until(t, "the log is failing", func() bool { return log.Failing(t.Context()) != nil })
		code := map[bool]int{false: 0, true: http.StatusServiceUnavailable}[refuse]
		for _, c := range []struct {
			method, path, body, media string
			code                      int
		}{
			{"POST", apitest.EventsPath, apitest.NewEvent("b"), "application/json", 201},
			{"PUT", apitest.EventsPath + "/a", apitest.NewEvent("a"), "application/json", 200},
			{"PATCH", apitest.EventsPath + "/a", `{"metadata":{"labels":{"x":"y"}}}`, "application/merge-patch+json", 200},
			{"DELETE", apitest.EventsPath + "/a", "", "", 200},
			{"DELETE", apitest.EventsPath, "", "", 200},
		} {
			a := w.Do(c.method, c.path, c.body, "Content-Type", c.media).Must(max(c.code, code))
			if refuse && !strings.Contains(a.Status().Message, "audit log") {
				t.Errorf("%s: %s", c.method, a.Body)
			}
		}
		w.Do("GET", apitest.EventsPath, "").Must(200)
		if n, want := apitest.Sum(t, reg, "eventsvc_requests_refused_total"), map[bool]float64{true: 5}[refuse]; n != want {
			t.Errorf("%v refusals are counted, want %v", n, want)
		}
		if apitest.Sum(t, reg, "eventsvc_audit_failing") != 1 {
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
	w := apitest.New(t)
	const depth = 1 << 20
	deep := `{"metadata":{"name":"a"},"note":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	objects := strings.Repeat(`{"a":`, depth/4) + "1" + strings.Repeat("}", depth/4)
	operations := "[" + strings.Repeat(`{"op":"test","path":"/a","value":1},`, 10000) + `{"op":"test","path":"/a","value":1}]`
	anchors := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"
	w.Create("live")
	for _, c := range []struct{ name, method, path, body, media string }{
		{"nested lists", "POST", apitest.EventsPath, deep, "application/json"},
		{"nested objects", "POST", apitest.CorePath, objects, "application/json"},
		{"nested lists in YAML", "POST", apitest.EventsPath, "note: " + strings.Repeat("[", 20000), "application/yaml"},
		{"aliases in YAML", "POST", apitest.EventsPath, anchors, "application/yaml"},
		{"nested merge patch", "PATCH", apitest.EventsPath + "/live", objects, "application/merge-patch+json"},
		{"nested strategic patch", "PATCH", apitest.EventsPath + "/live", objects, "application/strategic-merge-patch+json"},
		{"nested apply", "PATCH", apitest.EventsPath + "/live?fieldManager=m", objects, "application/apply-patch+yaml"},
		{"many operations", "PATCH", apitest.EventsPath + "/live", operations, "application/json-patch+json"},
		{"nested options", "DELETE", apitest.EventsPath + "/live", objects, "application/json"},
		{"3 MiB and a byte", "POST", apitest.EventsPath, strings.Repeat("a", 3<<20+1), "application/json"},
		{"long query", "GET", apitest.EventsPath + "?labelSelector=" + strings.Repeat("a%21%3Db,", 1200), "", ""},
	} {
		a := w.Do(c.method, c.path, c.body, "Content-Type", c.media)
		if a.Code < 400 || a.Code >= 500 {
			t.Errorf("%s: %d %.200s", c.name, a.Code, a.Body)
		}
		if len(a.Body) > 64<<10 {
			t.Errorf("%s: the answer has %d bytes", c.name, len(a.Body))
		}
	}
	w.Do("GET", apitest.EventsPath+"/live", "").Must(200)
	if w.Do("GET", apitest.EventsPath, "").Must(200).Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("browsers may guess the type of an answer")
	}
}
