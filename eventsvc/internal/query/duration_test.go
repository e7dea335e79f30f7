package query_test

import (
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query"
)

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 15 * time.Minute: "15m", 47*time.Hour + 45*time.Minute: "1d23h45m", 24 * time.Hour: "1d",
	} {
		if got := query.FormatDuration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
