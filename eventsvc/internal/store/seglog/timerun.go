package seglog

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// A runEntry says how often something was observed within a second.
type runEntry struct {
	Series   uint32
	Second   uint8  // of the minute
	Revision uint64 // of the record that reports it, 0 if that is no longer held
	Count    int64  // 0 if the record reports nothing new
	Node     uint32 // one more than the number of its texts, 0: none is known
	Span     uint32 // so many seconds, from this one on, in which it was observed; 0: in this one
	Group    int    // of its series, where it was read
}

// The flags of an entry, above the bits of its second.
const (
	flagCount  = 1 << 6
	flagFolded = 1 << 7
	secondMask = flagCount - 1
)

// The marks are in front of an entry with a span, and of one with another node than the entry before. No second is like
// them.
const (
	spanMark = secondMask
	nodeMark = secondMask - 1
)

// runKeyLen is the length of a key.
const runKeyLen = 16

const (
	runChecksumLen = 4
	signBit        = 1 << 63
)

// minuteOf splits seconds since 1970.
func minuteOf(second int64) (minute int64, of uint8) {
	minute = second / 60
	if second%60 < 0 {
		minute--
	}
	return minute, uint8(second - minute*60)
}

// runKey returns the key of a run with its minute, and with a number that is no less than its
// revisions and that no other run of the minute has.
func runKey(minute int64, last uint64) []byte {
	return be.AppendUint64(be.AppendUint64(make([]byte, 0, runKeyLen), uint64(minute)^signBit), last)
}

// minuteOfKey returns the minute of a key, which may be damaged.
func minuteOfKey(k []byte) (int64, error) {
	if len(k) != runKeyLen {
		return 0, fmt.Errorf("%q is no key of a minute: %w", k, boltfile.ErrChecksum)
	}
	return int64(be.Uint64(k) ^ signBit), nil
}

// compareEntries is the order of entries within a run.
func compareEntries(a, b runEntry) int {
	return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Second, b.Second), cmp.Compare(a.Span, b.Span), cmp.Compare(a.Node, b.Node))
}

// mergeEntries puts the entries of one minute in the order of a run. It sums those of one series,
// second, span and node whose records are no longer held, and returns what is left.
func mergeEntries(entries []runEntry) []runEntry {
	slices.SortFunc(entries, compareEntries)
	kept := entries[:0]
	for _, e := range entries {
		if n := len(kept); e.Revision == 0 && n > 0 && compareEntries(kept[n-1], e) == 0 {
			kept[n-1].Count += e.Count
		} else {
			kept = append(kept, e)
		}
	}
	return slices.DeleteFunc(kept, func(e runEntry) bool { return e.Revision == 0 && e.Count == 0 })
}

// appendRun appends the value of a run. The entries, of which there is at least one, are
// in the order of [mergeEntries].
func appendRun(dst, key []byte, entries []runEntry) []byte {
	start, last := len(dst), be.Uint64(key[8:])
	first, low, high := last, uint8(math.MaxUint8), uint8(0)
	for _, e := range entries {
		if e.Revision != 0 {
			first = min(first, e.Revision)
		}
		low, high = min(low, e.Second), max(high, e.Second)
	}
	dst = append(binary.AppendUvarint(dst, last-first), low, high)
	var cell []byte
	series := uint32(0)
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].Series == entries[0].Series {
			n++
		}
		cell = appendEntries(cell[:0], first, entries[:n])
		dst = binary.AppendUvarint(dst, uint64(entries[0].Series-series))
		dst = binary.AppendUvarint(dst, uint64(len(cell)))
		dst = append(dst, cell...)
		series, entries = entries[0].Series, entries[n:]
	}
	return be.AppendUint32(dst, runChecksum(key, dst[start:]))
}

func appendEntries(dst []byte, first uint64, entries []runEntry) []byte {
	before, node := first, uint32(0)
	for _, e := range entries {
		if e.Node != node {
			dst = binary.AppendUvarint(append(dst, nodeMark), uint64(e.Node))
			node = e.Node
		}
		if e.Span > 0 {
			dst = binary.AppendUvarint(append(dst, spanMark), uint64(e.Span))
		}
		head := e.Second
		if e.Count != 1 {
			head |= flagCount
		}
		if e.Revision == 0 {
			dst = append(dst, head|flagFolded)
		} else {
			dst = binary.AppendUvarint(append(dst, head), e.Revision-before)
			before = e.Revision
		}
		if e.Count != 1 {
			dst = binary.AppendUvarint(dst, uint64(e.Count))
		}
	}
	return dst
}

func runChecksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, boltfile.Castagnoli, key), boltfile.Castagnoli, value)
}

// A minuteRun is a verified run. It shares the memory of its value.
type minuteRun struct {
	Minute    int64
	Low, High uint8  // its first and last second
	Last      uint64 // the number that ends the key: no revision of the run is greater
	first     uint64
	cells     []byte
}

var errRun = fmt.Errorf("a run of a minute: %w", boltfile.ErrChecksum)

// parseRun verifies a run, and opens it.
func parseRun(k, v []byte) (r minuteRun, err error) {
	if r.Minute, err = minuteOfKey(k); err != nil {
		return r, err
	}
	body := len(v) - runChecksumLen
	if body < 0 || be.Uint32(v[body:]) != runChecksum(k, v[:body]) {
		return r, errRun
	}
	r.Last = be.Uint64(k[8:])
	span, n := binary.Uvarint(v[:body])
	if n <= 0 || span > r.Last || body < n+2 || v[n] > v[n+1] || v[n+1] >= 60 {
		return r, errRun
	}
	r.first, r.Low, r.High, r.cells = r.Last-span, v[n], v[n+1], v[n+2:body]
	return r, nil
}

// Size returns about how many bytes the entries take.
func (r *minuteRun) Size() int { return len(r.cells) }

// Append appends the entries of the series that have a group, in the order of a run, with that group. After an error it
// may have appended some.
func (r *minuteRun) Append(dst []runEntry, group func(series uint32) (int, error)) ([]runEntry, error) {
	b, series := r.cells, uint64(0)
	for at := 0; at < len(b); {
		delta, length := uint64(0), uint64(0)
		if delta, at = cutNumber(b, at); delta > math.MaxUint32 || at >= len(b) {
			return dst, errRun
		}
		if length, at = cutNumber(b, at); at > len(b) || length > uint64(len(b)-at) {
			return dst, errRun
		}
		if series += delta; series > math.MaxUint32 {
			return dst, errRun
		}
		cell := b[at : at+int(length)]
		at += int(length)
		n, err := group(uint32(series))
		if err != nil {
			return dst, err
		}
		if n >= 0 {
			var ok bool
			if dst, ok = r.appendCell(dst, runEntry{Series: uint32(series), Group: n}, cell); !ok {
				return dst, errRun
			}
		}
	}
	return dst, nil
}

// appendCell appends the entries of one series, which is set in e. It reports false if they make no sense.
func (r *minuteRun) appendCell(dst []runEntry, e runEntry, b []byte) (_ []runEntry, ok bool) {
	revision := r.first
	for at := 0; at < len(b); dst = append(dst, e) {
		if b[at] == nodeMark {
			if at = takeMark(b, at, &e.Node); at >= len(b) {
				return dst, false
			}
		}
		if e.Span = 0; b[at] == spanMark {
			if at = takeMark(b, at, &e.Span); at >= len(b) {
				return dst, false
			}
		}
		head := b[at]
		at++
		if e.Second = head & secondMask; e.Second < r.Low || e.Second > r.High {
			return dst, false
		}
		if e.Revision, e.Count = 0, 1; head&flagFolded == 0 {
			var delta uint64
			if delta, at = cutNumber(b, at); delta > r.Last-revision || at > len(b) {
				return dst, false
			}
			revision += delta
			e.Revision = revision
		}
		if head&flagCount != 0 {
			var count uint64
			if count, at = cutNumber(b, at); count > math.MaxInt64 || at > len(b) {
				return dst, false
			}
			e.Count = int64(count)
		}
	}
	return dst, true
}

// cutNumber reads a number (uvarint), and returns where it ends, behind the end of b if it does not.
func cutNumber(b []byte, at int) (v uint64, end int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	return cutLongNumber(b, at)
}

// cutLongNumber is cutNumber for one of several bytes.
func cutLongNumber(b []byte, at int) (v uint64, end int) {
	if at+1 < len(b) && b[at+1] < 0x80 {
		return uint64(b[at])&0x7f | uint64(b[at+1])<<7, at + 2
	}
	v, n := binary.Uvarint(b[min(at, len(b)):])
	if n <= 0 {
		return 0, len(b) + 1
	}
	return v, at + n
}

// takeMark reads a mark and its value, and returns where they end, the end of b or behind it if they make no sense. A
// value that is set already is damage, because only changes are marked.
func takeMark(b []byte, at int, to *uint32) (end int) {
	value, end := cutNumber(b, at+1)
	if value == uint64(*to) || value > math.MaxUint32 {
		return len(b)
	}
	*to = uint32(value)
	return end
}

// allSeries is the group of every series.
func allSeries(uint32) (int, error) { return 0, nil }
