package seglog

import (
	"errors"

	"tidings.example/eventsvc/internal/store/index"
)

// Chunk is how many records are looked at in one view of the index, so that it is short.
const Chunk = 4096

// An IndexedLog is a log and its index.
type IndexedLog struct {
	Index *index.Index
	Log   *Log
}

// View calls f once, with a view of index and log. It is for short reads: the view of the index keeps bbolt from
// reusing its pages.
func (s IndexedLog) View(f func(index.View, *Reader) error) error {
	return s.Index.View(func(v index.View) error {
		return s.Log.View(func(r *Reader) error { return f(v, r) })
	})
}

// Scan calls f with records whose revisions are greater than after and not greater than
// last, and with what the index has for their keys, until f returns false. It looks at
// [Chunk] records at most. It passes over damaged ones: nothing may be deleted because
// of them, and nothing kept.
func (s IndexedLog) Scan(after, last uint64, f func(*Entry, index.Pointer) bool) error {
	return s.View(func(v index.View, r *Reader) error {
		n := 0
		var failed error
		err := r.Scan(after, last, func(e Entry) bool {
			var p index.Pointer
			if p, _, failed = v.Newest(string(e.Key)); failed != nil {
				return false
			}
			n++
			return f(&e, p) && n < Chunk
		}, SkipDamaged)
		return errors.Join(err, failed)
	})
}
