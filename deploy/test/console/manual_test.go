package console_test

import (
	"strings"
	"testing"
)

// TestManual: the search of the manual finds a setting, and leads to its row.
func TestManual(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/help/how-to/limit-space.html")
	b.fill("#search", "max-bytes")
	b.waitText("#found li:first-child a", "--max-bytes")
	b.click("#found li:first-child a")
	b.wait(`document.querySelector("tr:target")`)
	if at := evaluate[string](b, `location.pathname`); !strings.HasSuffix(at, "/console/help/reference/eventsvc.html") {
		t.Errorf("the result leads to %s", at)
	}
	named(b, "manual")
	contrast(b, "manual")
}
