package target

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestAdminIsRead(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("jwks_fetches_total{issuer=\"a\",result=\"ok\"} 2\njwks_fetches_total{issuer=\"a\",result=\"failed\"} 1\nother_total{} 7\n"))
	})
	mux.HandleFunc("/debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.RawQuery))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s := &Services{EventsAdmin: server.URL}
	if n, err := s.KeyFetches(t.Context()); err != nil || n != 3 {
		t.Errorf("%v fetches, %v, want 3", n, err)
	}
	file := filepath.Join(t.TempDir(), "a.pprof")
	if err := Profile(t.Context(), server.URL, 2, file); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "seconds=2" {
		t.Errorf("%q, %v", got, err)
	}
	if err := Profile(t.Context(), server.URL+"/none", 2, file); err == nil {
		t.Error("took a profile of a server that has none")
	}
}
