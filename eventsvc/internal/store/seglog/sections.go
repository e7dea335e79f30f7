package seglog

import (
	"encoding/binary"
	"hash/crc32"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// The forms of a record. A record whose value has two sections has, behind its
// attributes and counted among them, the offsets in the value at which the sections
// begin, and a checksum for readers of only one of them:
//
//	first 4 | second 4 | CRC32C for the first 4 | CRC32C for the second 4
//
// Each covers the revision, everything in front of the checksums, the value up to the
// first section, and its own section: a reader that verifies it need not touch the other
// one. The checksum at the end of the record covers everything, in both forms. Attributes
// carry their length, so a program that does not know of sections reads both forms alike.
const (
	formWhole    = 0
	formSections = 1

	sectionOffsets = 8
	sectionsBytes  = sectionOffsets + 8
)

// sectioned reports whether the value has sections.
func (e *Entry) sectioned() bool { return e.second > 0 }

// appendSections appends what a record that begins at start has of its sections.
func (e *Entry) appendSections(dst []byte, start int) []byte {
	dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, uint32(e.first)), uint32(e.second))
	before := e.sumBefore(dst[start:])
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, e.firstSum(before)), e.secondSum(before))
}

// splitSections finds the sections of a record, and reports whether they are possible.
func (e *Entry) splitSections(form byte) bool {
	n := len(e.Attributes) - sectionsBytes
	if form != formSections || n < 0 {
		return form == formWhole
	}
	sections := e.Attributes[n:]
	e.Attributes = e.Attributes[:n]
	e.first, e.second = int(binary.BigEndian.Uint32(sections)), int(binary.BigEndian.Uint32(sections[4:]))
	return e.sectioned() && e.first <= e.second && e.second <= len(e.Value)
}

// sumBefore begins the checksum of a section with the bytes in front of it. It starts from
// the revision, so that a record in the place of another has another checksum.
func (e *Entry) sumBefore(b []byte) uint32 {
	return crc32.Update(uint32(e.Revision)^uint32(e.Revision>>32), boltfile.Castagnoli, b)
}

// firstSum returns the checksum for readers of the first section.
func (e *Entry) firstSum(before uint32) uint32 {
	return crc32.Update(before, boltfile.Castagnoli, e.Value[:e.second])
}

// secondSum returns the checksum for readers of the second section.
func (e *Entry) secondSum(before uint32) uint32 {
	return crc32.Update(crc32.Update(before, boltfile.Castagnoli, e.Value[:e.first]), boltfile.Castagnoli, e.Value[e.second:])
}

// ParserFor returns the parser that verifies what a reader uses of values.
func ParserFor(uses store.Part) Parser {
	switch uses {
	case store.FirstPart:
		return parseFirst
	case store.SecondPart:
		return parseSecond
	}
	return ParseRecord
}

// parseFirst is ParseRecord for readers of only the first section.
func parseFirst(revision uint64, b []byte) (Entry, error) {
	return parseSection(revision, b, store.FirstPart)
}

// parseSecond is ParseRecord for readers of only the second section.
func parseSecond(revision uint64, b []byte) (Entry, error) {
	return parseSection(revision, b, store.SecondPart)
}

func parseSection(revision uint64, b []byte, uses store.Part) (Entry, error) {
	e, err := SplitRecord(revision, b)
	if err != nil || !e.sectioned() {
		return ParseRecord(revision, b)
	}
	sums := recordHeader + len(e.Key) + len(e.Attributes) + sectionOffsets
	before := e.sumBefore(b[:sums])
	intact := false
	if uses == store.FirstPart {
		intact = binary.BigEndian.Uint32(b[sums:]) == e.firstSum(before)
	} else {
		intact = binary.BigEndian.Uint32(b[sums+4:]) == e.secondSum(before)
	}
	if !intact {
		return Entry{}, boltfile.ErrChecksum
	}
	return e, nil
}
