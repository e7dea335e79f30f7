package bolt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"sort"
)

// A frame that was found in a journal.
type frame struct {
	at            int64
	first, before uint64
	records       []logged // none if their lengths make no sense
	intact        bool     // they are what was written
	end           int64
}

func (f *frame) last() uint64 { return f.first + uint64(max(1, len(f.records))) - 1 }

// frameAt reads the frame at a place, if there is one.
func (j *journal) frameAt(file []byte, at int64) (f *frame, ok bool) {
	h := file[at : at+frameHeader]
	length := int64(be.Uint32(h[24:]))
	if be.Uint64(h) != j.salt || be.Uint32(h[32:]) != crc32.Checksum(h[:32], castagnoliTable) || at+frameHeader+length > int64(len(file)) {
		return nil, false
	}
	body := file[at+frameHeader : at+frameHeader+length]
	f = &frame{at: at, first: be.Uint64(h[8:]), before: be.Uint64(h[16:]), end: at + padded(frameHeader+int(length))}
	f.intact = be.Uint32(h[28:]) == crc32.Checksum(body, castagnoliTable)
	f.take(body)
	return f, true
}

// take takes the records of a frame apart.
func (f *frame) take(body []byte) {
	for revision := f.first; len(body) > 0; revision++ {
		if len(body) < frameRecord || int64(be.Uint32(body))+frameRecord > int64(len(body)) {
			f.records = nil
			return
		}
		n := frameRecord + int(be.Uint32(body))
		f.records = append(f.records, logged{revision, body[frameRecord:n:n]})
		body = body[n:]
	}
}

// takeUpJournal opens the journal of a head that ends with a revision, and
// returns the records behind it.
func takeUpJournal(path, id string, last uint64) (*journal, []logged, error) {
	file, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, &FileError{path, "it is missing, and with it the last writes", fixWrites}
	} else if err != nil {
		return nil, nil, fmt.Errorf("journal: %w", err)
	}
	j, err := parseJournal(path, id, file, fixWrites)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(file)) != j.size {
		return nil, nil, &FileError{path, fmt.Sprintf("it has %d bytes, and should have %d", len(file), j.size), fixWrites}
	}
	records, newest, err := j.read(file, last)
	if err != nil {
		return nil, nil, err
	}
	if err := j.open(path); err != nil {
		return nil, nil, err
	}
	if newest != nil { // the frames before it were on the disk when it was begun; see rewriteMeta
		if err := j.write(file[newest.at:newest.end], newest.at); err != nil {
			return nil, nil, fmt.Errorf("journal: %w", errors.Join(err, j.file.Close()))
		}
	}
	return j, records, nil
}

// read finds the records behind a revision. Their frames follow on each other,
// whichever lies where: what is older has been folded. A frame was begun when the
// one before it was on the disk; so one that is not whole was cut short by a
// crash, and nobody was told of it, if none follows on it. Otherwise it is
// damaged: its records are returned as they are, and found out by who reads them.
// The newest frame is nil if there is none.
func (j *journal) read(file []byte, last uint64) (records []logged, newest *frame, err error) {
	var frames []*frame
	for at := int64(journalBlock); at < j.size; at += journalBlock {
		if f, ok := j.frameAt(file, at); ok && f.last() > last {
			frames = append(frames, f)
		}
	}
	halves := map[bool]bool{} // those that have some of it, the first and the second
	j.begin(false)
	for {
		f := following(frames, last)
		if f == nil || len(f.records) == 0 || !f.intact && !continued(frames, f) {
			break
		}
		records, newest = append(records, f.records...), f
		last = f.last()
		j.begin(f.at >= j.size/2)
		halves[j.second()] = true
		j.end = f.end
	}
	for _, f := range frames {
		if f.before > last {
			return nil, nil, &FileError{j.path, fmt.Sprintf("it goes on behind revision %d, but what comes before that ends with %d: this file is damaged, or one of the log is missing", f.before, last), fixWrites}
		}
	}
	j.full = len(halves) == 2
	return records, newest, nil
}

// following returns the frame that goes on from a revision: the whole one where
// another was begun, and cut short, before; nil if there is none.
func following(frames []*frame, revision uint64) (found *frame) {
	for _, f := range frames {
		if f.before <= revision && f.first > revision && (found == nil || f.intact) {
			found = f
		}
	}
	return found
}

// continued reports whether a frame was written behind one.
func continued(frames []*frame, one *frame) bool {
	return slices.ContainsFunc(frames, func(f *frame) bool { return f.before == one.last() })
}

// find returns the record of a revision, nil if it is not there.
func find(records []logged, revision uint64) []byte {
	if len(records) == 0 || revision < records[0].revision {
		return nil
	}
	i := revision - records[0].revision
	if i >= uint64(len(records)) || records[i].revision != revision { // a commit that failed has left some out
		i = uint64(sort.Search(len(records), func(i int) bool { return records[i].revision >= revision }))
	}
	if i < uint64(len(records)) && records[i].revision == revision {
		return records[i].record
	}
	return nil
}
