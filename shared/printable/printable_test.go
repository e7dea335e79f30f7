package printable_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"tidings.example/shared/printable"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain text":                         "plain text",
		"ü 界 é":                              "ü 界 é",
		" two\nlines\r\nand\ttabs ":          "two lines  and tabs",
		"\x1b[31mred\x1b[0m":                 "�[31mred�[0m",
		"bell\a, delete\x7f, CSI \u009b31m":  "bell�, delete�, CSI �31m",
		"reversed \u202e, isolated \u2066":   "reversed �, isolated �",
		"\xff is no UTF-8, nor \x9b":         "� is no UTF-8, nor �",
		"\x1b]8;;http://evil.example\x1b\\x": "�]8;;http://evil.example�\\x",
	} {
		if got := printable.OneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := printable.Lines("a\n" + text); strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(got, "a\n"), "\n", " "), "�", "")) == "" ||
			strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: lines %q", text, got)
		}
	}
}

// FuzzJSON: what is printed is harmless, and decodes to the same.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{"plain", "\x1b[2J", "\u009b2J \u202e \u200b \x7f", "\U000e0041", "\xff\x9b", `"\`, "ü 界"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		shown := printable.JSON(encoded)
		if i := strings.IndexFunc(string(shown), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has a character that is not printable", shown)
		}
		var before, after map[string]string
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal(shown, &after) != nil || before["a"] != after["a"] {
			t.Errorf("%q has become %q", before["a"], after["a"])
		}
	})
}

// TestJSONOfBytes: bytes that are no UTF-8 are harmless, too.
func TestJSONOfBytes(t *testing.T) {
	t.Parallel()
	if got := string(printable.JSON([]byte("{\n\t\"a\": \"\x9b31m\"}"))); got != "{\n\t\"a\": \"\\ufffd31m\"}" {
		t.Errorf("%q", got)
	}
}
