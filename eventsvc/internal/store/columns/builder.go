package columns

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/event"
)

const (
	// MaxRows is the most rows of a table.
	MaxRows = 1 << 17
	// fullBytes is how many bytes of texts a table has about, at most.
	fullBytes = 24 << 20
)

// A Builder makes a table of rows, which come in the order of their revisions.
type Builder struct {
	rows    int
	after   uint64
	base    uint64 // the first revision
	last    uint64
	numbers [numColumns][]uint64
	words   []uint64
	wordEnd []int // of each row in words
	codes   [numDicts]map[string]uint32
	dicts   [numDicts]dictionary
	plain   [][]byte // by chunk
	plains  int
	lights  int
	marked  int   // rows with a gap
	first   int64 // second of the first observation
	held    int64 // of a version that is held
	latest  int64 // second of the last observation
	places  []place
	placed  map[[2]uint64]int // by namespace and cluster
	bytes   int               // about what the texts and the cells take
	shapes  shapeWriter

	split event.NoteSplitter
	room  texts
	key   []byte
}

// NewBuilder returns a builder of all rows behind a revision.
func NewBuilder(after uint64) *Builder {
	b := &Builder{after: after, placed: map[[2]uint64]int{}, first: math.MaxInt64, held: math.MaxInt64, latest: math.MinInt64}
	for i := range b.codes {
		b.codes[i] = map[string]uint32{}
	}
	b.code(dictTemplate, []byte{plainMark})
	for shape := range ownShapes {
		b.code(dictShape, []byte{byte(shape)})
	}
	b.shapes.builder = b
	return b
}

// Rows returns how many rows there are.
func (b *Builder) Rows() int { return b.rows }

// Full reports whether there are so many rows, or so many bytes of them, that the table should be finished.
func (b *Builder) Full(rows int) bool { return b.rows >= rows || b.bytes >= fullBytes }

// Last returns the last revision, 0 without rows.
func (b *Builder) Last() uint64 { return b.last }

// code returns the code of a text.
func (b *Builder) code(dict int, text []byte) uint64 {
	code, ok := b.codes[dict][string(text)]
	if !ok {
		code = uint32(b.dicts[dict].add(text))
		b.codes[dict][string(text)] = code
		b.bytes += len(text)
	}
	return uint64(code)
}

// Add adds a row. It reports whether the table has its version.
func (b *Builder) Add(r *Row) (held bool) {
	if b.rows == 0 {
		b.base = r.Revision
	}
	t := &b.room
	clear(t[:])
	uid, namespace := t.split(r)
	note := r.Note
	if r.Light != nil {
		note = nil
		b.lights++
	}
	var n [numColumns]uint64
	for column := range dictTemplate {
		if column != dictObject {
			n[column] = b.code(column, t[column])
		}
	}
	n[colObject] = b.object(t[dictObject], n[colKind], b.code(colNamespace, namespace), uid)
	n[colTemplate] = b.note(note, t[dictObject], r.Namespace)
	r.numbers(&n)
	b.observed(&n, r.Light != nil)
	if n[colGap] != gapNone {
		b.marked++
	}
	b.addPlace(n[colNamespace], n[colCluster])
	n[colRevision] = r.Revision - b.base - uint64(b.rows)
	b.shapes.row(r, &n, uid, namespace)
	for column := range n {
		b.numbers[column] = append(b.numbers[column], n[column])
	}
	b.wordEnd = append(b.wordEnd, len(b.words))
	b.rows, b.last = b.rows+1, r.Revision
	return n[colShape] != noShape
}

// object returns the code of an object. Different ones may have the same name.
func (b *Builder) object(name []byte, kind, namespace uint64, uid []byte) uint64 {
	key := binary.AppendUvarint(binary.AppendUvarint(b.key[:0], kind), namespace)
	key = appendUID(key, uid)
	of := len(key)
	key = append(key, name...)
	b.key = key
	code, ok := b.codes[dictObject][string(key)]
	if !ok {
		code = uint32(b.dicts[dictObject].add(name))
		b.codes[dictObject][string(key)] = code
		b.dicts[dictObjectOf].add(key[:of])
		b.bytes += len(key)
	}
	return uint64(code)
}

// note returns the code of the template of a note, and adds its words.
func (b *Builder) note(note, object, namespace []byte) uint64 {
	if b.split.Split(note, object, namespace) && b.dicts[dictWords].len()+len(b.split.Words) <= maxWords {
		if _, known := b.codes[dictTemplate][string(b.split.Template)]; known || b.dicts[dictTemplate].len() < maxTemplates {
			for _, word := range b.split.Words {
				b.words = append(b.words, b.code(dictWords, word))
			}
			return b.code(dictTemplate, b.split.Template)
		}
	}
	chunk := b.rows / ChunkRows
	for len(b.plain) <= chunk {
		b.plain = append(b.plain, nil)
	}
	b.plain[chunk] = appendPlain(b.plain[chunk], note)
	b.bytes += len(note)
	b.plains++
	return plainTemplate
}

var errTooMany = errors.New("a table of columns has too many rows or texts")

// Pieces calls put with the pieces of the table: the key and the content of each.
func (b *Builder) Pieces(put func(key []byte, piece []byte) error) error { return b.pieces(put, true) }

// pieces is Pieces, with the copies of the dictionaries or without them.
func (b *Builder) pieces(put func(key []byte, piece []byte) error, copies bool) error {
	if b.rows == 0 || b.rows > MaxRows {
		return errTooMany
	}
	if err := b.meta(put); err != nil {
		return err
	}
	for column := range numColumns + 1 {
		for first := 0; first < b.rows; first += groupChunks * ChunkRows {
			var chunks [][]byte
			for from := first; from < min(b.rows, first+groupChunks*ChunkRows); from += ChunkRows {
				to := min(b.rows, from+ChunkRows)
				var numbers []uint64
				if column < numColumns {
					numbers = b.numbers[column][from:to]
				} else {
					numbers = b.words[wordsBefore(b.wordEnd, from):wordsBefore(b.wordEnd, to)]
				}
				chunks = append(chunks, appendChunk(nil, salt(b.last, column, from/ChunkRows), numbers))
			}
			group := first / ChunkRows / groupChunks
			if err := put(pieceKey(b.last, column, group), appendGroup(nil, salt(b.last, column, -1-group), chunks)); err != nil {
				return err
			}
		}
	}
	places := func(n int) error { return b.put(put, columnOfPlaces, n, appendPlaces(nil, b.places)) }
	return errors.Join(b.dictionaries(put, copies), b.plainNotes(put), b.shapes.pieces(put), places(0), places(1))
}

// Table returns the table of the rows so far, in memory. Its dictionaries have no copies: these take most of the time,
// and are for damage of a file.
func (b *Builder) Table() (*Table, error) {
	pieces := Pieces{}
	err := b.pieces(func(key, piece []byte) error {
		_, at, _ := ParseKey(key)
		pieces[at] = slices.Clip(piece)
		return nil
	}, false)
	if err != nil {
		return nil, err
	}
	return Open(b.last, pieces)
}

func (b *Builder) dictionaries(put func(key []byte, piece []byte) error, copies bool) error {
	for dict := range b.dicts {
		content := appendDictionary(nil, salt(b.last, columnOfDicts+dict, 0), &b.dicts[dict])
		if len(content) > maxDictionary {
			return errTooMany
		}
		if err := put(pieceKey(b.last, columnOfDicts+dict, 0), content); err != nil {
			return err
		}
		if !copies {
			continue
		}
		frame, err := deflate(content)
		if err == nil {
			err = b.put(put, columnOfCopy+dict, 0, frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) plainNotes(put func(key []byte, piece []byte) error) error {
	for chunk, notes := range b.plain {
		if len(notes) == 0 {
			continue
		}
		frame, err := deflate(notes)
		if err != nil {
			return err
		}
		if err := b.put(put, columnOfPlain, chunk, frame); err != nil {
			return err
		}
	}
	return nil
}

// observed notes when the row that comes next was observed: from its first time on if it adds all of its count, as
// [event.Occurrence.Spread] says, else at its last time.
func (b *Builder) observed(n *[numColumns]uint64, light bool) {
	last := unbiased(n[colSecond])
	first := last
	if n[colNew] > 1 && n[colNew] == n[colCount] {
		first = floor(last*1e6+int64(n[colMicro])-int64(min(n[colSpan], math.MaxInt64/4)), 1e6)
	}
	b.first, b.latest = min(b.first, first), max(b.latest, last)
	if !light {
		b.held = min(b.held, first)
	}
}

// meta puts what the table says of itself, twice.
func (b *Builder) meta(put func(key []byte, piece []byte) error) error {
	m := binary.BigEndian.AppendUint32(nil, uint32(b.rows))
	m = binary.BigEndian.AppendUint64(m, b.base)
	m = binary.BigEndian.AppendUint64(m, b.after)
	for _, second := range []int64{b.first, b.latest, b.held} {
		m = binary.BigEndian.AppendUint64(m, biased(second))
	}
	m = binary.BigEndian.AppendUint32(m, uint32(b.plains))
	m = binary.BigEndian.AppendUint32(m, uint32(b.lights))
	m = binary.BigEndian.AppendUint32(m, uint32(b.marked))
	return errors.Join(b.put(put, columnOfMeta, 0, slices.Clone(m)), b.put(put, columnOfMeta, 1, m))
}

// put puts a piece with a checksum.
func (b *Builder) put(put func(key, piece []byte) error, column, number int, piece []byte) error {
	return put(pieceKey(b.last, column, number), seal(salt(b.last, column, number), piece))
}

const metaBytes = 4 + 5*8 + 3*4

// pieceKey returns the key of a piece: the last revision of the table 8, column 1, number 2.
func pieceKey(table uint64, column, number int) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 11), table)
	return binary.BigEndian.AppendUint16(append(key, byte(column)), uint16(number))
}
