package seglog

import (
	"encoding/binary"
	"math"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// note returns the note of a version. It shares memory with it.
func (e *Entry) note() ([]byte, error) {
	v := e.View(store.Key{})
	return codec.Note(&v)
}

// UID returns the UID of the event of a version.
func (e *Entry) UID() string {
	v := e.View(store.Key{})
	return string(codec.UID(&v))
}

// AppendText appends the text of a version that searches look at.
func (e *Entry) AppendText(dst []byte) ([]byte, error) {
	note, err := e.note()
	if err != nil {
		return dst, err
	}
	return event.AppendText(dst, note, e.Attributes), nil
}

// What a block says of the text of a record. Otherwise it is its length + noteLength.
const (
	noteNone   = 0 // it is a deletion, which has none
	noteUnread = 1 // it cannot be read
	noteLength = 2
)

// A noteWriter writes the texts of a block, which are notes with what else words are searched in, apart from the rest
// of its records.
type noteWriter struct {
	last  uint64 // record that was added last
	count uint64
	heads []byte
	texts []byte
	from  int // where the last text begins
	room  []byte
}

// reset begins the notes of the records behind a revision.
func (w *noteWriter) reset(after uint64) {
	w.last, w.count, w.heads, w.texts = after, 0, w.heads[:0], w.texts[:0]
}

// add adds a record, which may be damaged.
func (w *noteWriter) add(revision uint64, e *Entry, damaged error) {
	w.heads = binary.AppendUvarint(w.heads, revision-w.last)
	w.last = revision
	w.count++
	w.from = len(w.texts)
	if damaged == nil && e.Kind == Deleted {
		w.heads = append(w.heads, noteNone)
		return
	}
	if damaged == nil {
		w.texts, damaged = e.AppendText(w.texts)
	}
	if damaged != nil {
		w.heads = append(w.heads, noteUnread)
		return
	}
	w.heads = binary.AppendUvarint(w.heads, uint64(len(w.texts)-w.from)+noteLength)
}

// text returns the text of the record that was added last.
func (w *noteWriter) text() []byte { return w.texts[w.from:] }

// content returns the content of the frame of notes.
func (w *noteWriter) content() []byte {
	w.room = binary.AppendUvarint(w.room[:0], w.count)
	w.room = append(append(w.room, w.heads...), w.texts...)
	return w.room
}

// notesFrame is the revisions of the records of a block, and their texts, as [Entry.AppendText] makes them.
type notesFrame struct {
	first, last uint64 // the revisions that it covers
	revisions   []uint64
	ends        []uint32 // of the notes, by revision
	known       []byte   // noteNone, noteUnread or noteLength
	texts       []byte
	content     []byte
}

// forget empties the frame: it covers no revision.
func (f *notesFrame) forget() {
	f.first, f.last, f.revisions, f.ends, f.known = 1, 0, f.revisions[:0], f.ends[:0], f.known[:0]
}

// parse verifies a block, inflates its notes, and returns what is behind them. It reuses the memory of f. After an
// error f covers nothing.
func (f *notesFrame) parse(key, value []byte) (rest blockContent, err error) {
	f.forget()
	last, before, rest, err := openValue(key, value)
	if err != nil {
		return rest, err
	}
	frame := rest.take(rest.number(len(rest.b)))
	if rest.bad {
		return rest, errBlockContent
	}
	if f.content, err = inflate(f.content[:0], frame); err != nil {
		return rest, err
	}
	c := blockContent{b: f.content}
	revision, end := last-before-1, uint64(0)
	for range c.number(len(c.b)) {
		behind := uint64(c.number(int(last - revision)))
		if c.bad = c.bad || behind == 0; c.bad {
			f.forget()
			return rest, errBlockContent
		}
		revision += behind
		length := c.number(maxBlockBytes + noteLength)
		end += uint64(max(length, noteLength) - noteLength)
		f.revisions, f.ends, f.known = append(f.revisions, revision), append(f.ends, uint32(end)), append(f.known, byte(min(length, noteLength)))
	}
	if c.bad || end != uint64(len(c.b)) {
		f.forget()
		return rest, errBlockContent
	}
	f.first, f.last, f.texts = last-before, last, c.b
	return rest, nil
}

// openValue verifies a value that says before everything else how many revisions it covers before its last one, its
// key.
func openValue(key, value []byte) (last, before uint64, rest blockContent, err error) {
	if len(key) != 8 || len(value) < checksumBytes {
		return 0, 0, rest, boltfile.ErrChecksum
	}
	last, value, sum := be.Uint64(key), value[:len(value)-checksumBytes], be.Uint32(value[len(value)-checksumBytes:])
	if sum != boltfile.Checksum(last, value) {
		return 0, 0, rest, boltfile.ErrChecksum
	}
	rest = blockContent{b: value}
	if before = uint64(rest.number(math.MaxInt)); rest.bad || before >= last {
		return 0, 0, rest, errBlockContent
	}
	return last, before, rest, nil
}

// note returns the note at a position.
func (f *notesFrame) note(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = f.ends[i-1]
	}
	return f.texts[from:f.ends[i]]
}
