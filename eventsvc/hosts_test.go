package main

import (
	"net/http"
	"testing"
)

// TestAdminHosts: no path of the admin listener answers for a host name that is not allowed.
func TestAdminHosts(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t), "--profiles", "--allowed-hosts=events.example")
	for host, want := range map[string]int{"": 200, "localhost:8081": 200, "events.example": 200, "evil.example": 403} {
		for _, path := range []string{"/metrics", "/readyz", "/debug/pprof/cmdline"} {
			if got := statusFor(t, p.url("--listen-admin")+path, host); got != want {
				t.Errorf("%s of %q: %d, want %d", path, host, got, want)
			}
		}
	}
	if got := statusFor(t, p.url("--listen-admin")+"/store/usage", "evil.example"); got != 403 {
		t.Errorf("/store/usage: %d", got)
	}
	if got := statusFor(t, p.url("--listen-http")+"/version", "public.example"); got != 200 {
		t.Errorf("the listener of the API: %d", got)
	}
}

// statusFor returns the status of the answer to a request for a host, by default the host of the URL.
func statusFor(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
