package bearer_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/waittest"
)

// TestTraceIsPassedOn: the fetch that an unknown key causes belongs to the trace of the request that brought the key.
func TestTraceIsPassedOn(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{parent: parent, "00-nonsense": "", "": ""} {
		got := make(chan string, 1)
		keys := newJWKS(t, &fakeIssuer{answer: func(r *http.Request) (*http.Response, error) {
			got <- r.Header.Get("Traceparent")
			return answer(http.StatusOK, document())
		}}, nil)
		handler := httpserver.Access(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = keys.Key(r.Context(), "unknown", bearer.RS256)
		}))
		request := httptest.NewRequest("GET", "/", nil)
		request.Header.Set("Traceparent", sent)
		handler.ServeHTTP(httptest.NewRecorder(), request)
		if seen := waittest.Within(t, got); seen != want {
			t.Errorf("traceparent %q: the issuer is asked with %q", sent, seen)
		}
	}
}
