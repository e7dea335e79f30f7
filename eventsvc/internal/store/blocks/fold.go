package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// The forms of a record in a block.
const (
	formWhole  = 0
	formFolded = 1
)

const (
	checksumBytes = 4

	// A string that is shorter costs as much as its number.
	minString = 3
	// Numbers have one byte, and lengths two at most.
	maxStrings      = 256
	maxStringLength = 1<<14 - 1
)

// errContent reports a block whose content contradicts itself, although its checksums match.
var errContent = errors.New("the content of the block makes no sense")

// A folder folds records and unfolds them. It is reused for its memory.
type folder struct {
	strings   [][]byte // of the text, without backslashes
	unescaped []byte   // memory of those that have any
	first     [256]int // position in strings of the first one of a length, by its low byte; behind it by 1
	next      []int    // of the next one
}

// appendRecord appends a record in the form that compresses best.
func (f *folder) appendRecord(dst []byte, revision uint64, record []byte) []byte {
	n := len(record) - checksumBytes
	if n < 0 || binary.BigEndian.Uint32(record[n:]) != boltfile.Checksum(revision, record[:n]) {
		return append(append(dst, formWhole), record...)
	}
	body := record[:n]
	from, to := textOf(body)
	f.read(body[from:to])
	f.index()
	dst = append(dst, formFolded)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(from))
	dst = binary.AppendUvarint(dst, uint64(to-from))
	dst = append(dst, body[from:to]...)
	dst = f.appendRuns(dst, body[:from])
	return f.appendRuns(dst, body[to:])
}

// textOf returns where the first JSON object with a member is in a record, or nothing.
func textOf(body []byte) (from, to int) {
	from = bytes.Index(body, []byte(`{"`))
	if from < 0 {
		return 0, 0
	}
	depth := 0
	for at := from; at < len(body); at++ {
		switch body[at] {
		case '"':
			end := stringEnd(body, at+1)
			if end < 0 {
				return 0, 0
			}
			at = end
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return from, at + 1
			}
		}
	}
	return 0, 0
}

// stringEnd returns the position of the quotation mark that ends a string, or -1.
func stringEnd(text []byte, at int) int {
	for at < len(text) {
		end := bytes.IndexByte(text[at:], '"')
		if end < 0 {
			return -1
		}
		escape := bytes.IndexByte(text[at:at+end], '\\')
		if escape < 0 {
			return at + end
		}
		at += escape + 2
	}
	return -1
}

// read finds the strings of a text. It looks at eight bytes at a time for quotation marks and backslashes: there are few
// others between two of them, so that bytes.IndexByte takes longer to begin than to look.
func (f *folder) read(text []byte) {
	f.strings, f.unescaped = f.strings[:0], f.unescaped[:0]
	begin, escaped, next := -1, false, 0 // next: what is before it is escaped
	for base := 0; base < len(text); base += 8 {
		for found := marks(text[base:]); found != 0; found &= found - 1 {
			at := base + bits.TrailingZeros64(found)/8
			switch {
			case at < next:
			case text[at] == '\\' && begin >= 0:
				escaped, next = true, at+2
			case text[at] == '\\':
			case begin < 0:
				begin, escaped = at+1, false
			default:
				s := text[begin:at]
				if escaped {
					s = f.unescape(s)
				}
				if f.strings = append(f.strings, s); len(f.strings) == maxStrings {
					return
				}
				begin = -1
			}
		}
	}
}

// marks returns a word that has the highest bit of each of its bytes set that is a quotation mark or a backslash in the first
// eight bytes of a text.
func marks(text []byte) uint64 {
	var w uint64
	if len(text) >= 8 {
		w = binary.LittleEndian.Uint64(text)
	} else {
		for i, c := range text {
			w |= uint64(c) << (8 * i)
		}
	}
	return equal(w, '"') | equal(w, '\\')
}

// equal returns a word that has the highest bit of each of its bytes set that is c in w. No byte carries into the next one.
func equal(w uint64, c byte) uint64 {
	const (
		ones = 0x0101010101010101
		low  = 0x7f * ones
	)
	w ^= ones * uint64(c)
	return ^((w&low + low) | w | low)
}

// unescape returns a string without its backslashes, but for those that are escaped.
func (f *folder) unescape(s []byte) []byte {
	begin := len(f.unescaped)
	for at := 0; at < len(s); at++ {
		if s[at] == '\\' {
			at++ // there is another byte, or the quotation mark would be escaped
		}
		f.unescaped = append(f.unescaped, s[at])
	}
	return f.unescaped[begin:len(f.unescaped):len(f.unescaped)]
}

// index makes the strings ready for find.
func (f *folder) index() {
	clear(f.first[:])
	f.next = append(f.next[:0], make([]int, len(f.strings))...)
	for i := len(f.strings) - 1; i >= 0; i-- { // of equal ones, the first is found
		if n := len(f.strings[i]); n >= minString && n <= maxStringLength {
			f.next[i], f.first[byte(n)] = f.first[byte(n)], i+1
		}
	}
}

// find returns the number of the string that b begins with, behind its length, and how many
// bytes that is in all. It returns 0 bytes if there is none.
func (f *folder) find(b []byte) (number, size int) {
	length, at := int(b[0]), 1
	if length >= 0x80 {
		if len(b) < 2 || b[1] == 0 || b[1] >= 0x80 { // a length in another way than it is written
			return 0, 0
		}
		length, at = length&0x7f|int(b[1])<<7, 2
	}
	if length < minString || length > len(b)-at {
		return 0, 0
	}
	for i := f.first[byte(length)]; i != 0; i = f.next[i-1] {
		if s := f.strings[i-1]; len(s) == length && bytes.Equal(s, b[at:at+length]) {
			return i - 1, at + length
		}
	}
	return 0, 0
}

// appendRuns appends a part of a record, with the numbers of the strings that are in it.
func (f *folder) appendRuns(dst, part []byte) []byte {
	begin := 0
	for at := 0; at < len(part); {
		number, size := f.find(part[at:])
		if size == 0 {
			at++
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(at-begin))
		dst = append(append(dst, part[begin:at]...), byte(number))
		at += size
		begin = at
	}
	if begin == len(part) {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(part)-begin))
	return append(dst, part[begin:]...)
}

// A content is what is left to be read of an inflated block.
type content struct {
	b   []byte
	bad bool // something was not there, or too large
}

// number reads a number that is at most limit.
func (c *content) number(limit int) int {
	if len(c.b) > 0 && c.b[0] < 0x80 && int(c.b[0]) <= limit { // as most have
		v := int(c.b[0])
		c.b = c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 || v > uint64(limit) {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return int(v)
}

// take reads n bytes.
func (c *content) take(n int) []byte {
	if n > len(c.b) {
		c.bad = true
		return nil
	}
	taken := c.b[:n]
	c.b = c.b[n:]
	return taken
}

// appendUnfolded appends the record of which c has the form.
func (f *folder) appendUnfolded(dst []byte, revision uint64, c content) ([]byte, error) {
	switch form := c.take(1); {
	case c.bad:
	case form[0] == formWhole:
		return append(dst, c.b...), nil
	case form[0] == formFolded:
		return f.unfold(dst, revision, &c)
	}
	return nil, errContent
}

// unfold appends a folded record, and its checksum.
func (f *folder) unfold(dst []byte, revision uint64, c *content) ([]byte, error) {
	n := c.number(MaxBytes)
	from := c.number(n)
	length := c.number(n - from)
	text := c.take(length)
	if c.bad {
		return nil, errContent
	}
	f.read(text)
	begin := len(dst)
	dst = slices.Grow(dst, n+checksumBytes)
	dst = f.appendPart(dst, from, c)
	dst = append(dst, text...)
	dst = f.appendPart(dst, n-from-length, c)
	if c.bad || len(c.b) > 0 {
		return nil, errContent
	}
	return binary.BigEndian.AppendUint32(dst, boltfile.Checksum(revision, dst[begin:])), nil
}

// appendPart reads the runs of a part of n bytes.
func (f *folder) appendPart(dst []byte, n int, c *content) []byte {
	for end := len(dst) + n; len(dst) < end && !c.bad; {
		dst = append(dst, c.take(c.number(end-len(dst)))...)
		if len(dst) == end {
			break
		}
		number := c.take(1)
		if c.bad || int(number[0]) >= len(f.strings) {
			c.bad = true
			break
		}
		s := f.strings[number[0]]
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
		c.bad = len(dst) > end
	}
	return dst
}
