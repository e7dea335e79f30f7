package wal

import (
	"fmt"
	"hash/crc32"
	"slices"

	"tidings.example/eventsvc/internal/store"
)

// A foundFrame is one that lies in a file.
type foundFrame struct {
	at, end int64
	before  uint64
	records []Record // at least one
	intact  bool     // the checksum of the data is right
}

func (f *foundFrame) first() uint64 { return f.records[0].Revision }
func (f *foundFrame) last() uint64  { return f.records[len(f.records)-1].Revision }

// frameAt reads the frame at an offset. It reports false if there is none.
func (l *Log) frameAt(file []byte, at int64) (f *foundFrame, ok bool) {
	h := file[at : at+frameHeader]
	count, length := int64(be.Uint32(h[16:])), int64(be.Uint32(h[20:]))
	end := at + frameHeader + length + tableEntry*count
	if be.Uint64(h) != l.salt || count == 0 || end > int64(len(file)) {
		return nil, false
	}
	data, table := file[at+frameHeader:end-tableEntry*count], file[end-tableEntry*count:end]
	if be.Uint32(h[28:]) != crc32.Update(crc32.Checksum(h[:28], castagnoliTable), castagnoliTable, table) {
		return nil, false
	}
	f = &foundFrame{at: at, before: be.Uint64(h[8:]), end: at + padded(int(end-at))}
	f.intact = be.Uint32(h[24:]) == crc32.Checksum(data, castagnoliTable)
	f.records = split(data, table)
	return f, f.records != nil
}

// split returns the records that a table describes, nil if their lengths are not that of the data.
func split(data, table []byte) (records []Record) {
	for ; len(table) > 0; table = table[tableEntry:] {
		n := int64(be.Uint32(table[8:]))
		if n > int64(len(data)) {
			return nil
		}
		records, data = append(records, Record{be.Uint64(table), data[:n:n]}), data[n:]
	}
	if len(data) > 0 {
		return nil
	}
	return records
}

// replay returns the records with revisions greater than after, and their newest
// frame, nil if there is none. It sets where the next frame goes.
//
// Each frame names the revision before it, so the frames form a chain, whichever
// half they lie in; frames outside the chain are older and were checkpointed. A frame
// was begun only when the one before it was on the disk. So a damaged frame that no
// other continues was cut short, and nobody was told that it was written: it is
// left out. A damaged frame that another continues was acknowledged: its records are
// returned as they are, and their own checksums tell readers of the damage.
func (l *Log) replay(file []byte, after uint64) (records []Record, newest *foundFrame, err error) {
	var frames []*foundFrame
	for at := int64(blockSize); at < l.size; at += blockSize {
		if f, ok := l.frameAt(file, at); ok && f.last() > after {
			frames = append(frames, f)
		}
	}
	halves := map[bool]bool{} // which have frames of the chain
	l.begin(false)
	last := after
	for {
		f := next(frames, last)
		if f == nil || !f.intact && !continued(frames, f) {
			break
		}
		records, newest = append(records, f.records...), f
		last = f.last()
		l.begin(f.at >= l.size/2)
		halves[l.second()] = true
		l.end = f.end
	}
	for _, f := range frames {
		if f.before > last {
			return nil, nil, &store.FileError{Path: l.path, Fix: fixLost, Reason: fmt.Sprintf(
				"it goes on behind revision %d, but what comes before that ends with %d: this file is damaged, or one of the log is missing", f.before, last)}
		}
	}
	l.both = len(halves) == 2
	return records, newest, nil
}

// next returns the frame that continues from a revision, nil if there is none. If a
// frame was cut short and another written after a restart, it is the intact one.
func next(frames []*foundFrame, revision uint64) (best *foundFrame) {
	for _, f := range frames {
		if f.before <= revision && f.first() > revision && (best == nil || f.intact) {
			best = f
		}
	}
	return best
}

// continued reports whether another frame continues from one.
func continued(frames []*foundFrame, one *foundFrame) bool {
	return slices.ContainsFunc(frames, func(f *foundFrame) bool { return f.before == one.last() })
}
