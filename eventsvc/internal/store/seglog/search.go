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
	Nodes    bool                       // dimensions have their node
	Group    func(event.Dimensions) int // as in [Moments]: records that are left out by it may be left out
	Late     func() bool                // reports that [Reader.Search] has taken long enough; called after each piece of work

	begun    bool
	parts    [][]byte // parts of Pieces that are looked up in the words
	segments Segments // the segments of the reader when the search began
	sealed   []int    // segments whose words are still to be looked up
	covered  uint64   // last revision of sealed[0] whose words were looked up
	words    wordEntry
	groups   []groupPlace
	frame    notesFrame
	unsealed []int    // segments that have no words
	next     uint64   // revision at which unsealed[0] goes on, 0 if it was not begun
	wanted   []uint64 // revisions that are left of unsealed[0], if few of its records are wanted
	found    []uint64
	text     []byte // of a record
	room     []byte // for a folded text
}

// groupPlace is where a group of blocks with common words is.
type groupPlace struct {
	segment     int
	first, last uint64
}

// Search continues a search until it is late or done; more reports that it is not done. A finished search returns the revisions
// of all matching records and perhaps of others, in no order and perhaps twice. ok is false if they are too many to be looked up
// one by one, if words or notes are damaged, or if a segment was replaced meanwhile.
func (r *Reader) Search(s *Search) (revisions []uint64, ok, more bool, err error) {
	if !s.begun {
		ok, err = r.beginSearch(s)
	} else {
		n := len(s.segments) // the log may have more by now
		ok = n <= len(r.segments) && slices.Equal(s.segments, r.segments[:n])
	}
	for late := false; ok && err == nil && len(s.sealed)+len(s.groups)+len(s.unsealed) > 0; late = s.Late() {
		if late {
			return nil, true, true, nil
		}
		switch {
		case len(s.sealed) > 0:
			ok, err = r.searchWords(s)
		case len(s.groups) > 0:
			ok, err = r.searchGroup(s)
		default:
			ok, err = r.searchRecords(s)
		}
	}
	return s.found, ok && len(s.found) <= searchMost, false, err
}

// beginSearch finds the segments to search, and searches the pending records. It reports false if too many pending records
// match, if one is damaged, or if too many segments have no words.
func (r *Reader) beginSearch(s *Search) (ok bool, err error) {
	s.begun, s.segments = true, r.segments
	s.parts = partsOf(s.Pieces)
	parts, err := r.parts(s.Last, s.From, s.To)
	if err != nil {
		return false, err
	}
	for _, p := range parts {
		stored, ok := p.(*stored)
		switch {
		case !ok: // the pending records, see below
		case r.segments[stored.segment].Compressed:
			s.sealed = append(s.sealed, stored.segment)
		default:
			s.unsealed = append(s.unsealed, stored.segment)
		}
	}
	for _, p := range r.pending {
		if !s.look(p.Revision, p.Data) {
			return false, nil
		}
	}
	return len(s.unsealed) <= searchUnsealed, nil
}

// searchWords adds the groups of blocks that an entry of words leads to. It reports false if the groups are too many, or if words
// are damaged.
func (r *Reader) searchWords(s *Search) (ok bool, err error) {
	i := s.sealed[0]
	v, err := r.segment(i)
	if err != nil {
		return false, err
	}
	words := v.tx.Bucket([]byte(bucketWords))
	if words == nil {
		return false, nil
	}
	s.covered = max(s.covered, r.segments[i].Base-1)
	key, value := words.Cursor().Seek(recordKey(s.covered + 1))
	if key == nil {
		ok = recordsIn(r.segments[i], v.tx).Last(0) <= s.covered
		s.sealed, s.covered = s.sealed[1:], 0
		return ok, nil
	}
	w := &s.words
	if w.parse(key, value) != nil || w.from != s.covered {
		return false, nil
	}
	in, err := w.having(s.parts)
	if err != nil || len(s.groups)+count(in.groups) > searchGroups {
		return false, nil //nolint:nilerr // a check of the store reports the damage
	}
	for at, end := range w.ends {
		if in.groups&(1<<at) != 0 {
			s.groups = append(s.groups, groupPlace{i, s.covered + 1, end})
		}
		s.covered = end
	}
	return true, nil
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

// searchGroup adds the records of a group of blocks. It reports false if they are too many, or if a block is damaged.
func (r *Reader) searchGroup(s *Search) (ok bool, err error) {
	at := s.groups[0]
	s.groups = s.groups[1:]
	v, err := r.segment(at.segment)
	if err != nil {
		return false, err
	}
	if at.first > s.Last {
		return true, nil
	}
	damage := recordsIn(r.segments[at.segment], v.tx).eachNotes(at.first, at.last, &s.frame, func(f *notesFrame) bool {
		for i, revision := range f.revisions {
			if f.known[i] == noteUnread || f.known[i] == noteLength && s.has(f.note(i)) {
				s.found = append(s.found, revision)
			}
		}
		return len(s.found) <= searchMost
	})
	return damage == nil && len(s.found) <= searchMost, nil
}

// searchRecords adds records of a segment without words, until it is late. It reports false if they are too many.
func (r *Reader) searchRecords(s *Search) (ok bool, err error) {
	i := s.unsealed[0]
	v, err := r.segment(i)
	if err != nil {
		return false, err
	}
	if s.next == 0 {
		last := recordsIn(r.segments[i], v.tx).Last(0)
		few := false
		if s.wanted, few, err = r.wantedIn(i, s, last); err != nil {
			return false, err
		}
		if s.next = r.segments[i].Base; few {
			s.next = last + 1
		}
	}
	ok = true
	for late := false; ok && !late && len(s.wanted) > 0; late = s.Late() {
		e, err := r.Get(s.wanted[0])
		if s.wanted = s.wanted[1:]; errors.Is(err, ErrGone) {
			continue
		}
		ok = err == nil && s.lookAt(&e)
	}
	if len(s.wanted) > 0 {
		return ok, nil
	}
	all, err := recordsIn(r.segments[i], v.tx).Each(s.next, func(revision uint64, record []byte) (bool, error) {
		s.next = revision + 1
		ok = s.look(revision, record)
		return ok && !s.Late(), nil
	}, passLost)
	if all {
		s.unsealed, s.next = s.unsealed[1:], 0
	}
	return ok, err
}

// searchShare: if a search wants at most one record of so many in a segment, it reads them one by one.
const searchShare = 8

// wantedIn returns the revisions of the records of a segment that a search wants by their time and dimensions, if they are few.
func (r *Reader) wantedIn(i int, s *Search, last uint64) (revisions []uint64, few bool, err error) {
	m := Moments{From: s.From, To: s.To, Last: s.Last, Nodes: s.Nodes, Group: s.Group}
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
