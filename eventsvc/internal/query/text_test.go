package query_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/query"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, note string
		want       bool
	}{
		{"", "", true},
		{"  ", "anything", true},
		{"back-off", "Back-Off restarting", true},
		{"off back", "Back-Off restarting", true}, // in any order
		{`"off back"`, "Back-Off restarting", false},
		{`"off REST"`, "Back-Off restarting", true}, // a phrase is no word
		{`off"rest"`, "Back-Off restarting", true},
		{"off pulled", "Back-Off restarting", false},
		{"x", "", false},
		{"ärger", "ÄRGER im Haus", true},
		{"STRASSE", "straße", false}, // simple folding: ß is one letter
		{"ſ", "S", true},             // long s
		{"k", "273 \u212a", true},    // the sign of kelvin
		{"\u212a", "back", true},
		{"σας", "ΣΑΣ", true}, // final sigma
		{"x", "\xff\xfeX", true},
		{"a,b=c\\", `A,B=C\`, true},
		{"-pulled", "Back-Off restarting", true},
		{"-back", "Back-Off restarting", false},
		{"rest -back", "Back-Off restarting", false},
		{"rest -pulled", "Back-Off restarting", true},
		{`-"off rest"`, "Back-Off restarting", false},
		{`-"off back"`, "Back-Off restarting", true},
		{`"-off"`, "Back-Off restarting", true}, // in a phrase it is a character
		{`"-no"`, "Back-Off restarting", false},
		{`back-"off rest"`, "Back-Off restarting", true}, // and in a word
		{"--off", "Back-Off restarting", false},
		{"off - rest", "Back-Off restarting", true}, // a minus alone is a word
		{"-", "Back-Off restarting", true},
	} {
		text, err := query.ParseText(c.text)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		if got := text.Match([]byte(c.note)); got != c.want {
			t.Errorf("%q in %q: %v", c.text, c.note, got)
		}
	}
}

func TestTextBounds(t *testing.T) {
	t.Parallel()
	for _, good := range []string{strings.Repeat("x", 1024), strings.TrimSpace(strings.Repeat("x ", 64))} {
		if _, err := query.ParseText(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{strings.Repeat("x", 1025), strings.Repeat("x ", 65), strings.Repeat(`"x"`, 65), `"`, `""`, `a"b`, "\xff"} {
		_, err := query.ParseText(bad)
		if parameter := (*query.ParameterError)(nil); !errors.As(err, &parameter) || parameter.Parameter != "search" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// contains is a search that is slow and plain: letter by letter, at each place.
func contains(note, word string) bool {
	a, b := []rune(note), []rune(word)
	same := func(x, y rune) bool {
		for c := unicode.SimpleFold(x); c != x; c = unicode.SimpleFold(c) {
			if c == y {
				return true
			}
		}
		return x == y
	}
	for i := 0; i+len(b) <= len(a); i++ {
		j := 0
		for j < len(b) && same(a[i+j], b[j]) {
			j++
		}
		if j == len(b) {
			return true
		}
	}
	return false
}

// FuzzText compares with the plain search.
func FuzzText(f *testing.F) {
	f.Add("back-off", "Back-off restarting failed container")
	f.Add("ſK", "Sk \u212a")
	f.Add("é", "E\u0301")
	f.Fuzz(func(t *testing.T, word, note string) {
		text, err := query.ParseText(`"` + word + `"`)
		if err != nil || strings.ContainsAny(word, "\"\\") || strings.Contains(note, "\x00") || !utf8.ValidString(note) {
			return
		}
		if got, want := text.Match([]byte(note)), contains(note, word); got != want {
			t.Errorf("%q in %q: %v, want %v", word, note, got, want)
		}
		if got, want := text.Match([]byte(strings.ToUpper(note)+"·"+note)), contains(strings.ToUpper(note)+"·"+note, word); got != want {
			t.Errorf("%q in the second note: %v, want %v", word, got, want)
		}
	})
}
