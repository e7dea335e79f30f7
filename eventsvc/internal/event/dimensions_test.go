package event_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/event"
)

// TestCutDimension: of a long text the beginning counts, in whole characters, and the text itself stays as it is.
func TestCutDimension(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "",
		"Pulled":                      "Pulled",
		strings.Repeat("r", 512):      strings.Repeat("r", 512),
		strings.Repeat("r", 513):      strings.Repeat("r", 509) + "…",
		strings.Repeat("ä", 1000):     strings.Repeat("ä", 254) + "…",
		strings.Repeat("\x80", 1<<10): "…",
	} {
		if got := event.CutDimension(text); got != want || len(got) > event.MaxDimension {
			t.Errorf("%.20q with %d bytes: %q", text, len(text), got)
		}
		bytes := []byte(text)
		if got := event.CutDimension(bytes); string(got) != want || string(bytes) != text {
			t.Errorf("%.20q with %d bytes: %q", text, len(text), got)
		}
	}
	long := strings.Repeat("r", 100<<10)
	a := event.NewAttributes([event.NumFields]string{event.Type: long, event.Reason: long, event.RegardingKind: long, event.Source: long, event.Node: long}, nil)
	if d := event.DimensionsOf("shop", a); d.Bytes() != len("shop")+5*event.MaxDimension {
		t.Errorf("%d bytes", d.Bytes())
	}
}
