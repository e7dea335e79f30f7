package logql

import (
	"slices"
	"testing"
)

// TestLineParts: what is looked for before lines are matched is in each line that matches.
func TestLineParts(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		`{a="b"}`:                              nil,
		`{a="b"} |= "Back-off"`:                {"Back-off"},
		`{a="b"} |= "x" or "y"`:                nil,
		`{a="b"} != "x" !~ "y"`:                nil,
		`{a="b"} |= "" |= "\xff"`:              nil,
		`{a="b"} |~ "pod (web|db)-[0-9]+ x"`:   {"pod ", "-", " x"},
		`{a="b"} |~ "a?b*c+(?:de){2}(f){0,3}"`: {"c", "de"},
		`{a="b"} |~ "(?i)Error: .*"`:           {"ERROR: "},
		`{a="b"} |~ "one|two" |= "three"`:      {"three"},
	} {
		e, err := ParseLog(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := e.LineParts(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
