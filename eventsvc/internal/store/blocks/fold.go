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
	text      []byte
	escaped   bool                   // the text has a backslash
	marks     [2 * maxStrings]uint32 // positions of the quotation marks in front of and behind the strings of the text
	count     int                    // of the strings
	unescaped []byte                 // memory of those with backslashes
	strings   [][]byte               // for find: all of them
	first     [256]int               // position in strings of the first one of a length, by its low byte; behind it by 1
	next      []int                  // of the next one
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

// read finds the strings of a text.
func (f *folder) read(text []byte) {
	f.text, f.unescaped = text, f.unescaped[:0]
	escape := indexFrom(text, 0, '\\') // the next backslash
	f.escaped = escape < len(text)
	n := 0
	for base := 0; base < len(text); base += 64 {
		for found := quotes(text[base:]); found != 0; found &= found - 1 {
			at := base + bits.TrailingZeros64(found)
			if escape < at {
				escaped := false
				for escape < at {
					inString := n % 2
					escaped = inString != 0 && escape == at-1
					escape = indexFrom(text, escape+1+inString, '\\')
				}
				if escaped {
					continue
				}
			}
			if f.marks[n] = uint32(at); n == len(f.marks)-1 {
				f.count = maxStrings
				return
			}
			n++
		}
	}
	f.count = n / 2
}

// indexFrom returns where the next c is in a text, at from or behind it, or the length of the text.
func indexFrom(text []byte, from int, c byte) int {
	if from < len(text) {
		if at := bytes.IndexByte(text[from:], c); at >= 0 {
			return from + at
		}
	}
	return len(text)
}

// quotes returns which of the first 64 bytes of a text are quotation marks, the first one as the lowest bit. It looks at
// eight bytes at a time: the marks are so near to each other that bytes.IndexByte takes longer to begin than to look.
func quotes(text []byte) (found uint64) {
	if len(text) < 64 {
		var padded [64]byte
		copy(padded[:], text)
		text = padded[:]
	}
	for i := 0; i < 64; i += 8 {
		const (
			ones = 0x0101010101010101
			low  = 0x7f * ones
			row  = 0x0102040810204080 // moves the lowest bits of the eight bytes into the highest byte
		)
		w := binary.LittleEndian.Uint64(text[i:]) ^ '"'*ones
		zeros := ^(w&low + low | w | low) // the highest bit of each byte that is zero; no byte carries into the next one
		found |= zeros >> 7 * row >> 56 << i
	}
	return found
}

// string returns a string of the text that was read, by its number, without its backslashes.
func (f *folder) string(number int) []byte {
	s := f.text[f.marks[2*number]+1 : f.marks[2*number+1]]
	if f.escaped && bytes.IndexByte(s, '\\') >= 0 {
		return f.unescape(s)
	}
	return s
}

// unescape returns a string without its backslashes, but for those that are escaped.
func (f *folder) unescape(s []byte) []byte {
	begin, escape := len(f.unescaped), indexFrom(s, 0, '\\')
	f.unescaped = append(f.unescaped, s[:escape]...)
	for escape < len(s) {
		at := escape + 1 // there is another byte, or the quotation mark would be escaped
		escape = indexFrom(s, at+1, '\\')
		f.unescaped = append(f.unescaped, s[at:escape]...)
	}
	return f.unescaped[begin:len(f.unescaped):len(f.unescaped)]
}

// index makes the strings ready for find.
func (f *folder) index() {
	f.strings = f.strings[:0]
	for number := range f.count {
		f.strings = append(f.strings, f.string(number))
	}
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

// appendUnfolded appends the record of which c has the form, without its checksum unless it is whole.
func (f *folder) appendUnfolded(dst []byte, c content) (record []byte, whole bool, err error) {
	switch form := c.take(1); {
	case c.bad:
	case form[0] == formWhole:
		return append(dst, c.b...), true, nil
	case form[0] == formFolded:
		record, err = f.unfold(dst, &c)
		return record, false, err
	}
	return nil, false, errContent
}

// unfold appends a folded record.
func (f *folder) unfold(dst []byte, c *content) ([]byte, error) {
	n := c.number(MaxBytes)
	from := c.number(n)
	length := c.number(n - from)
	text := c.take(length)
	if c.bad {
		return nil, errContent
	}
	f.read(text)
	dst = slices.Grow(dst, n+checksumBytes)
	dst = f.appendPart(dst, from, c)
	dst = append(dst, text...)
	dst = f.appendPart(dst, n-from-length, c)
	if c.bad || len(c.b) > 0 {
		return nil, errContent
	}
	return dst, nil
}

// appendPart reads the runs of a part of n bytes.
func (f *folder) appendPart(dst []byte, n int, c *content) []byte {
	for end := len(dst) + n; len(dst) < end && !c.bad; {
		dst = append(dst, c.take(c.number(end-len(dst)))...)
		if len(dst) == end {
			break
		}
		number := c.take(1)
		if c.bad || int(number[0]) >= f.count {
			c.bad = true
			break
		}
		s := f.string(int(number[0]))
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
		c.bad = len(dst) > end
	}
	return dst
}
