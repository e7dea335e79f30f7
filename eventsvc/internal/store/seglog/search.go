package seglog

import (
	"bytes"
	"context"

	"tidings.example/eventsvc/internal/event"
)

const (
	// searchGroups is the most groups of blocks that a search by words reads, in about 20 ms. A text in more groups is
	// searched in order of time.
	searchGroups = 256
	// searchMost is the most records that a search by words returns, because looking them up one by one takes as
	// long. If more records match, a search in order of time finds the first hundred at once.
	searchMost = 1024
	// openFrames is how many frames of notes a reader keeps, for records that were not written in the order of their
	// observation.
	openFrames = 4
	// searchUnsealed is the most segments without words that a search reads, 50 ms each. With more, the search goes in
	// order of time, which ends with what it has found when its time is over.
	searchUnsealed = 16
	checkEvery     = 1024 // records of a scan are between two looks at whether it is still wanted
)

// A Search is for the records of a range of seconds up to a revision, whose notes have all pieces. These are
// folded ([event.Fold]).
type Search struct {
	From, To int64
	Last     uint64
	Pieces   [][]byte

	pieces   []piece
	found    []uint64
	room     []byte
	unsealed []int // segments that have no words
}

// groupPlace is where a group of blocks with common words is.
type groupPlace struct {
	segment     int
	first, last uint64
}

// Search returns the revisions of the records that match, and perhaps of some that do not, in no
// order. It reports false if they are too many to be looked up one by one, or if something that
// shortens the search is damaged.
func (r *Reader) Search(ctx context.Context, s *Search) (revisions []uint64, ok bool, err error) {
	for _, text := range s.Pieces {
		s.pieces = append(s.pieces, pieceOf(text))
	}
	groups, ok, err := r.searchWords(s)
	if err != nil || !ok {
		return nil, false, err
	}
	var frame notesFrame
	for _, at := range groups {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if ok, err := r.searchGroup(s, at, &frame); err != nil || !ok {
			return nil, false, err
		}
	}
	for _, i := range s.unsealed {
		if ok, err := r.searchRecords(ctx, s, i); err != nil || !ok {
			return nil, false, err
		}
	}
	for _, p := range r.pending {
		if more, _ := s.look(p.Revision, p.Data); !more {
			return nil, false, nil
		}
	}
	return s.found, len(s.found) <= searchMost, nil
}

// searchWords returns the groups of blocks in which words of the pieces are.
func (r *Reader) searchWords(s *Search) (groups []groupPlace, ok bool, err error) {
	parts, err := r.parts(s.Last, s.From, s.To)
	if err != nil {
		return nil, false, err
	}
	for _, p := range parts {
		stored, ok := p.(*stored)
		switch {
		case !ok:
			continue // pending records are searched in any case
		case !r.segments[stored.segment].Compressed:
			if s.unsealed = append(s.unsealed, stored.segment); len(s.unsealed) > searchUnsealed {
				return nil, false, nil
			}
			continue
		}
		if groups, ok, err = r.searchSegment(s, stored.segment, groups); err != nil || !ok {
			return nil, false, err
		}
	}
	return groups, true, nil
}

// searchSegment adds the groups of a segment. It reports false if they are too many, or if words are damaged.
func (r *Reader) searchSegment(s *Search, i int, groups []groupPlace) (_ []groupPlace, ok bool, err error) {
	v, err := r.segment(i)
	if err != nil {
		return nil, false, err
	}
	words := v.tx.Bucket([]byte(bucketWords))
	if words == nil {
		return nil, false, nil
	}
	var w wordEntry
	covered := r.segments[i].Base - 1
	c := words.Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		if w.parse(key, value) != nil || w.from != covered {
			return nil, false, nil
		}
		in, err := w.groups(s.pieces)
		if err != nil || len(groups)+count(in) > searchGroups {
			return nil, false, nil
		}
		for at, end := range w.ends {
			if in&(1<<at) != 0 {
				groups = append(groups, groupPlace{i, covered + 1, end})
			}
			covered = end
		}
	}
	return groups, recordsIn(r.segments[i], v.tx).Last(0) <= covered, nil
}

// searchGroup adds the records of a group of blocks. It reports false if they are too many, or if a block is damaged.
func (r *Reader) searchGroup(s *Search, at groupPlace, f *notesFrame) (ok bool, err error) {
	v, err := r.segment(at.segment)
	if err != nil {
		return false, err
	}
	if at.first > s.Last {
		return true, nil
	}
	damage := recordsIn(r.segments[at.segment], v.tx).eachNotes(at.first, at.last, f, func(f *notesFrame) bool {
		for i, revision := range f.revisions {
			if f.known[i] == noteUnread || f.known[i] == noteLength && s.has(f.note(i)) {
				s.found = append(s.found, revision)
			}
		}
		return len(s.found) <= searchMost
	})
	return damage == nil && len(s.found) <= searchMost, nil
}

// searchRecords adds the records of a segment that is not compressed. It reports false if they are too many.
func (r *Reader) searchRecords(ctx context.Context, s *Search, i int) (ok bool, err error) {
	v, err := r.segment(i)
	if err != nil {
		return false, err
	}
	n := 0
	return recordsIn(r.segments[i], v.tx).Each(0, func(revision uint64, record []byte) (bool, error) {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return s.look(revision, record)
	}, passLost)
}

// look adds a record if it matches. It reports false if there are too many, or if the record is damaged.
func (s *Search) look(revision uint64, record []byte) (more bool, err error) {
	if revision > s.Last {
		return true, nil
	}
	e, err := parseEntry(revision, record)
	if err != nil {
		return false, nil //nolint:nilerr // whoever looks it up is told
	}
	if e.Kind == Deleted {
		return true, nil
	}
	text, unread := e.AppendText(nil)
	if unread != nil || s.has(text) {
		s.found = append(s.found, revision)
	}
	return len(s.found) <= searchMost, nil
}

// has reports whether a note has all pieces.
func (s *Search) has(note []byte) bool {
	s.room = event.Fold(s.room[:0], note)
	for _, text := range s.Pieces {
		if !bytes.Contains(s.room, text) {
			return false
		}
	}
	return true
}

// openNotes are the frames of notes that a reader has used last.
type openNotes struct {
	frames [openFrames]struct {
		segment int
		notesFrame
	}
	next int // is replaced
}

// Note returns the note of a record of a compressed segment, without the rest of it. It reports false if it cannot, and the
// record has to be looked at. The note is valid until the next call of a method.
func (r *Reader) Note(revision uint64) (note []byte, ok bool) {
	i := r.segments.find(revision)
	if i < 0 || !r.segments[i].Compressed {
		return nil, false
	}
	for at := range r.notes.frames {
		if f := &r.notes.frames[at]; f.segment == i && f.first <= revision && revision <= f.last {
			return f.find(revision)
		}
	}
	v, err := r.segment(i)
	if err != nil {
		return nil, false
	}
	f := &r.notes.frames[r.notes.next%openFrames]
	r.notes.next++
	f.segment = i
	if _, damage := f.parse(v.cursor.Seek(recordKey(revision))); damage != nil || revision < f.first {
		return nil, false
	}
	return f.find(revision)
}

// forget gives up the frames, which are those of segments that may have been replaced.
func (o *openNotes) forget() {
	for i := range o.frames {
		o.frames[i].forget()
	}
}
