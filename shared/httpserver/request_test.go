package httpserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/httpserver"
)

// TestWithValue: the context of a request has the last value that was added under each key, and the values of the
// connection. If Access serves the request, contexts that were derived before have them too.
func TestWithValue(t *testing.T) {
	t.Parallel()
	type key struct{ name string }
	for name, through := range map[string]func(http.Handler) http.Handler{
		"a request of its own": func(h http.Handler) http.Handler { return h },
		"a request with access": func(h http.Handler) http.Handler {
			return httpserver.Access(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), h)
		},
	} {
		served := false
		handler := through(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served = true
			before, cancel := context.WithCancel(r.Context())
			for _, value := range []string{"a", "b", "c"} {
				r = httpserver.WithValue(r, key{value}, value)
			}
			r = httpserver.WithValue(r, key{"a"}, "newer")
			for of, want := range map[string]any{"a": "newer", "b": "b", "c": "c", "connection": "its own", "none": nil} {
				if got := r.Context().Value(key{of}); got != want {
					t.Errorf("%s: %s is %v, want %v", name, of, got, want)
				}
			}
			if got := before.Value(key{"b"}); name == "a request with access" && got != "b" {
				t.Errorf("%s: a context made before has %v", name, got)
			}
			cancel()
			if r.Context().Err() != nil {
				t.Errorf("%s: the request ended with a context made from its own", name)
			}
		}))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{"connection"}, "its own"))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if cancel(); !served {
			t.Errorf("%s: it was not served", name)
		}
	}
}
