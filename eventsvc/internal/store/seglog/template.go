package seglog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// A column has the cells of the records of a block that are alike.
type column byte

// The columns of a block, in the order in which they are stored.
const (
	columnForm     column = iota // of each record: see the forms
	columnRecord                 // records that are in no other column
	columnTime                   // of the write, in nanoseconds
	columnPrevious               // revisions between a version and the one before, 0: there is none
	columnLabels                 // the attributes between the fields and the occurrence; empty: the labels of the value
	columnSeen                   // time of the occurrence, in microseconds
	columnCounts                 // the rest of the attributes
	columnMark                   // the version in the mark, which follows the counts

	// The columns of the values.
	columnName
	columnNamespace
	columnUID
	columnLabel   // values of labels and annotations
	columnWritten // seconds of creationTimestamp, and of the managed fields
	columnSeconds // of other times
	columnNanos
	columnCount
	columnReporter // controller, component, manager of the managed fields
	columnInstance
	columnHost
	columnAction
	columnReason
	columnType
	columnKind
	columnObject
	columnObjectUID
	columnObjectVersion
	columnObjectPath
	columnNote // has no cells: the notes have a frame of their own

	numColumns
)

// A cellKind is the encoding of the cells of a column. Bytes that do not compress are behind the frame.
type cellKind byte

const (
	cellText    cellKind = iota // length (uvarint), text
	cellWord                    // see the words below
	cellNumber                  // uvarint
	cellSeconds                 // 0, or difference to the second of the occurrence, zigzag, + 1 (uvarint)
	cellNanos                   // 0; 1: the microseconds of the occurrence; 2: 3 bytes of microseconds are behind the frame; nanoseconds + 3 (uvarint)
	cellTime                    // number of bytes of the difference to the time before, zigzag, which are behind the frame
	cellMark                    // 0: no mark; or difference to the mark before, zigzag, + 1 (uvarint)
	cellName                    // see the names below
	cellNone
)

// The words are texts that may be repeated. The cell of a word is one of these numbers (uvarint), or wordKnown plus the
// number of an earlier new word.
const (
	wordNew     = iota // length (uvarint) and text follow
	wordBefore         // the previous word of its column
	wordReason         // the reason in the text of the record
	wordObject         // the object there
	wordNode           // the node there
	wordUUID           // the next UUID behind the frame
	wordDecimal        // difference to the previous number of this kind follows, zigzag (uvarint)
	wordKnown
)

// The name of an event is often the name of its object, a dot and a time in nanoseconds as hexadecimal digits. The name
// of a copy has another dot and nameDigits hexadecimal digits. The difference of the time to the occurrence, zigzag,
// and these digits are behind the frame. The cell is the number of bytes of the difference + 1, + nameCopy for a copy.
// For any other name the cell is 0, and length (uvarint) and text follow.
const (
	nameCopy   = 16
	nameDigits = 10
)

var cellKinds = [numColumns]cellKind{
	columnForm: cellNumber, columnTime: cellTime, columnPrevious: cellNumber, columnLabels: cellWord, columnSeen: cellTime, columnCounts: cellWord, columnMark: cellMark,
	columnName: cellName, columnNamespace: cellWord, columnUID: cellWord, columnLabel: cellWord, columnWritten: cellSeconds, columnSeconds: cellSeconds, columnNanos: cellNanos,
	columnCount: cellNumber, columnReporter: cellWord, columnInstance: cellWord, columnHost: cellWord, columnAction: cellWord, columnReason: cellWord, columnType: cellWord, columnKind: cellWord,
	columnObject: cellWord, columnObjectUID: cellWord, columnObjectVersion: cellWord, columnObjectPath: cellWord, columnNote: cellNone,
}

// isNumber reports whether protobuf has the payload of a column as a varint.
func (c column) isNumber() bool {
	k := cellKinds[c]
	return k == cellNumber || k == cellSeconds || k == cellNanos
}

// A message says which fields of a protobuf message differ from one event to the next.
type message map[protowire.Number]messageField

// messageField is a column, or the fields of a message.
type messageField struct {
	column column
	inner  message
}

// eventMessage is the message of [k8s.io/api/events/v1.Event], as the codec stores it.
var eventMessage = func() message {
	written, seconds := messageField{inner: message{1: {column: columnWritten}}}, messageField{inner: message{1: {column: columnSeconds}}}
	micros := messageField{inner: message{1: {column: columnSeconds}, 2: {column: columnNanos}}}
	entries := messageField{inner: message{2: {column: columnLabel}}}
	object := messageField{inner: message{1: {column: columnKind}, 2: {column: columnNamespace}, 3: {column: columnObject}, 4: {column: columnObjectUID}, 6: {column: columnObjectVersion}, 7: {column: columnObjectPath}}}
	return message{
		1: {inner: message{
			1: {column: columnName}, 3: {column: columnNamespace}, 5: {column: columnUID}, 8: written, 11: entries, 12: entries,
			17: {inner: message{1: {column: columnReporter}, 4: written}},
		}},
		2: micros, 3: {inner: message{1: {column: columnCount}, 2: micros}},
		4: {column: columnReporter}, 5: {column: columnInstance}, 6: {column: columnAction}, 7: {column: columnReason}, 8: object, 9: object, 10: {column: columnNote},
		11: {column: columnType}, 12: {inner: message{1: {column: columnReporter}, 2: {column: columnHost}}},
		13: seconds, 14: seconds, 15: {column: columnCount},
	}
}()

// The steps of a template. Others are a column + stepColumn, and the length of a literal + stepLiteral, which follows.
const (
	stepClose   = 0 // a message ends
	stepOpen    = 1 // a message begins, with its length
	stepColumn  = 2
	stepLiteral = stepColumn + int(numColumns)
)

// A templateWriter makes the template of a value, and writes its cells.
type templateWriter struct {
	steps   []byte
	literal []byte
	cells   *cellWriter
}

// sound reports whether the fields of a message can be told apart, and those of the messages in it that are known.
func (m message) sound(b []byte) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeField(b)
		if n < 0 {
			return false
		}
		if inner := m[number].inner; inner != nil && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			if payload, _ := protowire.ConsumeBytes(b[tag:]); !inner.sound(payload) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}

// value adds a value, which is sound.
func (w *templateWriter) value(value []byte) {
	w.literal = append(w.literal[:0], value[0])
	w.message(value[1:], eventMessage)
	w.endLiteral()
}

func (w *templateWriter) message(b []byte, m message) {
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		n := protowire.ConsumeFieldValue(number, kind, b[tag:])
		w.literal = append(w.literal, b[:tag]...)
		payload := b[tag : tag+n]
		b = b[tag+n:]
		f, known := m[number]
		switch {
		case known && kind == protowire.BytesType && f.inner != nil:
			inner, _ := protowire.ConsumeBytes(payload)
			w.step(stepOpen)
			w.message(inner, f.inner)
			w.step(stepClose)
		case known && kind == protowire.BytesType && !f.column.isNumber():
			text, _ := protowire.ConsumeBytes(payload)
			w.step(stepColumn + int(f.column))
			w.cells.text(f.column, text)
		case known && kind == protowire.VarintType && f.column.isNumber():
			v, _ := protowire.ConsumeVarint(payload)
			w.step(stepColumn + int(f.column))
			w.cells.number(f.column, v)
		default:
			w.literal = append(w.literal, payload...)
		}
	}
}

func (w *templateWriter) step(step int) {
	w.endLiteral()
	w.steps = binary.AppendUvarint(w.steps, uint64(step))
}

func (w *templateWriter) endLiteral() {
	if n := len(w.literal); n > 0 {
		w.steps = append(binary.AppendUvarint(w.steps, uint64(stepLiteral+n)), w.literal...)
		w.literal = w.literal[:0]
	}
}

// A template is an event without the cells of its columns.
type template struct {
	kind   Kind
	steps  []templateStep
	cells  []column // that the steps are for
	size   int      // of the literals
	object int      // number of the cell with the name of the object, -1: there is none
}

type templateStep struct {
	step    int
	literal []byte
}

// fixedColumns are the columns in which every record with a template has cells, before the cells of its value.
var fixedColumns = [...]column{columnTime, columnPrevious, columnLabels, columnSeen, columnCounts, columnMark}

// maxNested is how deep the messages of an event are nested.
const maxNested = 8

// parseTemplate parses a template into t, whose memory it reuses.
func parseTemplate(t *template, b []byte) bool {
	t.steps, t.cells, t.object, t.size = t.steps[:0], append(t.cells[:0], fixedColumns[:]...), -1, 0
	if len(b) == 0 {
		return false
	}
	t.kind = Kind(b[0])
	c := blockContent{b: b[1:]}
	nested := 0
	for len(c.b) > 0 {
		s := templateStep{step: c.number(math.MaxInt32)}
		switch {
		case s.step >= stepLiteral:
			s.literal = c.take(s.step - stepLiteral)
			t.size += len(s.literal)
		case s.step == stepOpen:
			nested++
		case s.step == stepClose:
			nested--
		default:
			c.bad = c.bad || !t.addCell(column(s.step-stepColumn))
		}
		if c.bad || nested < 0 || nested > maxNested {
			return false
		}
		t.steps = append(t.steps, s)
	}
	return nested == 0
}

// addCell adds a cell of a value. It reports false if there may be none.
func (t *template) addCell(of column) bool {
	once := of == columnName || of == columnNote // what they have takes no room in the block
	if of < columnName || once && slices.Contains(t.cells, of) {
		return false
	}
	if of == columnObject && t.object < 0 {
		t.object = len(t.cells)
	}
	t.cells = append(t.cells, of)
	return true
}

// runningCells has the previous value of each column, or kind of word, whose cells are differences.
type runningCells struct {
	time, seen, version, mark int64
}

// of returns the previous value of a column of times.
func (r *runningCells) of(c column) *int64 {
	if c == columnSeen {
		return &r.seen
	}
	return &r.time
}

// A cellWriter writes the cells of the columns of a block.
type cellWriter struct {
	columns [numColumns][]byte
	uuids   []byte             // behind the frame
	behind  []byte             // the UUIDs
	words   map[string]uint64  // numbers of the new words, by text
	before  [numColumns]uint64 // number of the word before + 1
	running runningCells       // seen is the occurrence of the present record
	parts   textParts          // of the present record
}

func (w *cellWriter) reset() {
	for i := range w.columns {
		w.columns[i] = w.columns[i][:0]
	}
	w.uuids, w.behind, w.running, w.before = w.uuids[:0], w.behind[:0], runningCells{}, [numColumns]uint64{}
	clear(w.words)
}

// text writes a cell of a text.
func (w *cellWriter) text(c column, text []byte) {
	to := w.columns[c]
	switch cellKinds[c] {
	case cellWord:
		to = w.word(to, c, text)
	case cellName:
		to = w.name(to, text)
	case cellText:
		to = appendText(to, text)
	}
	w.columns[c] = to
}

// name appends a cell of the name of an event.
func (w *cellWriter) name(to, text []byte) []byte {
	digits, ok := bytes.CutPrefix(text, w.parts.object)
	if !ok || len(w.parts.object) == 0 || len(digits) < 2 || digits[0] != '.' {
		return appendText(append(to, 0), text)
	}
	digits, more, copied := bytes.Cut(digits[1:], []byte{'.'})
	nanos, ok := hexadecimal(digits)
	if !ok || copied && len(more) != nameDigits {
		return appendText(append(to, 0), text)
	}
	behind, n := appendDifference(w.behind, nanos-1000*w.running.seen)
	if copied {
		if behind, ok = appendHex(behind, more); !ok {
			return appendText(append(to, 0), text)
		}
		n += nameCopy
	}
	w.behind = behind
	return append(to, byte(n+1))
}

// seconds appends a cell of seconds.
func (w *cellWriter) seconds(to []byte, v int64) []byte {
	if v == 0 {
		return append(to, 0)
	}
	return binary.AppendUvarint(to, zigzag(v-w.running.seen/1e6)+1)
}

// nanos appends a cell of nanoseconds.
func (w *cellWriter) nanos(to []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(to, 0)
	case v == microsOf(w.running.seen):
		return append(to, 1)
	case v%1000 == 0 && v < 1e9:
		micros := v / 1000
		w.behind = append(w.behind, byte(micros), byte(micros>>8), byte(micros>>16))
		return append(to, 2)
	}
	return binary.AppendUvarint(to, v+3)
}

// microsOf returns the fraction of a second of a time in microseconds, in nanoseconds.
func microsOf(t int64) uint64 { return 1000 * uint64(t%1e6) }

// leastDecimal is the length of the shortest number that is written as the difference to another one.
const leastDecimal = 5

// word appends a cell of a word.
func (w *cellWriter) word(to []byte, c column, text []byte) []byte {
	switch n, known := w.words[string(text)]; {
	case known && w.before[c] == n+1:
		return append(to, wordBefore)
	case known:
		w.before[c] = n + 1
		return binary.AppendUvarint(to, n+wordKnown)
	}
	if part, ok := w.parts.find(text); ok {
		return append(to, part)
	}
	if v, ok := decimal(text); ok && len(text) >= leastDecimal {
		to = binary.AppendUvarint(append(to, wordDecimal), zigzag(v-w.running.version))
		w.running.version = v
		return to
	}
	n := uint64(len(w.words))
	w.words[string(text)] = n
	w.before[c] = n + 1
	if b, ok := appendUUID(w.uuids, text); ok {
		w.uuids = b
		return append(to, wordUUID)
	}
	return appendText(append(to, wordNew), text)
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// number writes a cell of a number.
func (w *cellWriter) number(c column, v uint64) {
	to := w.columns[c]
	switch cellKinds[c] {
	case cellSeconds:
		to = w.seconds(to, int64(v))
	case cellNanos:
		to = w.nanos(to, v)
	default:
		to = binary.AppendUvarint(to, v)
	}
	w.columns[c] = to
}

// time writes the cell of a time.
func (w *cellWriter) time(c column, t int64) {
	before := w.running.of(c)
	behind, n := appendDifference(w.behind, t-*before)
	w.behind, *before = behind, t
	w.columns[c] = append(w.columns[c], byte(n))
}

// mark writes the cell of the version of a mark, or of none.
func (w *cellWriter) mark(version int64, ok bool) {
	v := uint64(0)
	if ok {
		v = zigzag(version-w.running.mark) + 1
		w.running.mark = version
	}
	w.columns[columnMark] = binary.AppendUvarint(w.columns[columnMark], v)
}

// appendDifference appends the bytes of a number, the lowest one first, and returns how many these are.
func appendDifference(dst []byte, v int64) (_ []byte, n int) {
	for d := zigzag(v); d > 0; d >>= 8 {
		dst = append(dst, byte(d))
		n++
	}
	return dst, n
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// decimal parses a number that is written as strconv does.
func decimal(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	v := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + int64(c-'0')
	}
	return v, true
}

// hexadecimal parses a number that is written in hexadecimal digits without leading zeros.
func hexadecimal(digits []byte) (v int64, ok bool) {
	if len(digits) == 0 || len(digits) > 16 || digits[0] == '0' || digits[0] > '7' && len(digits) == 16 {
		return 0, false
	}
	for _, c := range digits {
		d := hexDigit(c)
		if d > 15 {
			return 0, false
		}
		v = v<<4 | int64(d)
	}
	return v, true
}

// appendHex appends a text of hexadecimal digits, two in a byte.
func appendHex(dst, digits []byte) ([]byte, bool) {
	from := len(dst)
	for i, c := range digits {
		d := hexDigit(c)
		if d > 15 {
			return dst[:from], false
		}
		if i%2 == 0 {
			dst = append(dst, d<<4)
		} else {
			dst[len(dst)-1] |= d
		}
	}
	return dst, true
}

// hexDigit returns what a digit stands for, more than 15 if it is none.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// uuidText is the length of a UUID as a text.
const uuidText = 36

// uuidBytes are the lengths of the parts of a UUID (RFC 9562, section 4).
var uuidBytes = [...]int{4, 2, 2, 2, 6}

// appendUUID appends the 16 bytes of a text that is a UUID in lower case.
func appendUUID(dst, text []byte) ([]byte, bool) {
	from := len(dst)
	if len(text) != uuidText {
		return dst, false
	}
	for i, n := range uuidBytes {
		if i > 0 {
			if text[0] != '-' {
				return dst[:from], false
			}
			text = text[1:]
		}
		var ok bool
		if dst, ok = appendHex(dst, text[:2*n]); !ok {
			return dst[:from], false
		}
		text = text[2*n:]
	}
	return dst, true
}

// What a cell of a block is, beside where a number or a text is in the content.
const (
	cellIsUUID    = 1 << 31 // this plus the number of a UUID
	cellIsDecimal = 1 << 30 // this plus where the difference is
	cellIsPart    = 1 << 29 // this plus one of wordReason, wordObject and wordNode
)

// A rowReader makes a record of a block with a template.
type rowReader struct {
	block   *inflatedBlock
	cells   []uint32 // of the record
	behind  []byte   // what is left behind the frame
	running runningCells
	parts   textParts
	object  int // see template
	next    int // number of the next cell
	room    [uuidText]byte
	bad     bool
}

// cell returns the next cell, and what is behind it.
func (r *rowReader) cell() []byte {
	b := r.block.content[r.cells[r.next]:]
	r.next++
	return b
}

// uvarint reads a number of a cell that was read before.
func uvarint(b []byte) (v uint64, rest []byte) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):]
}

// textOf returns the text of a cell.
func textOf(b []byte) []byte {
	n, b := uvarint(b)
	return b[:n]
}

// time adds the next cell to the running time of its column.
func (r *rowReader) time(c column) {
	n, _ := uvarint(r.cell())
	*r.running.of(c) += difference(r.takeBehind(int(n)))
}

// takeBehind takes bytes from behind the frame.
func (r *rowReader) takeBehind(n int) []byte {
	b := r.behind[:n]
	r.behind = r.behind[n:]
	return b
}

// value appends the value of a template.
func (r *rowReader) value(dst []byte, t *template) []byte {
	var opened [maxNested]int
	nested := 0
	for i := range t.steps {
		switch s := &t.steps[i]; {
		case s.step >= stepLiteral:
			dst = append(dst, s.literal...)
		case s.step == stepOpen:
			dst = append(dst, 0)
			opened[nested] = len(dst)
			nested++
		case s.step == stepClose:
			nested--
			dst = closeMessage(dst, opened[nested])
		default:
			dst = r.field(dst, column(s.step-stepColumn))
		}
	}
	return dst
}

// closeMessage puts the length of a message in front of it, for which there is one byte.
func closeMessage(dst []byte, from int) []byte {
	n := len(dst) - from
	if n < 0x80 {
		dst[from-1] = byte(n)
		return dst
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:size-1]...)
	copy(dst[from+size-1:], dst[from:from+n])
	copy(dst[from-1:], length[:size])
	return dst
}

// field appends the payload of a field from the next cell of a column.
func (r *rowReader) field(dst []byte, c column) []byte {
	switch cellKinds[c] {
	case cellNone:
		r.next++
		return appendText(dst, r.parts.note)
	case cellWord:
		return appendText(dst, r.word())
	case cellName:
		return r.name(dst)
	}
	return binary.AppendUvarint(dst, r.number(c))
}

// word returns the text of the next cell, which is a word. It is valid until the next call.
func (r *rowReader) word() []byte {
	at := r.cells[r.next]
	r.next++
	if at&cellIsDecimal != 0 {
		d, _ := uvarint(r.block.content[at-cellIsDecimal:])
		r.running.version += unzigzag(d)
		return strconv.AppendInt(r.room[:0], r.running.version, 10)
	}
	return r.textAt(at)
}

// textAt returns the text of a cell that is no number.
func (r *rowReader) textAt(at uint32) []byte {
	switch {
	case at&cellIsUUID != 0:
		return appendUUIDText(r.room[:0], r.block.behind[16*(at-cellIsUUID):])
	case at&cellIsPart != 0:
		return r.parts.of(at - cellIsPart)
	}
	return textOf(r.block.content[at:])
}

// number returns the number of the next cell.
func (r *rowReader) number(c column) uint64 {
	v, _ := uvarint(r.cell())
	switch cellKinds[c] {
	case cellSeconds:
		if v > 0 {
			v = uint64(r.running.seen/1e6 + unzigzag(v-1))
		}
	case cellNanos:
		switch {
		case v == 1:
			v = microsOf(r.running.seen)
		case v == 2:
			micros := r.takeBehind(3)
			v = 1000 * (uint64(micros[0]) | uint64(micros[1])<<8 | uint64(micros[2])<<16)
		case v > 2:
			v -= 3
		}
	}
	return v
}

// name appends the name of an event.
func (r *rowReader) name(dst []byte) []byte {
	n, rest := uvarint(r.cell())
	if n == 0 {
		return appendText(dst, textOf(rest))
	}
	copied := n > nameCopy
	if copied {
		n -= nameCopy
	}
	nanos := 1000*r.running.seen + difference(r.takeBehind(int(n-1)))
	var more []byte
	if copied {
		more = r.takeBehind(nameDigits / 2)
	}
	if r.object < 0 || r.cells[r.object]&cellIsDecimal != 0 {
		r.bad = true
		return dst
	}
	object := r.textAt(r.cells[r.object])
	var room [16 + 1 + nameDigits]byte
	digits := strconv.AppendUint(room[:0], uint64(nanos), 16)
	if copied {
		digits = hex.AppendEncode(append(digits, '.'), more)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(object)+1+len(digits))), object...)
	return append(append(dst, '.'), digits...)
}

func appendUUIDText(dst, b []byte) []byte {
	for i, n := range uuidBytes {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, b[:n])
		b = b[n:]
	}
	return dst
}
