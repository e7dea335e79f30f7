package events_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/httpserver"
)

// TestVerbs: a request is logged and counted under its own verb, even if the
// policy must allow other verbs for it too.
func TestVerbs(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	apply := `{"apiVersion":"events.k8s.io/v1","kind":"Event",` + apitest.NewEvent("b")[1:]
	for _, test := range []struct{ method, path, content, body, verb string }{
		{"POST", "", "application/json", apitest.NewEvent("c"), "create"},
		{"PUT", "/a", "application/json", apitest.NewEvent("a", `"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}`), "update"},
		{"PUT", "/d", "application/json", apitest.NewEvent("d"), "update"},
		{"PATCH", "/a", apitest.MergePatch, `{"metadata":{"labels":{"x":"y"}}}`, "patch"},
		{"PATCH", "/b?fieldManager=m", "application/apply-patch+yaml", apply, "patch"},
		{"GET", "/a", "", "", "get"},
		{"GET", "", "", "", "list"},
		{"DELETE", "/a", "", "", "delete"},
	} {
		var log bytes.Buffer
		only := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != "verb" && a.Key != "code" {
				return slog.Attr{}
			}
			return a
		}
		handler := httpserver.Access(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: only})), prometheus.NewRegistry(), w.Server)
		req := httptest.NewRequestWithContext(t.Context(), test.method, apitest.EventsPath+test.path, strings.NewReader(test.body))
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set("Content-Type", test.content)
		handler.ServeHTTP(httptest.NewRecorder(), req)
		if code, verb, _ := strings.Cut(strings.TrimSpace(log.String()), " "); !strings.HasPrefix(code, "code=20") || verb != "verb="+test.verb {
			t.Errorf("%s %s is logged as %s, want %s", test.method, test.path, log.String(), test.verb)
		}
	}
}
