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
	columnLabels                 // the attributes between the fields and the occurrence
	columnSeen                   // time of the occurrence, in microseconds behind the last time of the value
	columnCounts                 // the rest of the attributes

	// Those of the values.
	columnName
	columnNamespace
	columnUID
	columnWritten // seconds of creationTimestamp, and of the managed fields
	columnSeconds // of other times
	columnNanos
	columnCount
	columnInstance
	columnHost
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
	cellWord                    // 0: length (uvarint), text; 1: as the cell before; number of the text among those of all such cells + 2 (uvarint)
	cellNumber                  // uvarint
	cellSigned                  // varint
	cellSeconds                 // 0, or difference to the one before, zigzag, + 1 (uvarint)
	cellVersion                 // decimal number in the same way; 0: length (uvarint), text
	cellNanos                   // 0; 1: behind the frame are 3 bytes of microseconds; nanoseconds + 2 (uvarint)
	cellTime                    // how many bytes of the difference to the one before, zigzag, are behind the frame
	cellUUID                    // 0: length (uvarint), text; 1: the next one of those behind the frame; number of one of these + 2 (uvarint)
	cellName                    // how many hexadecimal digits, behind the frame, follow the name of the object and a dot (uvarint); 0: length (uvarint), text
	cellObject                  // 1: it is in the text; 0: length (uvarint), text
	cellNone
)

var cellKinds = [numColumns]cellKind{
	columnForm: cellNumber, columnTime: cellTime, columnPrevious: cellNumber, columnLabels: cellWord, columnSeen: cellSigned,
	columnName: cellName, columnNamespace: cellWord, columnUID: cellUUID, columnWritten: cellSeconds, columnSeconds: cellSeconds, columnNanos: cellNanos,
	columnCount: cellNumber, columnInstance: cellWord, columnHost: cellWord,
	columnObject: cellObject, columnObjectUID: cellUUID, columnObjectVersion: cellVersion, columnObjectPath: cellWord, columnNote: cellNone,
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
	object := messageField{inner: message{2: {column: columnNamespace}, 3: {column: columnObject}, 4: {column: columnObjectUID}, 6: {column: columnObjectVersion}, 7: {column: columnObjectPath}}}
	return message{
		1: {inner: message{1: {column: columnName}, 3: {column: columnNamespace}, 5: {column: columnUID}, 8: written, 17: {inner: message{4: written}}}},
		2: micros, 3: {inner: message{1: {column: columnCount}, 2: micros}},
		5: {column: columnInstance}, 8: object, 9: object, 10: {column: columnNote}, 12: {inner: message{2: {column: columnHost}}},
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
var fixedColumns = [...]column{columnTime, columnPrevious, columnLabels, columnSeen, columnCounts}

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

// runningCells is what the next cells of some columns are the difference to.
type runningCells struct {
	seconds, version, time int64
}

// A cellWriter writes the cells of the columns of a block.
type cellWriter struct {
	columns [numColumns][]byte
	uuids   []byte // behind the frame
	behind  []byte // the UUIDs
	words   map[string]uint64
	numbers map[string]uint64  // of the UUIDs
	before  [numColumns]uint64 // number of the word before + 1
	running runningCells
	object  []byte // name of the object of the present record
	last    int64  // time of the value of the present record, in microseconds
	second  int64  // of columnSeconds that was written last
}

func (w *cellWriter) reset() {
	for i := range w.columns {
		w.columns[i] = w.columns[i][:0]
	}
	w.uuids, w.behind, w.running, w.before = w.uuids[:0], w.behind[:0], runningCells{}, [numColumns]uint64{}
	clear(w.words)
	clear(w.numbers)
}

// begin begins a record whose object has a name.
func (w *cellWriter) begin(object []byte) {
	w.object, w.last, w.second = object, 0, 0
}

// text writes a cell of a text.
func (w *cellWriter) text(c column, text []byte) {
	to := w.columns[c]
	switch cellKinds[c] {
	case cellWord:
		to = w.word(to, c, string(text))
	case cellObject:
		if bytes.Equal(text, w.object) && bytes.IndexByte(text, 0) < 0 {
			to = append(to, 1)
			break
		}
		to = appendText(append(to, 0), text)
	case cellUUID:
		to = w.uuid(to, text)
	case cellVersion:
		if v, ok := decimal(text); ok {
			to = binary.AppendUvarint(to, zigzag(v-w.running.version)+1)
			w.running.version = v
			break
		}
		to = appendText(append(to, 0), text)
	case cellName:
		to = w.name(to, text)
	case cellText:
		to = appendText(to, text)
	}
	w.columns[c] = to
}

// name appends a cell of the name of an event.
func (w *cellWriter) name(to, text []byte) []byte {
	digits, ok := bytes.CutPrefix(text, w.object)
	if ok && len(w.object) > 0 && len(digits) > 1 && digits[0] == '.' {
		if b, ok := appendHex(w.behind, digits[1:]); ok {
			w.behind = b
			return binary.AppendUvarint(to, uint64(len(digits)-1))
		}
	}
	return appendText(append(to, 0), text)
}

// seconds appends a cell of seconds.
func (w *cellWriter) seconds(to []byte, c column, v int64) []byte {
	if c == columnSeconds {
		w.second = v
		w.last = max(w.last, v*1e6)
	}
	if v == 0 {
		return append(to, 0)
	}
	before := w.running.seconds
	w.running.seconds = v
	return binary.AppendUvarint(to, zigzag(v-before)+1)
}

// nanos appends a cell of nanoseconds.
func (w *cellWriter) nanos(to []byte, v uint64) []byte {
	w.last = max(w.last, w.second*1e6+int64(v/1000))
	switch {
	case v == 0:
		return append(to, 0)
	case v%1000 == 0 && v < 1e9:
		micros := v / 1000
		w.behind = append(w.behind, byte(micros), byte(micros>>8), byte(micros>>16))
		return append(to, 1)
	}
	return binary.AppendUvarint(to, v+2)
}

// word appends a cell of a text that may be repeated.
func (w *cellWriter) word(to []byte, c column, text string) []byte {
	n, known := w.words[text]
	if known && w.before[c] == n+1 {
		return append(to, 1)
	}
	if !known {
		n = uint64(len(w.words))
		w.words[text] = n
	}
	w.before[c] = n + 1
	if known {
		return binary.AppendUvarint(to, n+2)
	}
	return appendText(append(to, 0), text)
}

// uuid appends a cell of a text that may be a UUID.
func (w *cellWriter) uuid(to, text []byte) []byte {
	if n, known := w.numbers[string(text)]; known {
		return binary.AppendUvarint(to, n+2)
	}
	b, ok := appendUUID(w.uuids, text)
	if !ok {
		return appendText(append(to, 0), text)
	}
	w.uuids = b
	w.numbers[string(text)] = uint64(len(w.numbers))
	return append(to, 1)
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// number writes a cell of a number.
func (w *cellWriter) number(c column, v uint64) {
	to := w.columns[c]
	switch cellKinds[c] {
	case cellSeconds:
		to = w.seconds(to, c, int64(v))
	case cellNanos:
		to = w.nanos(to, v)
	default:
		to = binary.AppendUvarint(to, v)
	}
	w.columns[c] = to
}

// time writes the cell of the time of a write.
func (w *cellWriter) time(nanos int64) {
	d := zigzag(nanos - w.running.time)
	w.running.time = nanos
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], d)
	n := 0
	for ; d > 0; d >>= 8 {
		n++
	}
	w.behind = append(w.behind, b[:n]...)
	w.columns[columnTime] = append(w.columns[columnTime], byte(n))
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

// uuidBytes are the lengths of the parts of a UUID (RFC 9562, section 4).
var uuidBytes = [...]int{4, 2, 2, 2, 6}

// appendUUID appends the 16 bytes of a text that is a UUID in lower case.
func appendUUID(dst, text []byte) ([]byte, bool) {
	from := len(dst)
	if len(text) != 36 {
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
	cellIsUUID   = 1 << 31        // this plus the number of a UUID
	cellIsObject = cellIsUUID - 1 // the name of the object, in the text of the record
)

// A rowReader makes a record of a block with a template.
type rowReader struct {
	block   *inflatedBlock
	cells   []uint32 // of the record
	behind  []byte   // what is left behind the frame
	running runningCells
	note    []byte
	named   []byte // the name of the object in the text
	object  int    // see template
	next    int    // number of the next cell
	last    int64  // time of the value, in microseconds
	second  int64  // of columnSeconds that was read last
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
	if at := r.cells[r.next]; at >= cellIsUUID {
		r.next++
		return appendUUIDText(append(dst, 36), r.block.behind[16*(at-cellIsUUID):])
	} else if at == cellIsObject {
		r.next++
		return appendText(dst, r.named)
	}
	b := r.cell()
	switch cellKinds[c] {
	case cellNone:
		return appendText(dst, r.note)
	case cellUUID, cellObject:
		return appendText(dst, textOf(b))
	case cellText, cellWord:
		n, rest := uvarint(b)
		return append(dst, b[:len(b)-len(rest)+int(n)]...)
	case cellName:
		return r.name(dst, b)
	case cellVersion:
		v, rest := uvarint(b)
		if v == 0 {
			return appendText(dst, textOf(rest))
		}
		r.running.version += unzigzag(v - 1)
		var room [20]byte
		return appendText(dst, strconv.AppendInt(room[:0], r.running.version, 10))
	}
	return binary.AppendUvarint(dst, r.number(b, c))
}

// number returns the number of a cell.
func (r *rowReader) number(b []byte, c column) uint64 {
	v, _ := uvarint(b)
	switch cellKinds[c] {
	case cellSeconds:
		if v > 0 {
			r.running.seconds += unzigzag(v - 1)
			v = uint64(r.running.seconds)
		}
		if c == columnSeconds {
			r.second = int64(v)
			r.last = max(r.last, r.second*1e6)
		}
	case cellNanos:
		switch {
		case v == 1:
			micros := r.takeBehind(3)
			v = 1000 * (uint64(micros[0]) | uint64(micros[1])<<8 | uint64(micros[2])<<16)
		case v > 1:
			v -= 2
		}
		r.last = max(r.last, r.second*1e6+int64(v/1000))
	}
	return v
}

// name appends the name of an event.
func (r *rowReader) name(dst, b []byte) []byte {
	digits, rest := uvarint(b)
	if digits == 0 {
		return appendText(dst, textOf(rest))
	}
	packed := r.takeBehind(int(digits+1) / 2)
	if r.object < 0 {
		r.bad = true
		return dst
	}
	object := r.named
	if at := r.cells[r.object]; at != cellIsObject {
		object = textOf(r.block.content[at:])
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(object))+1+digits), object...)
	return appendDigits(append(dst, '.'), packed, int(digits))
}

// appendDigits appends hexadecimal digits of which each byte has two.
func appendDigits(dst, packed []byte, digits int) []byte {
	dst = hex.AppendEncode(dst, packed)
	return dst[:len(dst)-digits%2]
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
