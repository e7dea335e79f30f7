package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// bucketNext has which versions the records of a segment supersede, so that a version leads to the one behind it: see
// [Reader.Next]. A record says itself which one it supersedes, and leads only back. The records include those that are
// no longer held.
const bucketNext = "next"

// nextPairs is how many pairs an entry of a segment that was written again has. In a head each pair is an entry.
const nextPairs = 256

// A successor is a record that supersedes another one.
type successor struct {
	previous, revision uint64
	deletion           bool
}

// successorOf returns what a record supersedes. It reports false if that is nothing.
func successorOf(e *Entry) (s successor, ok bool) {
	return successor{e.Previous, e.Revision, e.Kind == Deleted}, e.Previous != 0 && e.Previous < e.Revision
}

// putSuccessors puts pairs into a bucket, in the order of previous, so many in an entry.
func putSuccessors(b *bbolt.Bucket, all []successor, most int) error {
	for some := range slices.Chunk(all, most) {
		k := recordKey(some[0].previous)
		var v []byte
		before := some[0].previous
		for _, s := range some {
			behind := (s.revision - s.previous) << 1
			if s.deletion {
				behind |= 1
			}
			v = binary.AppendUvarint(v, s.previous-before)
			v = binary.AppendUvarint(v, behind)
			before = s.previous
		}
		if err := b.Put(k, be.AppendUint32(v, boltfile.Checksum(some[0].previous, v))); err != nil {
			return err
		}
	}
	return nil
}

var errSuccessors = errors.New("it has no list of versions that were superseded")

// eachSuccessor calls f with the pairs of an entry until f returns false.
func eachSuccessor(k, v []byte, f func(successor) bool) error {
	end := len(v) - checksumBytes
	if len(k) != 8 || end < 0 || be.Uint32(v[end:]) != boltfile.Checksum(be.Uint64(k), v[:end]) {
		return boltfile.ErrChecksum
	}
	s := successor{previous: be.Uint64(k)}
	for at := 0; at < end; {
		step, n := binary.Uvarint(v[at:end])
		behind, m := binary.Uvarint(v[at+max(n, 0) : end])
		if n <= 0 || m <= 0 {
			return errSuccessors
		}
		at += n + m
		s.previous += step
		s.revision, s.deletion = s.previous+behind>>1, behind&1 > 0
		if !f(s) {
			return nil
		}
	}
	return nil
}

// findSuccessor finds the record of a segment that supersedes a revision. If the list is damaged it finds none.
func findSuccessor(tx *bbolt.Tx, of uint64) (found successor, ok bool) {
	b := tx.Bucket([]byte(bucketNext))
	if b == nil {
		return found, false
	}
	c := b.Cursor()
	k, v := c.Seek(recordKey(of))
	if k == nil {
		k, v = c.Last()
	} else if !bytes.Equal(k, recordKey(of)) {
		k, v = c.Prev()
	}
	if k == nil {
		return found, false
	}
	damage := eachSuccessor(k, v, func(s successor) bool {
		found, ok = s, s.previous == of
		return s.previous < of
	})
	return found, ok && damage == nil
}

// Next returns the revision of the version behind one of an event, and whether that is a deletion; newest is the newest
// revision of the event, which ends the search. It costs about the same wherever the two are, and however many versions
// follow. It reports false if the segments do not know, because a list is damaged: then [Reader.At] does.
func (r *Reader) Next(of, newest uint64) (next uint64, deletion, ok bool, err error) {
	for i := max(r.segments.find(of), 0); i < len(r.segments) && r.segments[i].Base <= newest; i++ {
		v, err := r.segment(i)
		if err != nil {
			return 0, false, false, err
		}
		if s, ok := findSuccessor(v.tx, of); ok {
			return s.revision, s.deletion, true, nil
		}
	}
	if r.superseded == nil {
		r.superseded = map[uint64]successor{}
		for _, p := range r.pending {
			e, damage := splitEntry(p.Revision, p.Data)
			if s, ok := successorOf(&e); ok && damage == nil {
				r.superseded[s.previous] = s
			}
		}
	}
	s, ok := r.superseded[of]
	return s.revision, s.deletion, ok, nil
}

// CheckSuccessors compares the list of superseded versions of a segment with its records, and calls problem with what
// is wrong.
func CheckSuccessors(s *Segment, problem func(format string, args ...any)) error {
	return s.view(func(tx *bbolt.Tx) error {
		listed := map[successor]bool{}
		b := tx.Bucket([]byte(bucketNext))
		if b == nil {
			return errSuccessors
		}
		err := b.ForEach(func(k, v []byte) error {
			err := eachSuccessor(k, v, func(s successor) bool {
				listed[s] = true
				return true
			})
			if err != nil {
				problem("the versions that were superseded from revision %x on: %v", k, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		whole, held := true, map[uint64]bool{}
		_, err = recordsIn(s, tx).Each(0, func(revision uint64, record []byte) (bool, error) {
			e, damage := parseEntry(revision, record)
			held[revision] = true
			if next, ok := successorOf(&e); ok && damage == nil {
				if !listed[next] {
					problem("revision %d: the version that it superseded, %d, does not lead to it", revision, next.previous)
				}
				delete(listed, next)
			}
			whole = whole && damage == nil
			return true, nil
		}, func(*lostRange) (bool, error) {
			whole = false
			return true, nil
		})
		for next := range listed {
			if whole && held[next.revision] {
				problem("revision %d leads to %d, which did not supersede it", next.previous, next.revision)
			}
		}
		return err
	})
}
