// Package records reads the log of a store together with its index.
//
// # Contract
//
// [Source.View] gives one view of both. [Source.Scan] goes over the records in order of
// revision, with what the index has for the key of each.
//
// Errors are those of packages index and seglog. All methods are safe for concurrent
// use. The package knows nothing of what the readers look for.
package records

import (
	"errors"

	"tidings.example/eventsvc/internal/store/entry"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Chunk is how many records are looked at in one view, so that it is short.
const Chunk = 4096

// A Source is a log and its index.
type Source struct {
	Index *index.Index
	Log   *seglog.Log
}

// View calls f with a view of index and log, and calls it again if a file was replaced
// meanwhile.
func (s Source) View(f func(index.View, *seglog.Reader) error) error {
	return s.Index.View(func(v index.View) error {
		return s.Log.View(func(r *seglog.Reader) error { return f(v, r) })
	})
}

// Scan calls f with records whose revisions are greater than after and not greater than
// last, and with what the index has for their keys, until f returns false. It looks at
// [Chunk] records at most. It passes over damaged ones: nothing may be deleted because
// of them, and nothing kept.
func (s Source) Scan(after, last uint64, f func(*entry.Entry, index.Pointer) bool) error {
	return s.View(func(v index.View, r *seglog.Reader) error {
		n := 0
		var failed error
		err := r.ScanAll(after, last, func(e entry.Entry) bool {
			var p index.Pointer
			if p, _, failed = v.Newest(string(e.Key)); failed != nil {
				return false
			}
			n++
			return f(&e, p) && n < Chunk
		}, seglog.SkipDamaged)
		return errors.Join(err, failed)
	})
}
