package httpserver_test

import (
	"net/http"
	"testing"

	"tidings.example/shared/httpserver"
)

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*": false, "identity": false, "gzipped": false,
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip ; Q=1.0": true,
		"gzip;q=0": false, "br, gzip; q=0.000": false, "gzip;q=much": false,
	} {
		h := http.Header{}
		h.Set("Accept-Encoding", accept)
		if got := httpserver.AcceptsGzip(h); got != want {
			t.Errorf("Accept-Encoding %q: %v, want %v", accept, got, want)
		}
	}
}
