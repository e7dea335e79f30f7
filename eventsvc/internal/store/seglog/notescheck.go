package seglog

import (
	"bytes"
	"math"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
)

// CheckNotes compares the notes of a compressed segment, and their words, with its records, and
// calls problem with what is wrong.
func CheckNotes(s *Segment, problem func(format string, args ...any)) error {
	if !s.Compressed {
		return nil
	}
	return s.view(func(tx *bbolt.Tx) error {
		c := notesChecker{notes: tx.Bucket([]byte(bucketNotes)), words: tx.Bucket([]byte(bucketWords)), problem: problem}
		if c.notes == nil || c.words == nil {
			problem("there are no notes to search in")
			return nil
		}
		_, err := recordsIn(s, tx).Each(0, func(revision uint64, record []byte) (bool, error) {
			c.record(revision, record)
			return true, nil
		}, passLost) // which is reported already
		if err != nil {
			return err
		}
		return c.checkWords()
	})
}

// A notesChecker checks the notes of one segment.
type notesChecker struct {
	notes, words *bbolt.Bucket
	problem      func(format string, args ...any)
	frame        notesFrame
	looked       uint64 // the notes up to this revision are those of the frame
	lost         bool   // or cannot be read, which was reported
}

// record compares the note of a record with it.
func (c *notesChecker) record(revision uint64, record []byte) {
	e, damaged := parseEntry(revision, record)
	if damaged == nil && e.Kind == Deleted {
		return
	}
	if revision > c.looked {
		c.seek(revision)
	}
	if c.lost {
		return
	}
	is, known := c.frame.find(revision)
	want, unread := e.AppendText(nil)
	if known != (damaged == nil && unread == nil) || known && !bytes.Equal(is, want) {
		c.problem("revision %d: its text is not the one to search in", revision)
	}
}

// seek finds the notes of a revision.
func (c *notesChecker) seek(revision uint64) {
	key, value := c.notes.Cursor().Seek(recordKey(revision))
	err := c.frame.parse(key, value)
	switch {
	case err == nil && c.frame.first <= revision:
		c.looked = c.frame.last
	case err == nil: // this is the frame behind them
		c.looked, err = c.frame.first-1, errBlockGone
	case len(key) == 8:
		c.looked = be.Uint64(key)
	default:
		c.looked = math.MaxUint64
	}
	if c.lost = err != nil; c.lost {
		c.problem("the notes from revision %d on: %v", revision, err)
	}
}

// checkWords compares the words with the notes.
func (c *notesChecker) checkWords() error {
	var w wordEntry
	var room []byte
	covered := 0 // frames
	err := c.words.ForEach(func(key, value []byte) error {
		err := w.parse(key, value)
		want := wordWriter{in: map[string]uint64{}}
		for _, end := range w.ends {
			if c.frame.parse(recordKey(end), c.notes.Get(recordKey(end))) != nil {
				return nil // which is reported already
			}
			for i := range c.frame.revisions {
				room = event.Fold(room[:0], c.frame.note(i))
				want.add(room)
			}
			want.end(end)
			covered++
		}
		words, in := want.table()
		if err == nil {
			w.bits, err = inflate(w.bits[:0], w.in)
		}
		if err != nil || !bytes.Equal(words, w.words) || !bytes.Equal(in, w.bits) {
			c.problem("the words up to revision %x are not those of the notes: %v", key, err)
		}
		return nil
	})
	if frames := c.notes.Stats().KeyN; covered != frames {
		c.problem("there are the words of %d parts of the notes, which are %d", covered, frames)
	}
	return err
}
