package bolt

import (
	"hash/crc32"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// The forms of a record. That of a value with parts has behind its attributes,
// and counted among them, where in the value the parts begin, and a checksum for
// those who read only the one or the other:
//
//	first 4 | second 4 | CRC32C for the first 4 | CRC32C for the second 4
//
// Each of these covers the revision, all that is in front of them, the value up
// to the first part, and its part: who verifies it need not touch the other one.
// The checksum at the end covers everything, as it does in the other form; with
// attributes that say themselves where they end, a program that does not know of
// parts reads the one form like the other.
const (
	formWhole = 0
	formParts = 1

	partsPlaces = 8
	partsBytes  = partsPlaces + 8
)

// parted reports whether the value has parts.
func (e *entry) parted() bool { return e.second > 0 }

// appendParts encodes the parts of e behind its attributes, in a record that
// begins at start.
func (e *entry) appendParts(dst []byte, start int) []byte {
	dst = be.AppendUint32(be.AppendUint32(dst, uint32(e.first)), uint32(e.second))
	before := e.sumBefore(dst[start:])
	return be.AppendUint32(be.AppendUint32(dst, e.firstSum(before)), e.secondSum(before))
}

// splitParts finds the parts of a record of that form, and reports whether it
// can be as it is.
func (e *entry) splitParts(form byte) bool {
	n := len(e.attributes) - partsBytes
	if form != formParts || n < 0 {
		return form == formWhole
	}
	parts := e.attributes[n:]
	e.attributes = e.attributes[:n]
	e.first, e.second = int(be.Uint32(parts)), int(be.Uint32(parts[4:]))
	return e.parted() && e.first <= e.second && e.second <= len(e.value)
}

// sumBefore begins the checksum of a part, with what is in front of it in the
// record. It starts from the revision, so that a record found in another's place
// has another sum.
func (e *entry) sumBefore(b []byte) uint32 {
	return crc32.Update(uint32(e.revision)^uint32(e.revision>>32), boltfile.Castagnoli, b)
}

// firstSum is the checksum for who reads the first part.
func (e *entry) firstSum(before uint32) uint32 {
	return crc32.Update(before, boltfile.Castagnoli, e.value[:e.second])
}

// secondSum is the checksum for who reads the second part.
func (e *entry) secondSum(before uint32) uint32 {
	return crc32.Update(crc32.Update(before, boltfile.Castagnoli, e.value[:e.first]), boltfile.Castagnoli, e.value[e.second:])
}

// parserFor returns the parser that verifies what a reader uses.
func parserFor(uses store.Part) parser {
	switch uses {
	case store.FirstPart:
		return parseFirst
	case store.SecondPart:
		return parseSecond
	}
	return parseRecord
}

// parseFirst is parseRecord for who reads only the first part of a value that
// has parts.
func parseFirst(revision uint64, b []byte) (entry, error) {
	return parsePart(revision, b, store.FirstPart)
}

// parseSecond is parseFirst for the second part.
func parseSecond(revision uint64, b []byte) (entry, error) {
	return parsePart(revision, b, store.SecondPart)
}

func parsePart(revision uint64, b []byte, uses store.Part) (entry, error) {
	e, err := splitRecord(revision, b)
	if err != nil || !e.parted() {
		return parseRecord(revision, b)
	}
	sums := recordHeader + len(e.key) + len(e.attributes) + partsPlaces
	before := e.sumBefore(b[:sums])
	intact := false
	if uses == store.FirstPart {
		intact = be.Uint32(b[sums:]) == e.firstSum(before)
	} else {
		intact = be.Uint32(b[sums+4:]) == e.secondSum(before)
	}
	if !intact {
		return entry{}, boltfile.ErrChecksum
	}
	return e, nil
}
