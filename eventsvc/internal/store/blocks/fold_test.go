package blocks

import (
	"math/rand/v2"
	"testing"
)

// stringsOf finds the strings of a text byte by byte.
func stringsOf(text []byte) (found []string) {
	var s []byte
	inString := false
	for at := 0; at < len(text) && len(found) < maxStrings; at++ {
		switch c := text[at]; {
		case !inString:
			inString = c == '"'
		case c == '"':
			found, s, inString = append(found, string(s)), nil, false
		case c == '\\' && at+1 < len(text):
			at++
			s = append(s, text[at])
		case c != '\\':
			s = append(s, c)
		}
	}
	return found
}

// TestStrings compares the strings of random texts with those that are found byte by byte.
func TestStrings(t *testing.T) {
	t.Parallel()
	const alphabet = "\"\\a#!]" // those that differ by one bit too
	var f folder
	for seed := range uint64(100_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := make([]byte, r.IntN(1200))
		rare := 1 + r.IntN(30)
		for i := range text {
			if text[i] = 'x'; r.IntN(rare) == 0 {
				text[i] = alphabet[r.IntN(len(alphabet))]
			}
		}
		want := stringsOf(text)
		if f.read(text); f.count != len(want) {
			t.Fatalf("seed %d: %d strings, want %d in %q", seed, f.count, len(want), text)
		}
		for i, s := range want {
			if got := f.string(i); string(got) != s {
				t.Fatalf("seed %d: string %d is %q, want %q in %q", seed, i, got, s, text)
			}
		}
	}
}
