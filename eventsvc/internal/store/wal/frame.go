package wal

import "sort"

// A Record is one entry of the log.
type Record struct {
	Revision uint64
	Data     []byte // not to be modified
}

// A Frame is what one append writes: the records of one commit.
type Frame struct {
	// Records are those of the frame, in order of revision. Their data lie in the
	// frame's memory and stay valid.
	Records []Record
	bytes   []byte // header and data; [Log.Append] adds the table
}

// NewFrame returns an empty frame with room for so many records of so many bytes in
// all. Records that are appended must not exceed it.
func NewFrame(records int, bytes int64) *Frame {
	return &Frame{
		Records: make([]Record, 0, records),
		bytes:   make([]byte, frameHeader, padded(frameHeader+int(bytes)+tableEntry*records)),
	}
}

// Append appends a record, which encode writes behind the bytes that it is given.
func (f *Frame) Append(revision uint64, encode func([]byte) []byte) {
	start := len(f.bytes)
	f.bytes = encode(f.bytes)
	f.Records = append(f.Records, Record{revision, f.bytes[start:len(f.bytes):len(f.bytes)]})
}

// size returns the length of the blocks that the frame takes.
func (f *Frame) size() int64 { return padded(len(f.bytes) + tableEntry*len(f.Records)) }

// Bytes returns the length of all data of records.
func Bytes(records []Record) (n int64) {
	for _, r := range records {
		n += int64(len(r.Data))
	}
	return n
}

// After returns the records with revisions greater than the given one. Records are
// in order of revision.
func After(records []Record, revision uint64) []Record {
	for len(records) > 0 && records[0].Revision <= revision {
		records = records[1:]
	}
	return records
}

// Find returns the data of the record with a revision, nil if there is none.
// Records are in order of revision.
func Find(records []Record, revision uint64) []byte {
	if len(records) == 0 || revision < records[0].Revision {
		return nil
	}
	// Most often the revisions have no gap, and the index is known.
	i := revision - records[0].Revision
	if i >= uint64(len(records)) || records[i].Revision != revision {
		i = uint64(sort.Search(len(records), func(i int) bool { return records[i].Revision >= revision }))
	}
	if i < uint64(len(records)) && records[i].Revision == revision {
		return records[i].Data
	}
	return nil
}
