package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sort"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// A Version is a version as it is stored or, if that is nil, what it is made of.
type Version struct {
	Stored []byte
	Record
	event.Occurrence
	Labels []byte // a set, as [event.Attributes.LabelSet] returns it
}

// rowSource is where the texts and numbers of a row come from.
type rowSource interface {
	ref(ref int) ([]byte, error)
	value(code uint64) ([]byte, error)
	numbersOf() (*[numColumns]uint64, error) // those that are no codes
}

// A shapeReader makes a version of its shape and its cells.
type shapeReader struct {
	source rowSource
	steps  []byte
	cells  []byte
	bases  [2]uint64
	err    error
}

// errShape reports a shape that makes no sense, although its checksum matches.
var errShape = boltfile.ErrChecksum

func (r *shapeReader) fail(err error) { // the first one says most
	if r.err == nil {
		r.err = err
	}
	r.steps, r.cells = nil, nil
}

// number reads a number (uvarint).
func (r *shapeReader) number(from *[]byte) uint64 {
	v, n := binary.Uvarint(*from)
	if n <= 0 {
		r.fail(errShape)
		return 0
	}
	*from = (*from)[n:]
	return v
}

// take reads so many bytes.
func (r *shapeReader) take(from *[]byte, n uint64) []byte {
	if n > uint64(len(*from)) {
		r.fail(errShape)
		return nil
	}
	b := (*from)[:n]
	*from = (*from)[n:]
	return b
}

// version returns the version with a revision. Its value is appended to dst.
func (r *shapeReader) version(revision uint64, dst []byte) (v Version, err error) {
	head := r.take(&r.steps, shapeHead)
	n, err := r.source.numbersOf()
	if r.err != nil || err != nil {
		return v, errShape
	}
	t := timesOf(n)
	v.Kind, v.Written = head[headKind], unbiased(n[colWritten])
	if head[headPrevious] > 0 {
		behind := r.number(&r.cells)
		if behind > revision {
			r.fail(errShape)
		}
		v.Previous = revision - behind
	}
	v.Occurrence = occurrence(t.second*1e6+int64(n[colMicro]), n[colSpan], n[colCount], n[colNew])
	if v.Counted = v.Count; head[headCounted] > 0 {
		v.Counted += int64(r.number(&r.cells))
	}
	switch head[headMark] {
	case markVersion:
		v.Mark = binary.AppendUvarint(bytes.Clone(versionMark), r.bases[1]+uint64(unzigzag(r.number(&r.cells))))
	case markText:
		v.Mark = r.take(&r.cells, r.number(&r.cells))
	}
	if v.Labels, err = r.source.ref(refLabels); err != nil {
		r.fail(err)
	}
	v.Value = r.message(dst, &t, n)
	return v, r.err
}

// message appends the value.
func (r *shapeReader) message(dst []byte, t *rowTimes, n *[numColumns]uint64) []byte {
	var opened [maxNested]int
	nested, start := 0, len(dst)
	for len(r.steps) > 0 {
		switch step := r.number(&r.steps); step {
		case stepMessage:
			if nested == maxNested {
				r.fail(errShape)
				break
			}
			dst = append(dst, 0)
			opened[nested] = len(dst)
			nested++
		case stepEnd:
			if nested--; nested < 0 {
				r.fail(errShape)
				break
			}
			dst = closeMessage(dst, opened[nested])
		default:
			dst = r.field(dst, step, t, n)
		}
		if len(dst)-start > maxValue {
			r.fail(errShape)
		}
	}
	if nested != 0 || len(r.cells) > 0 {
		r.fail(errShape)
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

// field appends what a step stands for.
func (r *shapeReader) field(dst []byte, step uint64, t *rowTimes, n *[numColumns]uint64) []byte {
	number := func(v uint64) []byte { return protowire.AppendVarint(dst, v) }
	switch step {
	case stepNumber:
		return number(r.number(&r.cells))
	case stepDifference:
		return number(uint64(t.second + unzigzag(r.number(&r.cells))))
	case stepSecond:
		return number(uint64(t.second))
	case stepNanos:
		return number(t.nanos)
	case stepFirstNanos:
		return number(t.firstNanos)
	case stepWritten:
		return number(uint64(t.written))
	case stepCount:
		return number(n[colCount])
	case stepLabels:
		set, err := r.source.ref(refLabels)
		if err != nil {
			r.fail(err)
		}
		return appendLabelFields(dst, set)
	}
	if step > stepLiteral {
		return append(dst, r.take(&r.steps, step-stepLiteral)...)
	}
	return r.text(dst, step, t)
}

// text appends the text that a step stands for, with its length.
func (r *shapeReader) text(dst []byte, step uint64, t *rowTimes) []byte {
	var text []byte
	var err error
	switch step {
	case stepText:
		text = r.take(&r.cells, r.number(&r.cells))
	case stepValue:
		text, err = r.source.value(r.number(&r.cells))
	case stepUUID:
		text = uuidOf(r.take(&r.cells, 16))
	case stepDecimal:
		text = strconv.AppendInt(nil, int64(r.bases[0])+unzigzag(r.number(&r.cells)), 10)
	case stepSuffix:
		text, err = r.suffix(t)
	default:
		if step < stepRef || step >= stepRef+numRefs {
			r.fail(errShape)
			return dst
		}
		text, err = r.source.ref(int(step - stepRef))
	}
	if err != nil || len(dst)+len(text) > 2*maxValue {
		if err == nil {
			err = errShape
		}
		r.fail(err)
		return dst
	}
	return protowire.AppendBytes(dst, text)
}

// suffix returns a text with a number at its end.
func (r *shapeReader) suffix(t *rowTimes) (text []byte, err error) {
	flags := r.take(&r.steps, 1)
	if r.err != nil {
		return nil, r.err
	}
	var prefix []byte
	if flags[0]&suffixOfValue > 0 {
		prefix, err = r.source.value(r.number(&r.cells))
	} else {
		prefix, err = r.source.ref(refObject)
	}
	var v uint64
	if flags[0]&suffixFar == 0 {
		v = uint64(t.first + unzigzag(r.number(&r.cells)))
	} else if b := r.take(&r.cells, 8); b != nil {
		v = binary.BigEndian.Uint64(b)
	}
	text = strconv.AppendUint(append(append(make([]byte, 0, len(prefix)+32), prefix...), '.'), v, 16)
	if flags[0]&suffixCopy > 0 {
		text = hex.AppendEncode(append(text, '.'), r.take(&r.cells, copyBytes))
	}
	return text, err
}

// Records reads the versions of a table. It is for one goroutine.
type Records struct {
	*Table
	chunks [numColumns + 1]openChunk
	cells  []byte // of some rows, verified
	of     int    // which ones they are, 1 beyond
	scan   Scan   // the plain notes and the templates of a chunk
	ends   []int  // of the words of its rows
	row    int
	known  [numColumns]uint64
}

// Records returns a reader of the versions of the table.
func (t *Table) Records() *Records {
	return &Records{Table: t, scan: Scan{table: t, chunk: -1}}
}

// Rows returns how many rows there are.
func (t *Table) Rows() int { return t.rows }

// at returns a number of a row.
func (r *Records) at(column, row int) (uint64, error) {
	c := &r.chunks[column]
	if c.number != row/ChunkRows+1 {
		var err error
		if *c, err = r.openChunk(column, row/ChunkRows, r.chunkLen(row/ChunkRows)); err != nil {
			return 0, err
		}
	}
	return c.at(row % ChunkRows), nil
}

// Revision returns the revision of a row.
func (r *Records) Revision(row int) (uint64, error) {
	beyond, err := r.at(colRevision, row)
	return r.base + uint64(row) + beyond, err
}

// Search returns the first row whose revision is not less than one.
func (r *Records) Search(revision uint64) (row int, err error) {
	if revision <= r.base {
		return 0, nil
	}
	most := int(min(uint64(r.rows), revision-r.base)) // each row has a revision of its own
	least := 0
	if most < r.rows {
		beyond, err := r.at(colRevision, most)
		if err != nil {
			return 0, err
		}
		if beyond == 0 {
			return most, nil
		}
		least = max(0, most-int(min(beyond, math.MaxInt32)))
	}
	row = least + sort.Search(most-least, func(i int) bool {
		at, damage := r.Revision(least + i)
		if damage != nil {
			err = damage
		}
		return at >= revision
	})
	return row, err
}

// Version returns the version of a row, whose value it appends to dst. It reports false if the version is not held
// here. What it returns is valid until the next call.
func (r *Records) Version(row int, dst []byte) (v Version, ok bool, err error) {
	shape, err := r.at(colShape, row)
	if err != nil || shape == noShape {
		return v, false, err
	}
	revision, err := r.Revision(row)
	if err != nil {
		return v, false, err
	}
	r.row = row
	read := shapeReader{source: r}
	if read.cells, read.bases, err = r.cellsOf(row); err == nil && shape == plainShape {
		return Version{Stored: read.cells}, true, nil
	}
	if err == nil {
		read.steps, err = r.text(dictShape, shape)
	}
	if err == nil {
		v, err = read.version(revision, dst)
	}
	if err != nil {
		return v, false, r.damagedRow(row, err)
	}
	return v, true, nil
}

// cellsOf returns the cells of a row.
func (r *Records) cellsOf(row int) (cells []byte, bases [2]uint64, err error) {
	part := row / cellRows
	if r.of != part+1 {
		chunk := row / ChunkRows
		parts := (r.chunkLen(chunk) + cellRows - 1) / cellRows
		found, _, err := chunkOf(r.piece(columnOfCells, chunk), salt(r.id, columnOfCells, -1-chunk), parts, part%(ChunkRows/cellRows))
		if err == nil {
			found, err = openCells(salt(r.id, columnOfCells, part), found)
		}
		if err != nil {
			return nil, bases, r.damaged(columnOfCells, chunk)
		}
		r.cells, r.of = found, part+1
	}
	read := shapeReader{cells: r.cells}
	for i := range bases {
		bases[i] = read.number(&read.cells)
	}
	for range row%cellRows + 1 {
		cells = read.take(&read.cells, read.number(&read.cells))
	}
	return cells, bases, read.err
}

// openCells verifies the cells of some rows.
func openCells(salt uint64, part []byte) ([]byte, error) {
	part, err := unseal(salt, part)
	switch {
	case err != nil:
		return nil, err
	case len(part) > 0 && part[0] == cellsRaw:
		return part[1:], nil
	case len(part) > 0 && part[0] == cellsFrame:
		return inflate(part[1:])
	}
	return nil, errShape
}

// ref returns a text of the present row.
func (r *Records) ref(ref int) ([]byte, error) {
	switch ref {
	case refNote:
		return r.note()
	case refObject, refObjectUID, refObjectNamespace:
		return r.objectText(ref)
	case refVersion, refPath, refLabels:
	default:
		return r.code(ref, ref)
	}
	if ref == refLabels {
		return r.code(colLabels, dictLabels)
	}
	place, err := r.code(colPlace, dictPlace)
	version, path, _ := cutPlace(place)
	if ref == refPath {
		return path, err
	}
	return version, err
}

// code returns the text of a code of the present row.
func (r *Records) code(column, dict int) ([]byte, error) {
	code, err := r.at(column, r.row)
	if err != nil {
		return nil, err
	}
	return r.text(dict, code)
}

// objectText returns a text of the object of the present row.
func (r *Records) objectText(ref int) ([]byte, error) {
	if ref == refObject {
		return r.code(colObject, dictObject)
	}
	of, err := r.code(colObject, dictObjectOf)
	if err != nil {
		return nil, err
	}
	_, namespace, uid, ok := cutObject(of)
	switch {
	case !ok:
		return nil, errDictionary
	case ref == refObjectUID:
		return uidOf(uid), nil
	}
	return r.text(colNamespace, uint64(namespace))
}

func (r *Records) value(code uint64) ([]byte, error) { return r.text(dictValues, code) }

// numbersOf returns those numbers of the present row that are no codes.
func (r *Records) numbersOf() (*[numColumns]uint64, error) {
	for _, column := range [...]int{colSecond, colMicro, colSpan, colCount, colNew, colWritten} {
		var err error
		if r.known[column], err = r.at(column, r.row); err != nil {
			return nil, err
		}
	}
	return &r.known, nil
}

// note returns the note of the present row.
func (r *Records) note() ([]byte, error) {
	template, err := r.at(colTemplate, r.row)
	if err != nil {
		return nil, err
	}
	if chunk := r.row / ChunkRows; r.scan.chunk != chunk {
		r.scan.chunk, r.scan.have, r.scan.notes, r.ends = chunk, 0, nil, nil
	}
	if template == plainTemplate {
		return r.scan.plainNote(r.row % ChunkRows)
	}
	text, err := r.text(dictTemplate, template)
	if err != nil {
		return nil, err
	}
	at, err := r.wordsBefore()
	if err != nil {
		return nil, err
	}
	words := &r.chunks[colWords]
	note := make([]byte, 0, 2*len(text))
	for _, c := range text {
		if c != hole {
			note = append(note, c)
			continue
		}
		word, err := r.text(dictWords, words.at(at))
		if err != nil {
			return nil, err
		}
		note = append(note, word...)
		at++
	}
	return note, nil
}

// wordsBefore opens the words of the chunk of the present row, and returns how many of them are of rows before it.
func (r *Records) wordsBefore() (int, error) {
	chunk := r.row / ChunkRows
	if r.ends == nil {
		holes, err := r.holesOf()
		if err != nil {
			return 0, err
		}
		templates, err := r.scan.whole(colTemplate)
		if err != nil {
			return 0, err
		}
		end := 0
		ends := make([]int, len(templates))
		for i, template := range templates {
			end += holes[template]
			ends[i] = end
		}
		if r.chunks[colWords], err = r.openChunk(colWords, chunk, end); err != nil {
			return 0, err
		}
		r.ends = ends
	}
	if row := r.row % ChunkRows; row > 0 {
		return r.ends[row-1], nil
	}
	return 0, nil
}
