package seglog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// maxBlockBytes is the most bytes that a block inflates to.
const maxBlockBytes = 16 << 20

// fullBlockBytes is how many bytes of records make a block full, some thirty of them. To inflate one takes 20 µs.
// Blocks of 128 KiB are smaller in all by a sixth, and take 120 µs where one record of them is asked for.
const fullBlockBytes = 24 << 10

// blockWindow is that of the frames. It need not be larger than a full block.
const blockWindow = 32 << 10

// The forms of a record in a block.
const (
	formWhole = 0
	formBody  = 1 // without its checksum, which matched
	formEvent = 2 // without what its value says too: see packEntry
)

const checksumBytes = 4

// errBlockContent reports a block whose content contradicts itself, although its checksums match.
var errBlockContent = errors.New("the content of the block makes no sense")

// ErrTooLarge reports a record that is too large for a block.
var ErrTooLarge = errors.New("the record is too large for a block")

// A blockWriter makes blocks of records.
type blockWriter struct {
	encoder *zstd.Encoder
	covered uint64 // by the blocks that are finished
	last    uint64 // revision that was added last
	size    int    // of the records that were added to the block
	began   int64  // time of the first record that was added, in nanoseconds since 1970
	content []byte
	packed  []byte
}

// newBlockWriter returns a blockWriter of the records behind a revision.
func newBlockWriter(after uint64) (*blockWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(blockWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true))
	return &blockWriter{encoder: encoder, covered: after, last: after}, err
}

// Close gives up the memory of the encoder.
func (w *blockWriter) Close() error { return w.encoder.Close() }

// Fits reports whether a record fits into the block beside those that were added.
func (w *blockWriter) Fits(record []byte) bool {
	return w.size == 0 || w.size+len(record) <= fullBlockBytes
}

// Add adds the record of a revision that is greater than those before.
func (w *blockWriter) Add(revision uint64, record []byte) error {
	if revision <= w.last {
		return fmt.Errorf("revision %d behind %d", revision, w.last)
	}
	if len(w.content)+len(record)+1+2*binary.MaxVarintLen64 > maxBlockBytes {
		return ErrTooLarge
	}
	if w.size == 0 && len(w.content) == 0 {
		w.began = 0
		if e, err := splitEntry(revision, record); err == nil {
			w.began = e.Time.UnixNano()
		}
		w.content = binary.AppendVarint(w.content, w.began)
	}
	form, stored := w.form(revision, record)
	w.content = binary.AppendUvarint(w.content, revision-w.last)
	w.content = binary.AppendUvarint(w.content, uint64(1+len(stored)))
	w.content = append(append(w.content, form), stored...)
	w.last = revision
	w.size += len(record)
	return nil
}

// form returns the smallest form of a record.
func (w *blockWriter) form(revision uint64, record []byte) (form byte, stored []byte) {
	n := len(record) - checksumBytes
	if n < 0 || binary.BigEndian.Uint32(record[n:]) != boltfile.Checksum(revision, record[:n]) {
		return formWhole, record
	}
	var ok bool
	if w.packed, ok = packEntry(w.packed[:0], w.began, revision, record[:n]); ok {
		return formEvent, w.packed
	}
	return formBody, record[:n]
}

// Covered returns the revision up to which the finished blocks cover.
func (w *blockWriter) Covered() uint64 { return w.covered }

// Last returns the revision that was added last, or the one that is covered.
func (w *blockWriter) Last() uint64 { return w.last }

// Finish returns the block of the records that were added. It covers the revisions behind
// the block before, up to the given one.
func (w *blockWriter) Finish(last uint64) (key, value []byte) {
	key = binary.BigEndian.AppendUint64(nil, last)
	value = binary.AppendUvarint(make([]byte, 0, len(w.content)/4), last-w.covered-1)
	value = w.encoder.EncodeAll(w.content, value)
	value = binary.BigEndian.AppendUint32(value, boltfile.Checksum(last, value))
	w.Skip(last)
	return key, value
}

// Skip has the next block begin behind a revision. No records must have been added.
func (w *blockWriter) Skip(last uint64) {
	w.covered, w.last, w.size, w.content = last, last, 0, w.content[:0]
}

// An inflatedBlock is the records of a block.
type inflatedBlock struct {
	First, Last uint64 // the revisions that it covers
	records     []blockRecord
	began       int64
	content     []byte

	users  int  // of a block from a blockCache, whose mutex guards both fields
	cached bool // the blockCache keeps it
}

// blockRecord is where the form of a record begins and ends in a block.
type blockRecord struct {
	revision   uint64
	begin, end uint32
}

// Parse verifies a block and inflates it into b. It reuses the memory of b, and shares none with key and value. After an error
// b has no records.
func (b *inflatedBlock) Parse(key, value []byte) error {
	b.records = b.records[:0]
	if len(key) != 8 || len(value) < checksumBytes {
		return boltfile.ErrChecksum
	}
	last, n := binary.BigEndian.Uint64(key), len(value)-checksumBytes
	if binary.BigEndian.Uint32(value[n:]) != boltfile.Checksum(last, value[:n]) {
		return boltfile.ErrChecksum
	}
	c := blockContent{b: value[:n]}
	before := c.number(math.MaxInt)
	if c.bad || uint64(before) >= last {
		return errBlockContent
	}
	var err error
	if b.content, err = inflate(b.content[:0], c.b); err != nil {
		return err
	}
	b.First, b.Last = last-uint64(before), last
	if err = b.split(); err != nil {
		b.records = b.records[:0]
	}
	return err
}

// zstdDecoder inflates frames, as many at a time as there are processors.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlockBytes))
})

// inflate appends the content of a frame.
func inflate(dst, frame []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return dst, fmt.Errorf("the frame of the block: %w", err)
	}
	if !h.HasFCS || h.FrameContentSize > maxBlockBytes {
		return dst, fmt.Errorf("the frame of the block claims to be of %d bytes, and %d are the most", h.FrameContentSize, maxBlockBytes)
	}
	d, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	inflated, err := d.DecodeAll(frame, slices.Grow(dst, int(h.FrameContentSize)))
	if err != nil {
		return dst, fmt.Errorf("the frame of the block: %w", err)
	}
	return inflated, nil
}

// split finds the records.
func (b *inflatedBlock) split() error {
	if len(b.content) == 0 {
		return nil
	}
	began, n := binary.Varint(b.content)
	if n <= 0 {
		return errBlockContent
	}
	b.began = began
	c := blockContent{b: b.content[n:]}
	revision := b.First - 1
	b.records = slices.Grow(b.records, 40)
	for len(c.b) > 0 {
		behind := c.number(math.MaxInt)
		n := c.number(len(c.b))
		begin := len(b.content) - len(c.b)
		c.take(n)
		if c.bad || n == 0 || b.content[begin] > formEvent || behind == 0 || uint64(behind) > b.Last-revision {
			return errBlockContent
		}
		revision += uint64(behind)
		b.records = append(b.records, blockRecord{revision, uint32(begin), uint32(begin + n)})
	}
	return nil
}

// Len returns the number of records.
func (b *inflatedBlock) Len() int { return len(b.records) }

// Revision returns the revision of the record at a position.
func (b *inflatedBlock) Revision(i int) uint64 { return b.records[i].revision }

// Search returns the position of the record of a revision or, if there is none, of the next
// one.
func (b *inflatedBlock) Search(revision uint64) (i int, found bool) {
	return slices.BinarySearchFunc(b.records, revision, func(p blockRecord, revision uint64) int { return cmp.Compare(p.revision, revision) })
}

// Append appends the record at a position. Of one that makes no sense it appends nothing, which is no record.
func (b *inflatedBlock) Append(dst []byte, i int) []byte {
	from := len(dst)
	dst, whole, ok := b.appendBody(dst, i)
	if !whole && ok {
		dst = binary.BigEndian.AppendUint32(dst, boltfile.Checksum(b.records[i].revision, dst[from:]))
	}
	return dst
}

// appendBody appends the record at a position: all of it, or what is in front of its checksum.
func (b *inflatedBlock) appendBody(dst []byte, i int) (_ []byte, whole, ok bool) {
	p := b.records[i]
	form, stored := b.content[p.begin], b.content[p.begin+1:p.end]
	if form == formEvent {
		dst, ok = unpackEntry(dst, b.began, p.revision, stored)
		return dst, false, ok
	}
	return append(dst, stored...), form == formWhole, true
}

// A blockContent is what is left to be read of an inflated block.
type blockContent struct {
	b   []byte
	bad bool // something was not there, or too large
}

// number reads a number that is at most limit.
func (c *blockContent) number(limit int) int {
	v, n := binary.Uvarint(c.b)
	if n <= 0 || v > uint64(limit) {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return int(v)
}

// take reads n bytes.
func (c *blockContent) take(n int) []byte {
	if n > len(c.b) {
		c.bad = true
		return nil
	}
	taken := c.b[:n]
	c.b = c.b[n:]
	return taken
}

// Bytes returns how much memory the block takes.
func (b *inflatedBlock) Bytes() int64 {
	const each = 16
	return int64(cap(b.content) + each*cap(b.records))
}
