package seglog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// An entry of words ends after wordGroups groups of blocks, or sooner with wordBytes of words. A word has a bit for each group.
// An event takes 2 bytes there. A filter of hashes would take more, and could not be searched for a part of a word.
const (
	wordGroups = 64
	wordBytes  = 1 << 20
)

// isWord reports whether a byte of a folded text belongs to a word. All bytes of characters that are no ASCII do.
func isWord(b byte) bool {
	return b >= 0x80 || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// A wordWriter writes the words of folded texts.
type wordWriter struct {
	from uint64   // the words are from revisions after this one
	ends []uint64 // the last revisions of the groups
	in   map[string]wordPlaces
	size int // bytes of the words
	room []byte
}

// wordPlaces says which groups have a word, a bit for each, and with which classes of reasons the word occurs.
type wordPlaces struct{ groups, reasons uint64 }

// and returns the groups and classes that both have.
func (p wordPlaces) and(q wordPlaces) wordPlaces {
	return wordPlaces{p.groups & q.groups, p.reasons & q.reasons}
}

// or returns the groups and classes that at least one has.
func (p wordPlaces) or(q wordPlaces) wordPlaces {
	return wordPlaces{p.groups | q.groups, p.reasons | q.reasons}
}

// allReasons has all classes of reasons.
const allReasons = ^uint64(0)

// reasonClass returns the class of a reason, one of 64, as a bit. A NUL counts as a blank, which replaces it in texts.
func reasonClass[T string | []byte](reason T) uint64 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(reason) {
		c := reason[i]
		if c == 0 {
			c = ' '
		}
		h = (h ^ uint32(c)) * 16777619
	}
	return 1 << (h >> 26)
}

// add adds the words of the text of an event to the group in the making.
func (w *wordWriter) add(text []byte) {
	w.room = event.Fold(w.room[:0], text)
	reason := event.CutDimension(cutText(text).reason) // as the series of the event has it
	note, here := w.room, wordPlaces{1 << len(w.ends), reasonClass(reason)}
	for len(note) > 0 {
		n := 0
		for n < len(note) && isWord(note[n]) {
			n++
		}
		if n > 0 {
			if in, ok := w.in[string(note[:n])]; in.and(here) != here {
				w.in[string(note[:n])] = in.or(here)
				if !ok {
					w.size += n + 1
				}
			}
		}
		note = note[min(n+1, len(note)):]
	}
}

// end ends a group, if it has any revisions.
func (w *wordWriter) end(last uint64) {
	before := w.from
	if n := len(w.ends); n > 0 {
		before = w.ends[n-1]
	}
	if last > before {
		w.ends = append(w.ends, last)
	}
}

// write writes the words if they are enough for an entry, or with all in any case.
func (w *wordWriter) write(tx *bbolt.Tx, encoder *zstd.Encoder, all bool) error {
	n := len(w.ends)
	if n == 0 || !all && n < wordGroups && w.size < wordBytes {
		return nil
	}
	return tx.Bucket([]byte(bucketWords)).Put(w.entry(encoder))
}

// entry returns the entry of the groups that have ended, and begins the next one.
func (w *wordWriter) entry(encoder *zstd.Encoder) (key, value []byte) {
	n := len(w.ends)
	last := w.ends[n-1]
	value = binary.AppendUvarint(nil, last-w.from-1)
	value = binary.AppendUvarint(value, uint64(n))
	for at, end := range w.ends {
		before := w.from
		if at > 0 {
			before = w.ends[at-1]
		}
		value = binary.AppendUvarint(value, end-before)
	}
	words, in := w.table()
	value = append(binary.AppendUvarint(value, uint64(len(words))), words...)
	value = encoder.EncodeAll(in, value)
	w.from, w.ends, w.size = last, w.ends[:0], 0
	clear(w.in)
	return recordKey(last), be.AppendUint32(value, boltfile.Checksum(last, value))
}

// table returns the words, each between two line ends, and their places: first the groups of every word, then the classes.
func (w *wordWriter) table() (words, in []byte) {
	n := len(w.in)
	words, in = append(make([]byte, 0, w.size+1), '\n'), make([]byte, 2*8*n)
	for i, word := range slices.Sorted(maps.Keys(w.in)) {
		words = append(append(words, word...), '\n')
		binary.LittleEndian.PutUint64(in[8*i:], w.in[word].groups)
		binary.LittleEndian.PutUint64(in[8*(n+i):], w.in[word].reasons)
	}
	return words, in
}

// A wordEntry says in which groups of blocks there are which words, and with which reasons.
type wordEntry struct {
	from  uint64   // it covers the revisions after this one
	ends  []uint64 // the last revisions of the groups
	words []byte   // each between two line ends
	in    []byte   // the frame with the places of each word
	bits  []byte   // the decompressed frame, once it was needed
}

// parse verifies an entry. It shares the memory of value. After an error it covers nothing.
func (w *wordEntry) parse(key, value []byte) error {
	*w = wordEntry{ends: w.ends[:0], bits: w.bits[:0]}
	last, before, c, err := openValue(key, value)
	if err != nil {
		return err
	}
	end := last - before - 1
	for range c.number(wordGroups) {
		end += uint64(c.number(int(last - end)))
		w.ends = append(w.ends, end)
	}
	words := c.take(c.number(len(c.b)))
	if c.bad || end != last || len(words) == 0 {
		w.ends = w.ends[:0]
		return errBlockContent
	}
	w.from, w.words, w.in = last-before-1, words, c.b
	return nil
}

// mostParts is how many parts of the searched texts are looked up in the words, each in up to a few milliseconds an entry.
const mostParts = 8

// partsOf cuts folded texts into words, as an entry has them: a line end marks where a word begins or ends. The first and the last
// word of a text may be parts of longer ones. Of more than mostParts it returns the longest, which the fewest words have.
func partsOf(texts [][]byte) (parts [][]byte) {
	for _, text := range texts {
		parts = appendParts(parts, text)
	}
	slices.SortFunc(parts, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	parts = slices.CompactFunc(parts, bytes.Equal)
	return parts[:min(len(parts), mostParts)]
}

func appendParts(parts [][]byte, text []byte) [][]byte {
	for at := 0; at < len(text); at++ {
		from := at
		for at < len(text) && isWord(text[at]) {
			at++
		}
		if from == at {
			continue
		}
		var part []byte
		if from > 0 {
			part = append(part, '\n')
		}
		part = append(part, text[from:at]...)
		if at < len(text) {
			part = append(part, '\n')
		}
		parts = append(parts, part)
	}
	return parts
}

// having returns the places that have all parts.
func (w *wordEntry) having(parts [][]byte) (wordPlaces, error) {
	all := wordPlaces{^uint64(0) >> (64 - len(w.ends)), ^uint64(0)}
	for _, part := range parts {
		in, err := w.find(part)
		if all = all.and(in); err != nil || all.groups == 0 || all.reasons == 0 {
			return wordPlaces{}, err
		}
	}
	return all, nil
}

// find returns the places of all words with this part.
func (w *wordEntry) find(part []byte) (in wordPlaces, err error) {
	word, counted := -1, 0 // the word that begins behind the line ends that were counted
	for at := 0; ; {
		i := bytes.Index(w.words[at:], part)
		if i < 0 {
			return in, nil
		}
		if len(w.bits) == 0 {
			if w.bits, err = inflate(w.bits, w.in); err != nil {
				return in, err
			}
		}
		at += i + 1 // behind the line end that the part may begin with
		word += bytes.Count(w.words[counted:at], []byte{'\n'})
		counted = at
		half := len(w.bits) / 2
		if 8*word+8 > half {
			return in, errBlockContent
		}
		in = in.or(wordPlaces{binary.LittleEndian.Uint64(w.bits[8*word:]), binary.LittleEndian.Uint64(w.bits[half+8*word:])})
		end := bytes.IndexByte(w.words[at:], '\n')
		if end < 0 {
			return in, nil
		}
		at += end // the line end in front of the next word
	}
}

// count returns the number of bits.
func count(groups uint64) int { return bits.OnesCount64(groups) }
