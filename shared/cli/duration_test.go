package cli_test

import (
	"strings"
	"testing"
	"time"

	"tidings.example/shared/cli"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "0s": 0, "0d": 0, "-5m": -5 * time.Minute,
		"30d": 30 * day, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour, "1d12h": 36 * time.Hour, "9999w": 9999 * 7 * day,
	} {
		if got, err := cli.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30", "soon", "d", "1.5d", "-7d", "1d-2h", "2h1d", "1d1w", "99999d", "9999w9999d2500000h", "1d\n"} {
		if got, err := cli.ParseDuration(text); err == nil || !strings.Contains(err.Error(), "such as 90s, 1h30m, 30d or 2w") {
			t.Errorf("%q: %s, %v; want an error that names the form", text, got, err)
		}
	}
}
