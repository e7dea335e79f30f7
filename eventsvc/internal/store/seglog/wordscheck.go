package seglog

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// CheckWords compares the words of a compressed segment with the notes of its blocks, and calls problem with what is wrong.
func CheckWords(s *Segment, problem func(format string, args ...any)) error {
	if !s.Compressed {
		return nil
	}
	return s.view(func(tx *bbolt.Tx) error {
		words := tx.Bucket([]byte(bucketWords))
		if words == nil {
			problem("there are no words to search for")
			return nil
		}
		var w wordEntry
		blocks, covered := recordsIn(s, tx), s.Base-1
		err := words.ForEach(func(key, value []byte) error {
			if err := w.parse(key, value); err != nil {
				problem("the words up to revision %x: %v", key, err)
				return nil
			}
			readable := func(*notesFrame) bool { return true }
			if w.from != covered && blocks.eachNotes(covered+1, w.from, new(notesFrame), readable) == nil {
				problem("there are no words of the notes up to revision %d", w.from)
			}
			want := wordWriter{in: map[string]wordPlaces{}}
			covered = w.from
			for _, end := range w.ends {
				if blocks.addWords(&want, covered+1, end) != nil {
					return nil // which is reported already
				}
				want.end(end)
				covered = end
			}
			words, in := want.table()
			bits, err := inflate(nil, w.in)
			if err != nil || !bytes.Equal(words, w.words) || !bytes.Equal(in, bits) {
				problem("the words up to revision %d are not those of the notes: %v", covered, err)
			}
			return nil
		})
		if last := blocks.Last(0); covered < last {
			problem("there are the words of the notes up to revision %d of %d", covered, last)
		}
		return err
	})
}

// addWords adds the words of the notes of some revisions.
func (r fileRecords) addWords(w *wordWriter, first, last uint64) error {
	return r.eachNotes(first, last, new(notesFrame), func(f *notesFrame) bool {
		for i := range f.revisions {
			w.add(f.note(i))
		}
		return true
	})
}
