package columns

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// join returns the note of a template and its words.
func join(template []byte, words [][]byte) (note []byte) {
	for i, part := range bytes.Split(template, []byte{hole}) {
		if i > 0 {
			note = append(note, words[i-1]...)
		}
		note = append(note, part...)
	}
	return note
}

// FuzzNote splits notes and searches for texts: the note is what template and words make, and a word is found where it
// is.
func FuzzNote(f *testing.F) {
	f.Add("Back-off 5m0s restarting web-7d9f8-x2x4z", "web-7d9f8-x2x4z", "0s rest")
	f.Add("a1 b2", "a", "1 B2")
	f.Add("\u212a1 \xff", "\u212a1", "k1 ")
	f.Fuzz(func(t *testing.T, note, object, word string) {
		var s event.NoteSplitter
		if s.Split([]byte(note), []byte(object), []byte("shop")) && string(join(s.Template, s.Words)) != note {
			t.Fatalf("%q is %q and %q", note, s.Template, s.Words)
		}
		folded := event.Fold(nil, []byte(word))
		if len(folded) == 0 || bytes.IndexByte(folded, 0) >= 0 {
			return
		}
		a := event.NewAttributes([event.NumFields]string{event.RegardingName: object}, nil)
		rows := []Row{{Revision: 1, Occurrence: event.Occurrence{Count: 1, New: 1}, Namespace: []byte("shop"), Attributes: a, Note: []byte(note)}}
		pieces, last := build(t, rows)
		table, err := Open(last, pieces)
		if err != nil {
			t.Fatal(err)
		}
		filter := &event.Filter{Kind: event.FilterWord, Word: folded}
		scan, err := table.Scan(&Query{From: -1 << 50, To: 1 << 50, Last: last, Filter: filter})
		n := 0
		if err == nil && scan != nil {
			n, err = scan.Select(0)
		}
		if want := filter.Matches(&event.Subject{Namespace: "shop", Attributes: a, Text: event.AppendText(nil, []byte(note), a)}); err != nil || (n == 1) != want {
			t.Errorf("%q in %q of %q: %d, %v, want %t", word, note, object, n, err, want)
		}
	})
}

// FuzzPieces reads any bytes as a dictionary, a UID, a frame and a chunk, none of which may end the process.
func FuzzPieces(f *testing.F) {
	f.Add(appendDictionary(nil, 0, &dictionary{[]byte("abc"), []uint32{1, 1, 3}}))
	f.Add(appendChunk(nil, 0, []uint64{1, 2, 1 << 40}))
	f.Add(appendPlaces(nil, []place{{namespace: 1, cluster: 2, chunks: chunkSet{5}}, {namespace: 300}}))
	f.Add(appendUID(nil, []byte("b6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseDictionary(0, b); err == nil {
			if again, err := parseDictionary(0, appendDictionary(nil, 0, d)); err != nil || !slices.Equal(again.ends, d.ends) {
				t.Errorf("%x: %v", b, err)
			}
		}
		if uid := uidOf(b); uid != nil && !bytes.Equal(uidOf(appendUID(nil, uid)), uid) {
			t.Errorf("the UID %q", uid)
		}
		if again := uidOf(appendUID(nil, b)); !bytes.Equal(again, b) {
			t.Errorf("the UID %q is %q", b, again)
		}
		if places, ok := parsePlaces(b); ok {
			if again, ok := parsePlaces(appendPlaces(nil, places)); !ok || len(again) != len(places) {
				t.Errorf("%x: %d places, then %d", b, len(places), len(again))
			}
		}
		_, _ = inflate(b)
		var numbers [ChunkRows]uint64
		c, err := parseChunk(0, seal(0, slices.Clone(b)), b, ChunkRows)
		if err == nil {
			c.read(numbers[:], 0)
		}
		if err != nil && !errors.Is(err, boltfile.ErrChecksum) {
			t.Error(err)
		}
		_, _, _ = chunkOf(seal(0, slices.Clone(b)), 0, 3, 2)
		_, _, _ = cutPlain(b)
	})
}
