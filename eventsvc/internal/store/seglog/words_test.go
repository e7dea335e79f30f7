package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
)

// wordsOf returns the entry of the words of some frames, each of some notes.
func wordsOf(t testing.TB, frames [][]string) (key, value []byte) {
	t.Helper()
	w := wordWriter{in: map[string]wordPlaces{}}
	for i, notes := range frames {
		for _, note := range notes {
			w.add([]byte(note))
		}
		w.end(uint64(10 * (i + 1)))
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
	if err != nil {
		t.Fatal(err)
	}
	return w.entry(encoder)
}

// find looks a random part of a text up. What is found of a part of one word is exact.
func find(t *testing.T, rnd *rand.Rand, w *wordEntry) (part []byte, in wordPlaces, exact bool) {
	t.Helper()
	part = storetest.PartOf(rnd, storetest.Text(rnd, 1+rnd.IntN(2)))
	in, err := w.having(partsOf([][]byte{part}))
	if err != nil {
		t.Fatal(err)
	}
	return part, in, !bytes.ContainsFunc(part, func(r rune) bool { return r < 0x80 && !isWord(byte(r)) })
}

// TestWords: a frame is found by every part of its notes and, by a part of one word, no other is.
func TestWords(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	frames := make([][]string, wordGroups)
	for i := range frames {
		for range rnd.IntN(4) {
			frames[i] = append(frames[i], storetest.Text(rnd, 1+rnd.IntN(4)))
		}
	}
	var w wordEntry
	if err := w.parse(wordsOf(t, frames)); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		part, in, exact := find(t, rnd, &w)
		for i, notes := range frames {
			has := false
			for _, note := range notes {
				has = has || bytes.Contains(event.Fold(nil, []byte(note)), part)
			}
			if is := in.groups&(1<<i) != 0; has && !is || exact && is != has {
				t.Fatalf("%q is in frame %d of %q: %v", part, i, notes, is)
			}
		}
	}
}

// TestReasonsOfWords: every part of a word finds the reasons of all texts with the word. A part of only one word finds no others.
func TestReasonsOfWords(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	reasons := []string{"", "Pulled", "BackOff", "FailedMount", "a\x00b", "Ünder", strings.Repeat("Ünd\x00", 200)}
	texts := make([][]string, wordGroups)
	with := map[string]string{} // the reason of each text, as its series has it
	for i := range texts {
		reason := reasons[rnd.IntN(len(reasons))]
		a := event.NewAttributes([event.NumFields]string{event.Reason: reason}, nil)
		text := string(event.AppendText(nil, []byte(storetest.Text(rnd, 1+rnd.IntN(4))), a))
		texts[i], with[text] = append(texts[i], text), event.DimensionsOf("", a).Reason
	}
	var w wordEntry
	if err := w.parse(wordsOf(t, texts)); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		part, in, exact := find(t, rnd, &w)
		var want uint64
		for text, reason := range with {
			if bytes.Contains(event.Fold(nil, []byte(text)), part) {
				want |= reasonClass(reason)
			}
		}
		if want&^in.reasons != 0 || exact && want != in.reasons {
			t.Fatalf("%q is with reasons %b, want %b", part, in.reasons, want)
		}
	}
}

// TestPartsOfWords: at most mostParts parts of long texts are looked up, each once, the longest first.
func TestPartsOfWords(t *testing.T) {
	t.Parallel()
	texts := [][]byte{[]byte(strings.Repeat("THE ", 1000)), []byte("A-B THE LONGEST"), []byte("C"), []byte("1 2 3 4 5 6 7")}
	want := []string{"\nLONGEST", "\nTHE\n", "THE\n", "\n2\n", "\n3\n", "\n4\n", "\n5\n", "\n6\n"}
	got := make([]string, 0, len(want))
	for _, part := range partsOf(texts) {
		got = append(got, string(part))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestDamagedWords: no flipped bit of an entry goes unnoticed.
func TestDamagedWords(t *testing.T) {
	t.Parallel()
	key, value := wordsOf(t, [][]string{{"a note", "another"}, {"a third"}})
	for i := range 8 * (len(key) + len(value)) {
		b := append(bytes.Clone(key), value...)
		b[i/8] ^= 1 << (i % 8)
		var w wordEntry
		if err := w.parse(b[:8], b[8:]); !errors.Is(err, boltfile.ErrChecksum) || len(w.ends) > 0 {
			t.Errorf("bit %d: %v", i, err)
		}
	}
}

// FuzzWords: whatever bytes are words, they are refused, or searched without harm.
func FuzzWords(f *testing.F) {
	key, value := wordsOf(f, [][]string{{"a note", "another"}, {"a third"}})
	f.Add(key, value[:len(value)-checksumBytes], []byte("NOTE"))
	f.Fuzz(func(t *testing.T, key, value, part []byte) {
		if len(key) == 8 {
			value = binary.BigEndian.AppendUint32(value, boltfile.Checksum(binary.BigEndian.Uint64(key), value))
		}
		var w wordEntry
		if w.parse(key, value) != nil {
			return
		}
		if in, err := w.having(partsOf([][]byte{part})); err == nil && in.groups>>len(w.ends) != 0 {
			t.Errorf("it is in frames %b of %d", in.groups, len(w.ends))
		}
	})
}

// FuzzNotes: whatever a frame of notes has, it is refused, or read without harm.
func FuzzNotes(f *testing.F) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("\x02\x01\x06\x01\x01note"), uint64(999))
	f.Fuzz(func(t *testing.T, content []byte, revision uint64) {
		var frame notesFrame
		if _, err := frame.parse(sealBlock(encoder.EncodeAll(content, nil), nil, nil)); err != nil {
			return
		}
		frame.find(revision)
		for i := range frame.revisions {
			if r := frame.revisions[i]; r < 901 || r > 1000 || len(frame.note(i)) > len(content) {
				t.Errorf("revision %d, %d bytes", r, len(frame.note(i)))
			}
		}
	})
}
