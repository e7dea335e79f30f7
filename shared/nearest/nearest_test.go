package nearest_test

import (
	"slices"
	"strings"
	"testing"

	"tidings.example/shared/nearest"
)

func TestName(t *testing.T) {
	t.Parallel()
	known := []string{"from", "to", "listen-http", "listen-https", "LISTEN_ADMIN"}
	for name, want := range map[string]string{
		"form": "from", "fro": "from", "listen-htp": "listen-http", "listen-httpss": "listen-https", "listen-http-s": "listen-https",
		"listen_admin": "LISTEN_ADMIN", "retention": "", "o": "", "": "", "ot": "", strings.Repeat("from", 20): "",
	} {
		if got := nearest.Name(name, slices.Values(known)); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
