package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/flow"
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
		if got := text.Match(flow.NewTurns(t.Context()), []byte(c.note)); got != c.want {
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
		if got, want := text.Match(flow.NewTurns(t.Context()), []byte(note)), contains(note, word); got != want {
			t.Errorf("%q in %q: %v, want %v", word, note, got, want)
		}
		if got, want := text.Match(flow.NewTurns(t.Context()), []byte(strings.ToUpper(note)+"·"+note)), contains(strings.ToUpper(note)+"·"+note, word); got != want {
			t.Errorf("%q in the second note: %v, want %v", word, got, want)
		}
	})
}

// TestTextInLongNotes: words are found wherever they are in a note that is looked at in
// pieces, and a client that has gone ends that.
func TestTextInLongNotes(t *testing.T) {
	t.Parallel()
	text, err := query.ParseText(`"für alle" "back off" -missing`)
	if err != nil {
		t.Fatal(err)
	}
	const piece = 64 << 10
	for at := piece - 24; at <= piece+1; at++ {
		for _, c := range []struct {
			note string
			want bool
		}{
			{strings.Repeat("x", at) + "FÜR ALLE back off" + strings.Repeat("y", 2*piece), true},
			{"back off" + strings.Repeat("ü", 2*piece) + strings.Repeat("x", at) + "für alle", true},
			{strings.Repeat("x", at) + "für alle", false},
			{"für alle, back off" + strings.Repeat("x", at-20) + "missing" + strings.Repeat("y", piece), false},
		} {
			turns := flow.NewTurns(t.Context())
			if got := text.Match(turns, []byte(c.note)); got != c.want || turns.Err() != nil {
				t.Errorf("at %d: %t, %v, want %t", at, got, turns.Err(), c.want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	turns := flow.NewTurns(ctx)
	if text.Match(turns, []byte("für alle back off")) || !errors.Is(turns.Err(), context.Canceled) {
		t.Error(turns.Err())
	}
}

// TestTextAllocates nothing once it has room for a note.
func TestTextAllocates(t *testing.T) {
	text, err := query.ParseText("pulling ärger")
	if err != nil {
		t.Fatal(err)
	}
	note := append(make([]byte, 0, 1<<10), strings.Repeat("Ärger with an image ", 20)...)
	turns := flow.NewTurns(t.Context())
	text.Match(turns, note)
	if n := testing.AllocsPerRun(100, func() { text.Match(turns, note) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkText(b *testing.B) {
	note := "Back-off restarting failed container worker in pod checkout-7d4b9c6f5-x2x8p_shop(3f1c9f0e-6a54-4c3e-9d0b-1c3c5f3d2a11)"
	for name, note := range map[string]string{"ASCII": note, "Unicode": note + " für"} {
		b.Run(name, func(b *testing.B) {
			text, err := query.ParseText(`container "image pull"`)
			if err != nil {
				b.Fatal(err)
			}
			turns := flow.NewTurns(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				if text.Match(turns, []byte(note)) {
					b.Fatal("it is not there")
				}
			}
		})
	}
}
