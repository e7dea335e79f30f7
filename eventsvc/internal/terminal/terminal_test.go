package terminal_test

import (
	"testing"

	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/printable"
)

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
		wide  int
	}{
		{"plain", 10, "plain", 5},
		{"plain", 5, "plain", 5},
		{"plain", 4, "pla…", 4},
		{"a\nb\tc\r\n", 10, "a b c", 5},
		{"\x1b]0;title\x07x", 20, "�]0;title�x", 11},
		{"\u202eevil", 10, "�evil", 5},
		{"日本語テキスト", 14, "日本語テキスト", 14},
		{"日本語テキスト", 8, "日本語…", 7},
		{"e\u0301te\u0301", 3, "e\u0301te\u0301", 3},
	} {
		got := terminal.Cut(printable.OneLine(c.text), c.limit)
		if got != c.want || terminal.Columns(got) != c.wide || terminal.Columns(terminal.Pad(got, 20)) != 20 {
			t.Errorf("%q in %d columns: %q of %d, want %q of %d", c.text, c.limit, got, terminal.Columns(got), c.want, c.wide)
		}
	}
}
