package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/event"
)

// Noted returns a value that is stored for an event with a note and nothing else.
func Noted(note string) string {
	return string(append(protowire.AppendVarint([]byte{1, 10<<3 | byte(protowire.BytesType)}, uint64(len(note))), note...))
}

// Text returns some words: such as differ in their case, that have parts of others, and that no other text has.
func Text(rnd *rand.Rand, words int) string {
	some := []string{"Back-off", "back", "OFF", "restarting", "start", "ſtart", "Kelvin", "\u212aelvin", "straße", "STRASSE", "...", "日本", "日", "x=1", "\n", "\xff", "é", "É"}
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteString([]string{" ", "", "-"}[rnd.IntN(3)])
		}
		if n := rnd.IntN(len(some) + 4); n < len(some) {
			b.WriteString(some[n])
		} else {
			fmt.Fprintf(&b, "%x", rnd.Uint32())
		}
	}
	return b.String()
}

// PartOf returns a part of a text that begins and ends with a character, folded.
func PartOf(rnd *rand.Rand, text string) []byte {
	runes := []rune(text)
	from := rnd.IntN(len(runes))
	return event.Fold(nil, []byte(string(runes[from:from+1+rnd.IntN(len(runes)-from)])))
}
