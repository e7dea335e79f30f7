package e2e_test

import (
	"regexp"
	"strings"
	"testing"
)

// passing matches the parts of an output that differ from run to run, with their replacements.
var passing = []struct {
	form *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d{8}T\d{6}Z`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "ID"},
	{regexp.MustCompile(`(hello|nightly)-[0-9a-z]{5}\b`), "NAME"},
	{regexp.MustCompile(`\b\d{16}\b`), "REVISION"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|[dhms]))+\b`), "AGE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ([KMG]i)?B\b`), "SIZE"},
	{regexp.MustCompile(`[ \t]+`), " "}, // columns are as wide as their times
}

// lasting returns the lines of an output, with the parts of passing replaced.
func lasting(output string) (lines []string) {
	for line := range strings.Lines(output) {
		for _, p := range passing {
			line = p.form.ReplaceAllString(line, p.is)
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// absent returns the first line that a page shows and that is not at its place in an output. A line … stands for any
// lines, … at the end of a line for its rest, and … within a line for some of it. Lines before and after what is shown
// may follow, because a block has several commands.
func absent(shown, output string) string {
	got, skip := lasting(output), true
	for _, want := range lasting(shown) {
		if want == "…" {
			skip = true
			continue
		}
		at := 0
		for at < len(got) && !sameLine(want, got[at]) {
			at++
		}
		if at == len(got) || at > 0 && !skip {
			return want
		}
		got, skip = got[at+1:], false
	}
	return ""
}

// sameLine compares a line that is shown with one that is printed.
func sameLine(shown, printed string) bool {
	parts := strings.Split(shown, "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(part))
	}
	return regexp.MustCompile(`^` + strings.Join(parts, `.*`) + `$`).MatchString(printed)
}

// TestAbsent: a line that is missing, out of order or other than shown is found; times and ids do not count.
func TestAbsent(t *testing.T) {
	t.Parallel()
	const printed = "noise\nTIME                 COUNT\n2026-11-23 04:50:00  22   Warning 15\n2026-11-23 05:00:00  1    Normal 1\nlast line, of 12.5 MiB\n"
	for shown, want := range map[string]string{
		"TIME   COUNT\n2026-11-24 14:50:00   22   Warning 15\n": "",
		"TIME   COUNT\n2026-11-24 05:00:00   1   Normal 1\n":    "TIME 1 Normal 1", // the row between is not shown
		"TIME   COUNT\n…\n2026-11-24 05:00:00   1   Normal 1\n": "",
		"TIME   COUNT\n2026-11-24 04:50:00   23   Warning 15\n": "TIME 23 Warning 15",
		"2026-11-24 05:00:00   1   Norm…\nlast … of 3 B\n":      "",
		"last line, of 3 KiB\nnoise\n":                          "noise",
	} {
		if got := absent(shown, printed); got != want {
			t.Errorf("%q lacks %q, want %q", shown, got, want)
		}
	}
}
