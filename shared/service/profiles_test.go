package service_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/service"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	plain := service.Admin(&service.Health{}, service.NewRegistry("demosvc"))
	get := func(h http.Handler, path string) (int, string) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		return rec.Code, rec.Body.String()
	}
	if code, _ := get(service.Profiles(plain, false), "/debug/pprof/heap"); code != http.StatusNotFound {
		t.Errorf("without being told to: %d", code)
	}
	with := service.Profiles(plain, true)
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": filepath.Base(os.Args[0]), "/livez": "ok",
	} {
		if code, body := get(with, path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, code, body)
		}
	}
}
