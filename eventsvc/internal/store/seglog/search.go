package seglog

import (
	"bytes"
	"errors"
	"slices"

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
	// searchPiece is how many records of a segment without words are looked at between two pauses.
	searchPiece = 64
	// searchUnsealed is the most segments without words that a search reads, 50 ms each. With more, the search goes in
	// order of time, which ends with what it has found when its time is over.
	searchUnsealed = 16
)

// A Search finds the records of a range of seconds, up to a revision, whose texts have all pieces. Pieces are
// folded ([event.Fold]).
type Search struct {
	From, To int64
	Last     uint64
	Pieces   [][]byte
	Nodes    bool                        // dimensions have their node
	Sees     func(event.Dimensions) bool // as in [Moments]
	Group    func(event.Dimensions) int  // as in [Moments]: records that are left out by it may be left out
	Pause    func() error                // called between pieces of work of less than a millisecond; may call [Reader.Rest]

	parts  [][]byte // parts of Pieces that are looked up in the words
	groups []groupPlace
	frame  notesFrame
	found  []uint64
	text   []byte // of a record
	room   []byte // for a folded text
}

// groupPlace is where a group of blocks with common words is.
type groupPlace struct {
	segment     int
	first, last uint64
}

// errMany ends a search that has found too much, or damage.
var errMany = errors.New("too many records match, or some are damaged")

// Search returns the revisions of all matching records and perhaps of others, in no order and perhaps twice. ok is false if they are
// too many to be looked up one by one, or if words or notes are damaged.
func (r *Reader) Search(s *Search) (revisions []uint64, ok bool, err error) {
	if err = r.search(s); errors.Is(err, errMany) {
		return nil, false, nil
	}
	return s.found, true, err
}

func (r *Reader) search(s *Search) error {
	s.parts = partsOf(s.Pieces)
	parts, err := r.parts(s.Last, s.From, s.To, s.Sees)
	if err != nil {
		return err
	}
	for _, p := range r.pending {
		if !s.look(p.Revision, p.Data) {
			return errMany
		}
	}
	sealed, unsealed := r.bySeal(parts)
	if len(unsealed) > searchUnsealed {
		return errMany
	}
	for _, i := range sealed {
		if err := r.searchWords(s, i); err != nil {
			return err
		}
	}
	for _, at := range s.groups {
		if err := r.searchGroup(s, at); err != nil {
			return err
		}
		if err := s.Pause(); err != nil {
			return err
		}
	}
	for _, i := range unsealed {
		if err := r.searchRecords(s, i); err != nil {
			return err
		}
	}
	return nil
}

// bySeal returns the numbers of the segments that have words, and of those that have none yet.
func (r *Reader) bySeal(parts []part) (sealed, unsealed []int) {
	for _, p := range parts {
		stored, ok := p.(*stored)
		switch {
		case !ok: // the pending records, which Search looks at itself
		case r.segments[stored.segment].Compressed:
			sealed = append(sealed, stored.segment)
		default:
			unsealed = append(unsealed, stored.segment)
		}
	}
	return sealed, unsealed
}

// searchWords adds the groups of blocks that the words of a segment lead to.
func (r *Reader) searchWords(s *Search, i int) error {
	v, err := r.segment(i)
	if err != nil {
		return err
	}
	words := v.tx.Bucket([]byte(bucketWords))
	if words == nil {
		return errMany
	}
	var w wordEntry
	covered := r.segments[i].Base - 1
	c := words.Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		if w.parse(key, value) != nil || w.from != covered {
			return errMany
		}
		in, err := w.having(s.parts)
		if err != nil || len(s.groups)+count(in.groups) > searchGroups {
			return errMany // a check of the store reports damage
		}
		for at, end := range w.ends {
			if in.groups&(1<<at) != 0 {
				s.groups = append(s.groups, groupPlace{i, covered + 1, end})
			}
			covered = end
		}
		if err := s.Pause(); err != nil {
			return err
		}
	}
	if recordsIn(r.segments[i], v.tx).Last(0) > covered {
		return errMany
	}
	return nil
}

// reasonsWith returns the classes of the reasons with which texts that have all parts occur in a segment, and perhaps others.
func (r *Reader) reasonsWith(i int, parts [][]byte) (classes uint64, err error) {
	if !r.segments[i].Compressed {
		return allReasons, nil
	}
	v, err := r.segment(i)
	if err != nil {
		return allReasons, err
	}
	words := v.tx.Bucket([]byte(bucketWords))
	if words == nil {
		return allReasons, nil
	}
	var w wordEntry
	covered := r.segments[i].Base - 1
	c := words.Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		if w.parse(key, value) != nil || w.from != covered {
			return allReasons, nil
		}
		in, err := w.having(parts)
		if err != nil {
			return allReasons, nil //nolint:nilerr // a check of the store reports the damage
		}
		classes, covered = classes|in.reasons, w.ends[len(w.ends)-1]
	}
	if recordsIn(r.segments[i], v.tx).Last(0) > covered {
		return allReasons, nil
	}
	return classes, nil
}

// searchGroup adds the records of a group of blocks.
func (r *Reader) searchGroup(s *Search, at groupPlace) error {
	v, err := r.segment(at.segment)
	if err != nil || at.first > s.Last {
		return err
	}
	damage := recordsIn(r.segments[at.segment], v.tx).eachNotes(at.first, at.last, &s.frame, func(f *notesFrame) bool {
		for i, revision := range f.revisions {
			if f.known[i] == noteUnread || f.known[i] == noteLength && s.has(f.note(i)) {
				s.found = append(s.found, revision)
			}
		}
		return len(s.found) <= searchMost
	})
	if damage != nil || len(s.found) > searchMost {
		return errMany
	}
	return nil
}

// searchRecords adds records of a segment without words.
func (r *Reader) searchRecords(s *Search, i int) error {
	v, err := r.segment(i)
	if err != nil {
		return err
	}
	wanted, few, err := r.wantedIn(i, s, recordsIn(r.segments[i], v.tx).Last(0))
	if err != nil {
		return err
	}
	for _, revision := range wanted {
		e, err := r.Get(revision)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil || !s.lookAt(&e) {
			return errMany // the lookup of the record reports damage
		}
		if err := s.Pause(); err != nil {
			return err
		}
	}
	next := r.segments[i].Base
	for all := few; !all; {
		v, err := r.segment(i) // of the head another transaction than before the pause
		if err != nil {
			return err
		}
		ok, looked := true, 0
		all, err = recordsIn(r.segments[i], v.tx).Each(next, func(revision uint64, record []byte) (bool, error) {
			next = revision + 1
			looked++
			ok = s.look(revision, record)
			return ok && looked < searchPiece, nil
		}, passLost)
		switch {
		case err != nil:
			return err
		case !ok:
			return errMany
		}
		if err := s.Pause(); err != nil {
			return err
		}
	}
	return nil
}

// searchShare: if a search wants at most one record of so many in a segment, it reads them one by one.
const searchShare = 8

// wantedIn returns the revisions of the records of a segment that a search wants by their time and dimensions, if they are few.
func (r *Reader) wantedIn(i int, s *Search, last uint64) (revisions []uint64, few bool, err error) {
	m := Moments{From: s.From, To: s.To, Last: s.Last, Nodes: s.Nodes, Sees: s.Sees, Group: s.Group}
	if err := m.openSegment(r, i); err != nil {
		return nil, false, err
	}
	most := int(last-r.segments[i].Base) / searchShare
	for more := true; more; {
		var found []Moment
		if found, _, more, err = m.Next(r); err != nil {
			return nil, false, err
		}
		for _, at := range found {
			revisions = append(revisions, at.Revision)
		}
		if len(revisions) > most {
			return nil, false, nil
		}
	}
	slices.Sort(revisions)
	return revisions, true, nil
}

// look adds a record if it matches. It reports false if there are too many, or if the record is damaged.
func (s *Search) look(revision uint64, record []byte) (ok bool) {
	if revision > s.Last {
		return true
	}
	e, err := parseEntry(revision, record)
	return err == nil && s.lookAt(&e) // the lookup of the record reports the damage
}

// lookAt is look for a record that was read.
func (s *Search) lookAt(e *Entry) (ok bool) {
	if e.Kind == Deleted {
		return true
	}
	var unread error
	if s.text, unread = e.AppendText(s.text[:0]); unread != nil || s.has(s.text) {
		s.found = append(s.found, e.Revision)
	}
	return len(s.found) <= searchMost
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
