package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/event"
)

// A shapeWriter makes the shapes and the cells of the rows of a table.
type shapeWriter struct {
	builder *Builder
	cells   []byte
	ends    []int       // of each row in cells
	bases   [][2]uint64 // by cellRows: what stepDecimal and markVersion have differences to
	based   [2]int      // how many of them are known
	places  map[uint64]*placeTexts
	written uint64
	held    bool // a row has cells

	numbers *[numColumns]uint64 // of the present row
	refs    [allRefs][]byte
	own     bool // its shape may have texts
	steps   []byte
	literal []byte
	room    []byte
	again   []byte
}

// placeTexts are the texts in one place of values.
type placeTexts struct {
	few         map[string]bool // nil: they are too many
	seen, known int             // since then, and of these the ones that the dictionary had
}

// row adds the shape and the cells of a row.
func (w *shapeWriter) row(r *Row, n *[numColumns]uint64, uid, namespace []byte) {
	start := len(w.cells)
	if v := r.Record; v != nil {
		w.refer(r, n, uid, namespace)
		w.written = biased(v.Written)
		n[colShape] = w.shape(r, start)
	}
	n[colWritten] = w.written
	if n[colShape] == noShape {
		if w.cells = w.cells[:start]; r.Stored != nil && len(r.Stored) <= maxPlain {
			n[colShape], w.cells = plainShape, append(w.cells, r.Stored...)
		}
	}
	w.held = w.held || n[colShape] != noShape
	w.builder.bytes += len(w.cells) - start
	w.ends = append(w.ends, len(w.cells))
}

// refer sets what shapes of a row refer to.
func (w *shapeWriter) refer(r *Row, n *[numColumns]uint64, uid, namespace []byte) {
	t := &w.builder.room
	w.numbers = n
	copy(w.refs[:], t[:numDims])
	version, path, _ := cutPlace(t[dictPlace])
	w.refs[refObject], w.refs[refObjectUID], w.refs[refObjectNamespace] = t[dictObject], uid, namespace
	w.refs[refVersion], w.refs[refPath], w.refs[refNote], w.refs[refLabels] = version, path, r.Note, t[dictLabels]
}

// shape returns the code of the shape of a row, and adds its cells. It has none if it would not read back as it is.
func (w *shapeWriter) shape(r *Row, start int) uint64 {
	w.numbers[colWritten] = w.written
	for _, most := range [...]int{maxShapes, 2 * maxShapes} {
		w.own, w.cells = most == maxShapes, w.cells[:start]
		if !w.version(r) || len(w.cells)-start > maxCells || len(w.steps) > maxShape {
			continue
		}
		_, known := w.builder.codes[dictShape][string(w.steps)]
		if !known && w.builder.dicts[dictShape].len() >= most {
			continue
		}
		read := shapeReader{source: w, steps: w.steps, cells: w.cells[start:], bases: w.basesOf(w.builder.rows / cellRows)}
		again, err := read.version(r.Revision, w.again[:0])
		if w.again = again.Value; err == nil && same(&again.Record, r.Record) && again.Counted == max(r.Counted, r.Count) {
			return w.builder.code(dictShape, w.steps)
		}
		return noShape
	}
	return noShape
}

func same(a, b *Record) bool {
	return a.Kind == b.Kind && a.Previous == b.Previous && bytes.Equal(a.Mark, b.Mark) && bytes.Equal(a.Value, b.Value)
}

// version makes the steps and the cells of a row.
func (w *shapeWriter) version(r *Row) bool {
	v := r.Record
	if len(v.Value) == 0 || len(v.Value) > maxValue || v.Previous >= r.Revision {
		return false
	}
	w.steps = append(w.steps[:0], v.Kind, 0, 0, markNone)
	if v.Previous > 0 {
		w.steps[headPrevious] = 1
		w.cell(r.Revision - v.Previous)
	}
	if r.Counted > r.Count {
		w.steps[headCounted] = 1
		w.cell(uint64(r.Counted - r.Count))
	}
	w.mark(v.Mark)
	w.literal = append(w.literal[:0], v.Value[0])
	ok := w.message(v.Value[1:], eventMessage, 0)
	w.endLiteral()
	return ok
}

func (w *shapeWriter) cell(n uint64) { w.cells = binary.AppendUvarint(w.cells, n) }

func (w *shapeWriter) mark(mark []byte) {
	if len(mark) == 0 {
		return
	}
	if version, ok := bytes.CutPrefix(mark, versionMark); ok {
		if v, n := binary.Uvarint(version); n == len(version) && v <= math.MaxInt64 {
			w.steps[headMark] = markVersion
			w.difference(1, int64(v))
			return
		}
	}
	w.steps[headMark] = markText
	w.cells = appendPlain(w.cells, mark)
}

// difference adds the cell of a number that has a difference to one of the bases.
func (w *shapeWriter) difference(base int, v int64) {
	at := w.builder.rows / cellRows
	for len(w.bases) <= at {
		w.bases = append(w.bases, [2]uint64{})
	}
	if w.based[base] <= at {
		w.bases[at][base], w.based[base] = uint64(v), at+1
	}
	w.cell(zigzag(v - int64(w.bases[at][base])))
}

// basesOf returns the bases of some rows.
func (w *shapeWriter) basesOf(part int) (none [2]uint64) {
	if part < len(w.bases) {
		return w.bases[part]
	}
	return none
}

// message makes the steps of a message. It reports false if that is none.
func (w *shapeWriter) message(b []byte, m *message, place uint64) bool {
	labels := w.labelFields(place)
	key := []byte(nil)
	for len(b) > 0 {
		if len(labels) > 0 && bytes.HasPrefix(b, labels) {
			w.step(stepLabels)
			b, labels = b[len(labels):], nil
			continue
		}
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return false
		}
		n := protowire.ConsumeFieldValue(number, kind, b[tag:])
		if n < 0 {
			return false
		}
		w.literal = append(w.literal, b[:tag]...)
		payload := b[tag : tag+n]
		b = b[tag+n:]
		in := placeOf(place, number)
		for _, c := range key { // each key of a map has a place of its own
			in = placeOf(in, protowire.Number(c))
		}
		switch kind {
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(payload)
			if m.isMap && number == 1 {
				key = text
			}
			if inner := m.fields[number]; inner == nil {
				w.text(in, text)
			} else {
				w.step(stepMessage)
				if !w.message(text, inner, in) {
					return false
				}
				w.step(stepEnd)
			}
		case protowire.VarintType:
			v, _ := protowire.ConsumeVarint(payload)
			w.number(in, v, payload)
		default:
			w.literal = append(w.literal, payload...)
		}
	}
	return true
}

// labelFields returns the labels of the row as fields of the metadata, if that is the place, and there are labels.
func (w *shapeWriter) labelFields(place uint64) []byte {
	if place != placeOf(0, 1) || len(w.refs[refLabels]) == 0 {
		return nil
	}
	w.room = appendLabelFields(w.room[:0], w.refs[refLabels])
	return w.room
}

// appendLabelFields appends an encoded set of labels as fields of the metadata.
func appendLabelFields(dst, set []byte) []byte {
	for key, value := range event.OfLabelSet(set).Labels() {
		size := protowire.SizeBytes(len(key)) + protowire.SizeBytes(len(value)) + 2
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldLabels, protowire.BytesType), uint64(size))
		dst = protowire.AppendBytes(protowire.AppendTag(dst, 1, protowire.BytesType), key)
		dst = protowire.AppendBytes(protowire.AppendTag(dst, 2, protowire.BytesType), value)
	}
	return dst
}

func (w *shapeWriter) step(step int) {
	w.endLiteral()
	w.steps = binary.AppendUvarint(w.steps, uint64(step))
}

func (w *shapeWriter) endLiteral() {
	if n := len(w.literal); n > 0 {
		w.steps = append(binary.AppendUvarint(w.steps, uint64(stepLiteral+n)), w.literal...)
		w.literal = w.literal[:0]
	}
}

// number makes the step of a number.
func (w *shapeWriter) number(place, v uint64, payload []byte) {
	t := timesOf(w.numbers)
	named := [...]uint64{stepSecond: uint64(t.second), stepWritten: uint64(t.written), stepNanos: t.nanos, stepFirstNanos: t.firstNanos, stepCount: w.numbers[colCount]}
	at := slices.Index(named[stepSecond:], v)
	switch {
	case len(payload) != protowire.SizeVarint(v):
		w.literal = append(w.literal, payload...)
	case v > 0 && at >= 0:
		w.step(stepSecond + at)
	case v > math.MaxInt32/4 && v < math.MaxUint32 && t.second >= 0 && t.second < math.MaxUint32:
		w.step(stepDifference)
		w.cell(zigzag(int64(v) - t.second))
	case w.isFew(place, payload):
		w.literal = append(w.literal, payload...)
	default:
		w.step(stepNumber)
		w.cell(v)
	}
}

// rowTimes are the times of a row.
type rowTimes struct {
	second, written   int64
	first             int64 // in nanoseconds
	nanos, firstNanos uint64
}

func timesOf(n *[numColumns]uint64) (t rowTimes) {
	t.second, t.written = unbiased(n[colSecond]), floor(unbiased(n[colWritten]), 1e9)
	t.nanos = n[colMicro] * 1000
	first := t.second*1e6 + int64(n[colMicro]) - int64(n[colSpan])
	t.first, t.firstNanos = first*1000, uint64(first-floor(first, 1e6)*1e6)*1000
	return t
}

// text makes the step of a text.
func (w *shapeWriter) text(place uint64, text []byte) {
	if len(text) == 0 {
		w.literal = append(w.literal, 0)
		return
	}
	for ref := range numRefs {
		if bytes.Equal(text, w.refs[ref]) {
			w.step(stepRef + ref)
			return
		}
	}
	if encoded := appendUID(w.room[:0], text); encoded[0] == uidBinary {
		w.step(stepUUID)
		w.cells = append(w.cells, encoded[1:]...)
		return
	}
	if v, ok := decimal(text); ok {
		w.step(stepDecimal)
		w.difference(0, v)
		return
	}
	switch {
	case w.isFew(place, text):
		w.literal = protowire.AppendBytes(w.literal, text)
	case w.suffix(text):
	case w.repeats(place, text):
		w.step(stepValue)
		w.cell(w.builder.code(dictValues, text))
	default:
		w.step(stepText)
		w.cells = appendPlain(w.cells, text)
	}
}

// isFew reports whether a text is one of few in a place, so that it can be a part of shapes.
func (w *shapeWriter) isFew(place uint64, text []byte) bool {
	if !w.own {
		return false
	}
	if w.places == nil {
		w.places = map[uint64]*placeTexts{}
	}
	p := w.places[place]
	if p == nil {
		if len(w.places) >= maxPlaces {
			return false
		}
		p = &placeTexts{few: map[string]bool{}}
		w.places[place] = p
	}
	switch {
	case p.few[string(text)]:
		return true
	case p.few == nil || len(p.few) >= maxFew || len(text) > maxFewText:
		p.few = nil
		return false
	}
	p.few[string(text)] = true
	return true
}

// repeats reports whether a text in a place is probably one of others, so that it belongs into the dictionary.
func (w *shapeWriter) repeats(place uint64, text []byte) bool {
	p := w.places[place]
	if !w.own || p == nil || w.builder.dicts[dictValues].len() >= maxWords {
		return false
	}
	_, known := w.builder.codes[dictValues][string(text)]
	if p.seen++; known {
		p.known++
	}
	return known || p.seen < 4*maxFew || 2*p.known > p.seen
}

// suffix makes the step of a text with a number at its end. It reports false if there is none.
func (w *shapeWriter) suffix(text []byte) bool {
	flags, copied := byte(0), []byte(nil)
	if at := len(text) - 1 - 2*copyBytes; at > 0 && text[at] == '.' {
		if raw, ok := fromHex(text[at+1:]); ok && bytes.IndexByte(text[:at], '.') > 0 {
			flags, text, copied = suffixCopy, text[:at], raw
		}
	}
	front, v, ok := cutSuffix(text)
	if !ok {
		return false
	}
	if !bytes.Equal(front, w.refs[refObject]) {
		if !w.own || w.builder.dicts[dictValues].len() >= maxWords {
			return false
		}
		flags |= suffixOfValue
	}
	behind := int64(v) - timesOf(w.numbers).first
	if v > math.MaxInt64 || max(behind, -behind) > 1<<44 {
		flags |= suffixFar
	}
	w.step(stepSuffix)
	w.steps = append(w.steps, flags)
	if flags&suffixOfValue > 0 {
		w.cell(w.builder.code(dictValues, front))
	}
	if flags&suffixFar > 0 {
		w.cells = binary.BigEndian.AppendUint64(w.cells, v)
	} else {
		w.cell(zigzag(behind))
	}
	w.cells = append(w.cells, copied...)
	return true
}

// cutSuffix splits off a number in hexadecimal digits behind the last dot of a text.
func cutSuffix(text []byte) (front []byte, v uint64, ok bool) {
	at := bytes.LastIndexByte(text, '.')
	if at <= 0 || len(text)-at-1 < minDigits {
		return nil, 0, false
	}
	v, err := strconv.ParseUint(string(text[at+1:]), 16, 64)
	return text[:at], v, err == nil && strconv.FormatUint(v, 16) == string(text[at+1:])
}

// fromHex decodes lower-case hexadecimal digits.
func fromHex(digits []byte) ([]byte, bool) {
	raw, err := hex.AppendDecode(nil, digits)
	return raw, err == nil && bytes.Equal(hex.AppendEncode(nil, raw), digits)
}

// minDecimal is the length of the shortest number that is written as the difference to another one.
const minDecimal = 4

// decimal parses a number that is written as strconv does.
func decimal(text []byte) (int64, bool) {
	if len(text) < minDecimal || len(text) > 18 || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text), 10, 63)
	return int64(v), err == nil
}

// A shapeWriter is what the shape of its present row refers to, so that it is read as it will be.
func (w *shapeWriter) ref(ref int) ([]byte, error) { return w.refs[ref], nil }
func (w *shapeWriter) value(code uint64) ([]byte, error) {
	return w.builder.dicts[dictValues].at(int(code)), nil
}
func (w *shapeWriter) numbersOf() (*[numColumns]uint64, error) { return w.numbers, nil }

// pieces puts the cells.
func (w *shapeWriter) pieces(put func(key, piece []byte) error) error {
	b := w.builder
	if !w.held {
		return nil
	}
	var errs []error
	var parts [][]byte
	at := 0
	for from := 0; from < b.rows; from += cellRows {
		part := []byte{cellsRaw}
		for base := range 2 {
			part = binary.AppendUvarint(part, w.basesOf(from / cellRows)[base])
		}
		for _, end := range w.ends[from:min(b.rows, from+cellRows)] {
			part, at = appendPlain(part, w.cells[at:end]), end
		}
		if len(part) > smallCells {
			frame, err := deflate(part[1:])
			if errs = append(errs, err); len(frame) < len(part)-len(part)/8 {
				part = append([]byte{cellsFrame}, frame...)
			}
		}
		parts = append(parts, seal(salt(b.last, columnOfCells, from/cellRows), part))
		if chunk := from / ChunkRows; (from+cellRows)%ChunkRows == 0 || from+cellRows >= b.rows {
			errs = append(errs, put(pieceKey(b.last, columnOfCells, chunk), appendGroup(nil, salt(b.last, columnOfCells, -1-chunk), parts)))
			parts = slices.Clip(parts)[:0:0]
		}
	}
	return errors.Join(errs...)
}
