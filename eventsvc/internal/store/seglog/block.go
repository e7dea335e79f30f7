package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// maxBlockBytes is the most bytes that a frame of a block inflates to.
const maxBlockBytes = 16 << 20

// A block is full when it has so many records, or so many bytes of them.
const (
	fullBlockRecords = 128
	fullBlockBytes   = 160 << 10
)

// blockWindow is the window of the frames, most of which are smaller.
const blockWindow = 128 << 10

// The forms of a record in a block. Others are the number of a template + formTemplate.
const (
	formWhole    = 0
	formBody     = 1 // without its checksum, which matched
	formTemplate = 2
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
	records []addedRecord
	bytes   []byte // of the records

	notes     noteWriter
	cells     cellWriter
	template  templateWriter
	numbers   map[string]uint64 // of the templates
	templates []byte
	content   []byte
	again     inflatedBlock // which is compared with the records
	room      []byte
}

// addedRecord is a record that was added to a block.
type addedRecord struct {
	revision uint64
	end      int  // in the bytes of the block writer
	apart    bool // it is not written with a template
}

// newBlockWriter returns a blockWriter of the records behind a revision.
func newBlockWriter(after uint64) (*blockWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(blockWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true))
	w := &blockWriter{encoder: encoder, covered: after, last: after, numbers: map[string]uint64{}}
	w.cells.words = map[string]uint64{}
	w.template.cells = &w.cells
	return w, err
}

// Close gives up the memory of the encoder.
func (w *blockWriter) Close() error { return w.encoder.Close() }

// Fits reports whether a record fits into the block beside those that were added.
func (w *blockWriter) Fits(record []byte) bool {
	n := len(w.records)
	return n == 0 || n < fullBlockRecords && len(w.bytes)+len(record) <= fullBlockBytes
}

// blockOverhead is the most that a block has in its frame beside one record.
const blockOverhead = 64

// Add adds the record of a revision that is greater than those before.
func (w *blockWriter) Add(revision uint64, record []byte) error {
	if revision <= w.last {
		return fmt.Errorf("revision %d behind %d", revision, w.last)
	}
	if len(w.bytes)+len(record)+blockOverhead*(len(w.records)+1) > maxBlockBytes {
		return ErrTooLarge
	}
	w.bytes = append(w.bytes, record...)
	w.records = append(w.records, addedRecord{revision: revision, end: len(w.bytes)})
	w.last = revision
	return nil
}

// added returns a record that was added.
func (w *blockWriter) added(i int) []byte {
	from := 0
	if i > 0 {
		from = w.records[i-1].end
	}
	return w.bytes[from:w.records[i].end]
}

// Covered returns the revision up to which the finished blocks cover.
func (w *blockWriter) Covered() uint64 { return w.covered }

// Last returns the revision that was added last, or the one that is covered.
func (w *blockWriter) Last() uint64 { return w.last }

// Finish returns the block of the records that were added. It covers the revisions behind
// the block before, up to the given one. A record that does not read back byte for byte is written whole.
func (w *blockWriter) Finish(last uint64) (key, value []byte, err error) {
	key = recordKey(last)
	for {
		value = w.encode(last)
		switch same, err := w.compare(key, value); {
		case err != nil:
			return nil, nil, fmt.Errorf("the block up to revision %d: %w", last, err)
		case same:
			w.Skip(last)
			return key, value, nil
		}
	}
}

// compare reports whether all records of a block read back byte for byte. It marks those that do not.
func (w *blockWriter) compare(key, value []byte) (same bool, err error) {
	same = true
	err = w.again.Parse(key, value)
	for i := range w.records {
		if err == nil {
			record, _ := w.again.Append(w.room[:0], i)
			if w.room = record.whole(w.again.Revision(i)); bytes.Equal(w.room, w.added(i)) {
				continue
			}
			if w.records[i].apart {
				return false, errBlockContent
			}
		}
		same, w.records[i].apart = same && w.records[i].apart, true
	}
	if !same {
		return false, nil
	}
	return true, err
}

// encode makes a block of the records.
func (w *blockWriter) encode(last uint64) []byte {
	w.cells.reset()
	w.notes.reset(w.covered)
	clear(w.numbers)
	w.templates = w.templates[:0]
	for i := range w.records {
		w.write(i)
	}
	value := binary.AppendUvarint(make([]byte, 0, len(w.bytes)/8+64), last-w.covered-1)
	value = w.frame(value, w.notes.content())
	content := binary.AppendUvarint(w.content[:0], uint64(len(w.cells.uuids)/16))
	content = binary.AppendUvarint(content, uint64(len(w.numbers)))
	content = append(content, w.templates...)
	for _, cells := range w.cells.columns {
		content = appendText(content, cells)
	}
	w.content = content
	value = w.frame(value, content)
	value = append(append(value, w.cells.uuids...), w.cells.behind...)
	return be.AppendUint32(value, boltfile.Checksum(last, value))
}

// frame appends the length of a frame, and the frame.
func (w *blockWriter) frame(dst, content []byte) []byte {
	w.room = w.encoder.EncodeAll(content, w.room[:0])
	return appendText(dst, w.room)
}

// write writes the note and the cells of a record.
func (w *blockWriter) write(i int) {
	revision, record := w.records[i].revision, w.added(i)
	e, damaged := parseEntry(revision, record)
	w.notes.add(revision, &e, damaged)
	if damaged == nil && !w.records[i].apart {
		if a, ok := splitAttributes(e.Attributes); ok && hasTemplate(&e) {
			w.event(&e, a)
			return
		}
	}
	w.records[i].apart = true
	form := uint64(formWhole)
	if n := len(record) - checksumBytes; n >= 0 && be.Uint32(record[n:]) == boltfile.Checksum(revision, record[:n]) {
		form, record = formBody, record[:n]
	}
	w.cells.number(columnForm, form)
	w.cells.columns[columnRecord] = appendText(w.cells.columns[columnRecord], record)
}

// hasTemplate reports whether an entry can be written with a template.
func hasTemplate(e *Entry) bool {
	return e.Kind != Deleted && e.Previous <= e.Revision && len(e.Value) > 0 && eventMessage.sound(e.Value[1:])
}

// event writes an event with a template.
func (w *blockWriter) event(e *Entry, a attributeParts) {
	c := &w.cells
	c.parts = cutText(w.notes.text())
	previous := uint64(0)
	if e.Previous > 0 {
		previous = e.Revision - e.Previous
	}
	c.time(columnTime, e.Time.UnixNano())
	c.number(columnPrevious, previous)
	if w.room, _ = codec.AppendLabels(w.room[:0], e.Value); bytes.Equal(w.room, a.labels) {
		a.labels = nil
	}
	c.text(columnLabels, a.labels)
	c.time(columnSeen, a.seen)
	c.text(columnCounts, a.counts)
	c.mark(a.version, a.marked)
	w.template.steps = append(w.template.steps[:0], byte(e.Kind))
	w.template.value(e.Value)
	number, known := w.numbers[string(w.template.steps)]
	if !known {
		number = uint64(len(w.numbers))
		w.numbers[string(w.template.steps)] = number
		w.templates = appendText(w.templates, w.template.steps)
	}
	c.number(columnForm, number+formTemplate)
}

// attributeParts are the parts of attributes after the fields.
type attributeParts struct {
	labels  []byte
	seen    int64  // time of the occurrence, in microseconds
	counts  []byte // the rest of the attributes, without the mark
	version int64  // the version in a mark that has nothing else
	marked  bool   // there is such a mark
}

// markPrefix precedes the version in such a mark.
var markPrefix = []byte{0, 0}

// textParts are the parts of a text of [event.AppendText].
type textParts struct{ note, reason, object, node []byte }

// cutText splits a text.
func cutText(text []byte) (p textParts) {
	var rest []byte
	if p.note, rest = event.CutNote(text); len(rest) > 0 {
		p.reason, rest, _ = bytes.Cut(rest[1:], []byte{0})
		p.object, p.node, _ = bytes.Cut(rest, []byte{0})
	}
	return p
}

// find returns the word for the part that is the given text.
func (p *textParts) find(text []byte) (part byte, ok bool) {
	switch {
	case len(text) == 0:
		return 0, false
	case bytes.Equal(text, p.reason):
		return wordReason, true
	case bytes.Equal(text, p.object):
		return wordObject, true
	case bytes.Equal(text, p.node):
		return wordNode, true
	}
	return 0, false
}

// of returns the part that a word is for.
func (p *textParts) of(word uint32) []byte {
	switch word {
	case wordReason:
		return p.reason
	case wordObject:
		return p.object
	}
	return p.node
}

// splitAttributes reports false if there is no occurrence.
func splitAttributes(a []byte) (p attributeParts, ok bool) {
	c := blockContent{b: a}
	for range event.NumFields {
		c.take(c.number(len(c.b)))
	}
	from := c.b
	for range 2 * c.number(len(c.b)) {
		c.take(c.number(len(c.b)))
	}
	p.labels = from[:len(from)-len(c.b)]
	seen, n := binary.Varint(c.b)
	if c.bad || n <= 0 {
		return p, false
	}
	p.seen, p.counts = seen, c.b[n:]
	c.b = p.counts
	for range 4 {
		c.number(math.MaxInt)
	}
	counts := p.counts[:len(p.counts)-len(c.b)]
	if version, ok := bytes.CutPrefix(c.b, markPrefix); ok && !c.bad {
		if v, n := binary.Uvarint(version); n > 0 && n == len(version) && v <= math.MaxInt64 {
			p.counts, p.version, p.marked = counts, int64(v), true
		}
	}
	return p, true
}

// Skip has the next block begin behind a revision. It forgets the records that were added: they are finished, or there
// are none.
func (w *blockWriter) Skip(last uint64) {
	w.covered, w.last, w.records, w.bytes = last, last, w.records[:0], w.bytes[:0]
}

// An inflatedBlock is the records of a block.
type inflatedBlock struct {
	notes     notesFrame
	rows      []blockRow
	cells     []uint32     // of the rows, see cellIsUUID
	words     []cellWordAt // the new ones
	templates []template
	content   []byte
	behind    []byte

	users  int  // of a block from a blockCache, whose mutex guards both fields
	cached bool // the blockCache keeps it
}

// blockRow is where a record is in a block.
type blockRow struct {
	form    uint64
	cells   int // the first one of those of the block
	behind  int
	running runningCells
}

// Parse verifies a block and inflates it into b. It reuses the memory of b, and shares none with key and value. After
// an error b has no records.
func (b *inflatedBlock) Parse(key, value []byte) error {
	err := b.parse(key, value)
	if err != nil {
		b.rows = b.rows[:0]
		b.notes.forget()
	}
	return err
}

func (b *inflatedBlock) parse(key, value []byte) error {
	b.rows, b.cells = b.rows[:0], b.cells[:0]
	c, err := b.notes.parse(key, value)
	if err != nil {
		return err
	}
	frame := c.take(c.number(len(c.b)))
	if c.bad {
		return errBlockContent
	}
	if b.content, err = inflate(b.content[:0], frame); err != nil {
		return err
	}
	b.behind = append(b.behind[:0], c.b...)
	return b.split()
}

// First returns the first revision that the block covers.
func (b *inflatedBlock) First() uint64 { return b.notes.first }

// Last returns the last revision that the block covers.
func (b *inflatedBlock) Last() uint64 { return b.notes.last }

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

// split finds the templates and the cells of the records.
func (b *inflatedBlock) split() error {
	c := blockContent{b: b.content}
	uuids := c.number(len(b.behind) / 16)
	n := c.number(len(c.b))
	b.templates = slices.Grow(b.templates[:0], n)[:n]
	for i := range b.templates {
		if t := c.take(c.number(len(c.b))); !parseTemplate(&b.templates[i], t) {
			return errBlockContent
		}
	}
	b.words = b.words[:0]
	w := cellWalk{block: b, uuids: uint32(uuids), behind: 16 * uuids}
	for i := range w.at {
		n := c.number(len(c.b))
		w.at[i] = len(b.content) - len(c.b)
		c.take(n)
		w.end[i] = len(b.content) - len(c.b)
	}
	for range b.notes.revisions {
		if !w.row() {
			return errBlockContent
		}
	}
	if c.bad || len(c.b) > 0 || w.at != w.end || w.uuid != w.uuids || w.behind != len(b.behind) {
		return errBlockContent
	}
	return nil
}

// A cellWordAt is the cell of a word, and how many bytes the word has.
type cellWordAt struct{ at, bytes uint32 }

// A cellWalk goes over the cells of a block.
type cellWalk struct {
	block   *inflatedBlock
	at, end [numColumns]int
	before  [numColumns]cellWordAt // the word before
	uuid    uint32                 // the next one
	uuids   uint32                 // number of them
	behind  int
	running runningCells
	made    int // about how many bytes the records have that take no room in the block
	bad     bool
}

// make counts bytes of records that take no room in the block. They are bounded, as its content is.
func (w *cellWalk) make(n int) {
	w.made += n
	w.bad = w.bad || w.made > maxBlockBytes
}

// row goes over the cells of the next record. It reports false if they make no sense.
func (w *cellWalk) row() bool {
	b := w.block
	row := blockRow{form: w.number(columnForm), cells: len(b.cells), behind: w.behind, running: w.running}
	switch {
	case row.form < formTemplate:
		w.cell(columnRecord)
	case row.form-formTemplate >= uint64(len(b.templates)):
		return false
	default:
		t := &b.templates[row.form-formTemplate]
		w.make(t.size)
		b.cells = slices.Grow(b.cells, len(t.cells))
		for _, c := range t.cells {
			w.cell(c)
		}
	}
	b.rows = append(b.rows, row)
	return !w.bad
}

// number reads a number from a column.
func (w *cellWalk) number(c column) uint64 {
	at := w.at[c]
	if at < w.end[c] && w.block.content[at] < 0x80 {
		w.at[c] = at + 1
		return uint64(w.block.content[at])
	}
	v, n := binary.Uvarint(w.block.content[at:w.end[c]])
	if n <= 0 {
		w.bad = true
		return 0
	}
	w.at[c] = at + n
	return v
}

// text passes over a text of a column.
func (w *cellWalk) text(c column, n uint64) {
	if n > uint64(w.end[c]-w.at[c]) {
		w.bad = true
		return
	}
	w.at[c] += int(n)
}

// pass passes over bytes behind the frame.
func (w *cellWalk) pass(n uint64) {
	if n > uint64(len(w.block.behind)-w.behind) {
		w.bad = true
		return
	}
	w.behind += int(n)
}

// cell notes where the next cell of a column is, and passes over it.
func (w *cellWalk) cell(c column) {
	at := uint32(w.at[c])
	switch kind := cellKinds[c]; kind {
	case cellNone:
	case cellWord:
		at = w.word(c, w.number(c))
	default:
		w.plain(c, kind, w.number(c))
	}
	w.block.cells = append(w.block.cells, at)
}

// plain skips the bytes after the number of a cell that is no word.
func (w *cellWalk) plain(c column, kind cellKind, v uint64) {
	switch kind {
	case cellText:
		w.text(c, v)
	case cellNanos:
		if v == 2 {
			w.pass(3)
		}
	case cellTime:
		from := w.behind
		if w.pass(v); w.bad || v > 8 {
			w.bad = true
			return
		}
		*w.running.of(c) += difference(w.block.behind[from:w.behind])
	case cellMark:
		if v > 0 {
			w.running.mark += unzigzag(v - 1)
		}
	case cellName:
		switch {
		case v == 0:
			w.text(c, w.number(c))
		case v <= 9:
			w.pass(v - 1)
		case v > nameCopy && v <= nameCopy+9:
			w.pass(v - nameCopy - 1 + nameDigits/2)
		default:
			w.bad = true
		}
	}
}

// word skips the bytes after the number of a word, and returns its cell.
func (w *cellWalk) word(c column, v uint64) uint32 {
	b := w.block
	switch v {
	case wordNew:
		at := w.at[c]
		n := w.number(c)
		w.text(c, n)
		w.before[c] = cellWordAt{uint32(at), uint32(n)}
		b.words = append(b.words, w.before[c])
		return uint32(at)
	case wordUUID:
		w.before[c] = cellWordAt{cellIsUUID + w.uuid, uuidText}
		b.words = append(b.words, w.before[c])
		w.uuid++
		w.bad = w.bad || w.uuid > w.uuids
		return w.before[c].at
	case wordDecimal:
		at := uint32(w.at[c])
		w.running.version += unzigzag(w.number(c))
		return cellIsDecimal + at
	case wordReason, wordObject, wordNode:
		w.make(len(b.notes.note(len(b.rows))))
		return cellIsPart + uint32(v)
	case wordBefore:
		w.bad = w.bad || w.before[c].at == 0
	default:
		if v-wordKnown >= uint64(len(b.words)) {
			w.bad = true
			return 0
		}
		w.before[c] = b.words[v-wordKnown]
	}
	w.make(int(w.before[c].bytes))
	return w.before[c].at
}

// difference returns the number in some bytes, the lowest one first.
func difference(b []byte) int64 {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return unzigzag(v)
}

// Len returns the number of records.
func (b *inflatedBlock) Len() int { return len(b.rows) }

// Revision returns the revision of the record at a position.
func (b *inflatedBlock) Revision(i int) uint64 { return b.notes.revisions[i] }

// Search returns the position of the record of a revision or, if there is none, of the next
// one.
func (b *inflatedBlock) Search(revision uint64) (i int, found bool) {
	return slices.BinarySearch(b.notes.revisions[:len(b.rows)], revision)
}

// Append appends the record at a position to dst, which has no bytes. It reports false if the record makes no sense.
func (b *inflatedBlock) Append(dst []byte, i int) (_ recordBytes, ok bool) {
	row := &b.rows[i]
	if row.form < formTemplate {
		return recordBytes{append(dst, textOf(b.content[b.cells[row.cells]:])...), row.form != formWhole}, true
	}
	dst, ok = b.appendEvent(dst, i)
	return recordBytes{dst, ok}, ok
}

// appendEvent appends an event with a template. It reports false, and appends nothing, if that makes no sense.
func (b *inflatedBlock) appendEvent(dst []byte, i int) (_ []byte, ok bool) {
	row := &b.rows[i]
	t := &b.templates[row.form-formTemplate]
	r := rowReader{block: b, cells: b.cells[row.cells:], behind: b.behind[row.behind:], running: row.running, object: t.object, parts: cutText(b.notes.note(i))}
	r.time(columnTime)
	previous, _ := uvarint(r.cell())
	labels := r.word()
	r.time(columnSeen)
	counts := r.word()
	mark, _ := uvarint(r.cell())

	from := len(dst)
	dst = r.value(dst, t) // what is in front of it is made of it, and takes its place
	value := dst[from:]
	namespace, name, fields, ok := codec.Selectable(value)
	key := len(namespace) + 1 + len(name)
	if !ok || r.bad || key > math.MaxUint16 {
		return dst[:from], false
	}
	if previous > 0 {
		previous = b.Revision(i) - previous
	}
	begin := len(dst)
	dst = append(dst, byte(t.kind))
	dst = be.AppendUint16(dst, uint16(len(namespace)))
	dst = be.AppendUint16(dst, uint16(key))
	dst = append(dst, 0, 0, 0, 0)
	dst = be.AppendUint64(dst, previous)
	dst = be.AppendUint64(dst, uint64(r.running.time))
	dst = append(append(append(dst, namespace...), '/'), name...)
	attributes := len(dst)
	for _, text := range fields {
		dst = appendText(dst, text)
	}
	if len(labels) > 0 {
		dst = append(dst, labels...)
	} else if dst, ok = codec.AppendLabels(dst, value); !ok {
		return dst[:from], false
	}
	dst = append(binary.AppendVarint(dst, r.running.seen), counts...)
	if mark > 0 {
		dst = binary.AppendUvarint(append(dst, markPrefix...), uint64(row.running.mark+unzigzag(mark-1)))
	}
	be.PutUint32(dst[begin+5:], uint32(len(dst)-attributes))
	dst = append(dst, value...)
	return dst[:from+copy(dst[from:], dst[begin:])], true
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

// Bytes returns how much memory the block takes, about.
func (b *inflatedBlock) Bytes() int64 {
	const row, revision, template = 56, 13, 2048
	return int64(cap(b.content) + cap(b.notes.content) + cap(b.behind) + 4*cap(b.cells) + 8*cap(b.words) + row*cap(b.rows) + revision*cap(b.notes.revisions) + template*len(b.templates))
}
