package columns

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"tidings.example/eventsvc/internal/store/boltfile"
)

const (
	// ChunkRows is how many rows of a column have a checksum of their own: what damage of a byte costs.
	ChunkRows = 512
	// groupChunks is how many chunks of a column are in one piece.
	groupChunks = 16
	// wholeWidth is the width of numbers that do not fit into fewer bits.
	wholeWidth = 64
	// mostWidth is the greatest other width: eight bytes have such a number wherever in the first one it begins.
	mostWidth = 56

	checksumBytes = 4
)

// salt tells the checksum of a chunk from that of any other, so that one in the place of another is found as damage.
func salt(table uint64, column, chunk int) uint64 {
	return bits.RotateLeft64(table, 24) ^ uint64(column)<<56 ^ uint64(chunk)
}

// appendChunk appends numbers: their width in bits, the least of them (uvarint), what each is beyond it, and the
// checksum.
func appendChunk(dst []byte, salt uint64, numbers []uint64) []byte {
	least, most := uint64(0), uint64(0)
	if len(numbers) > 0 {
		least, most = slices.Min(numbers), slices.Max(numbers)
	}
	width := bits.Len64(most - least)
	if width > mostWidth {
		width, least = wholeWidth, 0
	}
	start := len(dst)
	dst = binary.AppendUvarint(append(dst, byte(width)), least)
	body := len(dst)
	dst = append(dst, make([]byte, packedBytes(len(numbers), uint(width))+8)...)
	for i, n := range numbers {
		bit := uint(i) * uint(width)
		at := dst[body+int(bit/8):]
		if width == wholeWidth {
			binary.LittleEndian.PutUint64(at, n)
			continue
		}
		binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)|(n-least)<<(bit%8))
	}
	dst = dst[:body+packedBytes(len(numbers), uint(width))]
	return binary.BigEndian.AppendUint32(dst, boltfile.Checksum(salt, dst[start:]))
}

func packedBytes(numbers int, width uint) int { return (numbers*int(width) + 7) / 8 }

// An openChunk is a chunk that was verified, and of which numbers are read one by one.
type openChunk struct {
	number int // 1 beyond that of the chunk
	width  uint
	least  uint64
	packed []byte // and what lies behind it
}

// parseChunk verifies a chunk of so many numbers. behind is the chunk with what lies behind it.
func parseChunk(salt uint64, chunk, behind []byte, numbers int) (c openChunk, err error) {
	body := len(chunk) - checksumBytes
	if body < 2 || binary.BigEndian.Uint32(chunk[body:]) != boltfile.Checksum(salt, chunk[:body]) {
		return c, boltfile.ErrChecksum
	}
	c.width = uint(chunk[0])
	least, n := binary.Uvarint(chunk[1:body])
	if n <= 0 || c.width > mostWidth && c.width != wholeWidth || body-1-n != packedBytes(numbers, c.width) {
		return c, boltfile.ErrChecksum
	}
	c.least, c.packed = least, behind[1+n:]
	return c, nil
}

// at returns a number of the chunk.
func (c *openChunk) at(i int) uint64 {
	switch c.width {
	case 0:
		return c.least
	case wholeWidth:
		return binary.LittleEndian.Uint64(c.packed[8*i:])
	}
	bit := uint(i) * c.width
	return binary.LittleEndian.Uint64(c.packed[bit/8:])>>(bit%8)&(1<<c.width-1) + c.least
}

// equal removes the rows whose number is another one.
func (c *openChunk) equal(n uint64, rows *rowSet) {
	switch {
	case n < c.least || n > c.most():
		*rows = rowSet{}
	case c.width == 0:
	case c.width <= 16:
		c.equalSmall(n, rows)
	default:
		for row := range rows.all {
			if c.at(row) != n {
				rows.remove(row)
			}
		}
	}
}

// equalSmall is equal for numbers of which it compares as many at once as fit into eight bytes.
func (c *openChunk) equalSmall(n uint64, rows *rowSet) {
	src, width := padded(c.packed, ChunkRows, c.width), c.width
	ones := uint64(0) // the lowest bit of each of eight numbers, or of four
	for at := uint(0); at < 8*width && at+width <= 64 && (width <= 8 || at < 4*width); at += width {
		ones |= 1 << at
	}
	tops := ones << (width - 1)
	wanted, rest := ones*(n-c.least), tops-ones
	zeros := func(packed uint64) uint64 { // the highest bits of the numbers that are wanted
		x := packed ^ wanted
		return ^(x&^tops + rest | x) & tops
	}
	for i, word := range rows {
		if word == 0 {
			continue
		}
		kept := uint64(0)
		for row := uint(0); row < 64; row += 8 {
			at := (uint(i)*64 + row) / 8 * width // eight numbers are as many bytes as one has bits
			low, high := zeros(binary.LittleEndian.Uint64(src[at:])), uint64(0)
			if width > 8 {
				high = zeros(binary.LittleEndian.Uint64(src[at+width/2:]) >> (width % 2 * 4))
			}
			for ; low > 0; low &= low - 1 {
				kept |= 1 << (row + uint(bits.TrailingZeros64(low))/width)
			}
			for ; high > 0; high &= high - 1 {
				kept |= 1 << (row + 4 + uint(bits.TrailingZeros64(high))/width)
			}
		}
		rows[i] = word & kept
	}
}

// tally adds how often each number, less the least, is among all of the chunk, whose width is not over eight. Two
// arrays take turns, so that one addition need not wait for the other.
func (c *openChunk) tally(numbers int, counts *[2][256]uint32) {
	src := padded(c.packed, numbers, c.width)
	mask := uint64(1)<<c.width - 1
	for ; numbers > 0; numbers -= 8 { // eight numbers are as many bytes as one has bits
		packed := binary.LittleEndian.Uint64(src)
		for i := range min(8, numbers) {
			counts[i%2][uint8(packed&mask)]++
			packed >>= c.width
		}
		src = src[c.width:]
	}
}

// padded returns packed numbers with what is read behind them.
func padded(src []byte, numbers int, width uint) []byte {
	if need := packedBytes(numbers, width) + 8; len(src) < need {
		return append(make([]byte, 0, need), src...)[:need]
	}
	return src
}

// most returns a bound of the numbers.
func (c *openChunk) most() uint64 {
	if c.width == wholeWidth {
		return math.MaxUint64
	}
	return max(c.least, c.least+1<<c.width-1)
}

// read reads all numbers. It reports false if limit is not 0, and not greater than all of them.
func (c *openChunk) read(dst []uint64, limit int) bool {
	unpack(dst, c.packed, c.width, c.least)
	most := c.most()
	if limit == 0 || most < uint64(limit) || most > math.MaxInt64 {
		return limit == 0 || most < uint64(limit)
	}
	last, beyond := uint64(limit-1), uint64(0)
	for _, n := range dst {
		beyond |= last - n // has the highest bit set if n is greater
	}
	return beyond <= math.MaxInt64
}

// unpack reads numbers of a width. src may go on behind them.
func unpack(dst []uint64, src []byte, width uint, least uint64) {
	if width == 0 {
		for i := range dst {
			dst[i] = least
		}
		return
	}
	src = padded(src, len(dst), width)
	if width == wholeWidth {
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
		return
	}
	mask := uint64(1)<<width - 1
	for ; width <= 16 && len(dst) >= 8; dst = dst[8:] { // eight numbers are as many bytes as one has bits
		d := (*[8]uint64)(dst)
		low := binary.LittleEndian.Uint64(src)
		high := binary.LittleEndian.Uint64(src[width/2:]) >> (width % 2 * 4)
		src = src[width:]
		for i := range 4 {
			d[i], d[4+i] = low&mask+least, high&mask+least
			low, high = low>>width, high>>width
		}
	}
	bit := uint(0)
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint64(src[bit/8:])>>(bit%8)&mask + least
		bit += width
	}
}

// appendGroup appends the chunks of a piece between two copies of what says where each ends.
func appendGroup(dst []byte, salt uint64, chunks [][]byte) []byte {
	end := headBytes(len(chunks))
	var head []byte
	for _, c := range chunks {
		end += len(c)
		head = binary.BigEndian.AppendUint32(head, uint32(end))
	}
	head = binary.BigEndian.AppendUint32(head, boltfile.Checksum(salt, head))
	dst = append(dst, head...)
	for _, c := range chunks {
		dst = append(dst, c...)
	}
	return append(dst, head...)
}

func headBytes(chunks int) int { return 4*chunks + checksumBytes }

// chunkOf returns a chunk of a piece that has so many, and the same with what lies behind it.
func chunkOf(piece []byte, salt uint64, chunks, chunk int) (found, behind []byte, err error) {
	head, err := headOf(piece, salt, chunks)
	if err != nil {
		return nil, nil, err
	}
	return cutChunk(piece, head, chunk)
}

// headOf verifies where the chunks of a piece end, and returns that.
func headOf(piece []byte, salt uint64, chunks int) ([]byte, error) {
	size := headBytes(chunks)
	if len(piece) < 2*size {
		return nil, boltfile.ErrChecksum
	}
	for _, head := range [][]byte{piece[:size], piece[len(piece)-size:]} {
		if binary.BigEndian.Uint32(head[size-checksumBytes:]) == boltfile.Checksum(salt, head[:size-checksumBytes]) {
			return head, nil
		}
	}
	return nil, boltfile.ErrChecksum
}

// cutChunk returns a chunk of a piece whose head was verified.
func cutChunk(piece, head []byte, chunk int) (found, behind []byte, err error) {
	from, to := len(head), int(binary.BigEndian.Uint32(head[4*chunk:]))
	if chunk > 0 {
		from = int(binary.BigEndian.Uint32(head[4*chunk-4:]))
	}
	if from < len(head) || from > to || to > len(piece)-len(head) {
		return nil, nil, boltfile.ErrChecksum
	}
	return piece[from:to], piece[from:], nil
}
