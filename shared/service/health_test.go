package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/shared/service"
)

// TestProbes follows the text form of the Kubernetes API server's probes.
func TestProbes(t *testing.T) {
	t.Parallel()
	var health service.Health
	health.Add("committer", func(context.Context) error { return nil })
	health.Add("keys", func(context.Context) error { return errors.New("no key set from\nhttp://issuer") })
	health.AddWarning("audit", func(context.Context) error { return errors.New("disk full") })
	health.AddState("copy", func() string { return "2 behind" })
	public := http.NewServeMux()
	for _, path := range []string{"/livez", "/readyz"} {
		public.Handle(path, health.Handler(path))
		public.Handle(path+"/", health.Handler(path))
	}
	admin := service.Admin(&health, service.NewRegistry("demosvc"))

	for _, test := range []struct {
		handler http.Handler
		method  string
		url     string
		code    int
		body    string
	}{
		{public, "GET", "/livez", 200, "ok"},
		{public, "GET", "/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"},
		{public, "GET", "/livez/ping", 200, "ok"},
		{public, "GET", "/livez/keys", 404, "404 page not found\n"},
		{public, "GET", "/readyz", 500, "[+]ping ok\n[+]committer ok\n[-]keys failed: reason withheld\n[-]audit failed (a warning): reason withheld\n[+]copy ok\n[+]shutdown ok\nreadyz check failed\n"},
		{public, "GET", "/readyz/keys", 500, "internal server error: reason withheld\n"},
		{public, "GET", "/readyz?exclude=keys", 200, "ok"},
		{public, "GET", "/readyz?verbose&exclude=keys&exclude=nothing", 200,
			"[+]ping ok\n[+]committer ok\n[+]keys excluded: ok\n[-]audit failed (a warning): reason withheld\n[+]copy ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for [\"nothing\"]\nreadyz check passed\n"},
		{public, "HEAD", "/livez", 200, "ok"},
		{public, "POST", "/livez", 405, "method not allowed\n"},
		{admin, "GET", "/readyz", 500, "[+]ping ok\n[+]committer ok\n[-]keys failed: no key set from http://issuer\n[-]audit failed (a warning): disk full\n[+]copy ok: 2 behind\n[+]shutdown ok\nreadyz check failed\n"},
		{admin, "GET", "/healthz?exclude=keys", 200, "ok"},
		{admin, "GET", "/readyz/committer", 200, "ok"},
	} {
		rec := httptest.NewRecorder()
		test.handler.ServeHTTP(rec, httptest.NewRequest(test.method, test.url, nil))
		if rec.Code != test.code || rec.Body.String() != test.body {
			t.Errorf("%s %s: %d %q, want %d %q", test.method, test.url, rec.Code, rec.Body, test.code, test.body)
		}
		if ct := rec.Header().Get("Content-Type"); ct != "text/plain; charset=utf-8" || rec.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: header %v", test.url, rec.Header())
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	service.Admin(&service.Health{}, service.NewRegistry("demosvc")).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, name := range []string{"demosvc_build_info{", "go_goroutines", "process_open_fds"} {
		if !strings.Contains(rec.Body.String(), name) {
			t.Errorf("metrics have no %s", name)
		}
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "[-]keys failed", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	if err := service.Healthcheck(t.Context(), addr, 0); err == nil || !strings.Contains(err.Error(), "[-]keys failed") {
		t.Errorf("without wait: %v, want the probe's words", err)
	}
	if err := service.Healthcheck(t.Context(), addr, 1<<40); err != nil {
		t.Errorf("with wait: %v after %d probes", err, asked.Load())
	}
	if err := service.Healthcheck(t.Context(), "127.0.0.1:1", 0); err == nil {
		t.Error("nothing listens, and the check passed")
	}
}
