package federation_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"tidings.example/tokensvc/internal/federation"
)

// TestLongLife: an entry that lets assertions live for longer than usual is warned of, and no other.
func TestLongLife(t *testing.T) {
	t.Parallel()
	for life, warned := range map[string]bool{"": false, ", maxTokenLife: 10m": false, ", maxTokenLife: 15m": false, ", maxTokenLife: 15m1s": true, ", maxTokenLife: 24h": true, ", maxTokenLife: 1d12h": true} {
		var log bytes.Buffer
		_, err := federation.New(federation.Config{
			Path: file(t, "- {issuer: 'https://a.example'"+life+"}"), Own: own, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "maxTokenLife is long") && strings.Contains(log.String(), "issuer=https://a.example"); got != warned {
			t.Errorf("%q: %s", life, log.String())
		}
	}
}
