package columns

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// Pieces are the pieces of a table, by the column and the number of each: see [ParseKey].
type Pieces map[uint32][]byte

func pieceAt(column, number int) uint32 { return uint32(column)<<16 | uint32(number) }

// ParseKey returns the last revision of the table of a piece, and where the piece is in it. It reports false if that is
// no key of a piece.
func ParseKey(key []byte) (last uint64, at uint32, ok bool) {
	if len(key) != 11 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key), pieceAt(int(key[8]), int(binary.BigEndian.Uint16(key[9:]))), true
}

// A Table is rows that are read. It is safe for concurrent use, and valid as long as its pieces are.
type Table struct {
	Span
	pieces  Pieces
	growing *growing // instead of pieces; nil: there are these
	id      uint64   // the last revision
	base    uint64
	after   uint64 // it has all rows behind this revision
	plains  int    // rows with a plain note

	mu     sync.Mutex
	bytes  int // about what was read once, and is kept
	dicts  [numDicts]*dictionary
	folds  [numDicts]*dictionary // folded
	finds  [numDicts]*finder     // by text, or of objects by their encoded UID
	holes  []int                 // by template
	places []place
}

// Bytes returns about how much memory the table takes beside its pieces.
func (t *Table) Bytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

// Open returns the table that ends with a revision.
func Open(last uint64, pieces Pieces) (*Table, error) {
	t := &Table{pieces: pieces, id: last, bytes: 64 * len(pieces)}
	for n := range 2 {
		m, err := unseal(salt(last, columnOfMeta, n), t.piece(columnOfMeta, n))
		if err != nil || len(m) != metaBytes {
			continue
		}
		t.rows, t.base, t.after = int(binary.BigEndian.Uint32(m)), binary.BigEndian.Uint64(m[4:]), binary.BigEndian.Uint64(m[12:])
		t.from, t.to = unbiased(binary.BigEndian.Uint64(m[20:])), unbiased(binary.BigEndian.Uint64(m[28:]))
		t.held = unbiased(binary.BigEndian.Uint64(m[36:]))
		t.plains, t.lights, t.marked = int(binary.BigEndian.Uint32(m[44:])), int(binary.BigEndian.Uint32(m[48:])), int(binary.BigEndian.Uint32(m[52:]))
		if t.rows > 0 && t.rows <= MaxRows && t.after < t.base && t.base <= last {
			return t, nil
		}
	}
	return nil, fmt.Errorf("the columns up to revision %d: what they say of themselves: %w", last, boltfile.ErrChecksum)
}

func (t *Table) piece(column, number int) []byte { return t.pieces[pieceAt(column, number)] }

// Range returns the revisions of which the table has all rows: those behind one, up to another.
func (t *Table) Range() (after, last uint64) { return t.after, t.id }

// A Span says when the rows of a table were observed, and whether some of them report a gap.
type Span struct {
	rows     int
	lights   int   // of versions that are no longer held
	marked   int   // with a gap
	from, to int64 // seconds of the first and the last observation
	held     int64 // second of the first observation by a version that is held
}

// Times returns the seconds of the first and the last observation.
func (s *Span) Times() (first, last int64) { return s.from, s.to }

// May reports whether rows of the table may match, as far as that is known of them.
func (s *Span) May(q *Query) bool {
	return s.from < q.To && s.to >= q.From && (s.marked > 0 || q.Filter == nil || !onGaps(q.Filter))
}

// onGaps reports whether a filter matches nothing but versions that are marked with a gap.
func onGaps(f *event.Filter) bool {
	return f.Kind == event.FilterGap || f.Kind == event.FilterAll && slices.ContainsFunc(f.Parts, onGaps)
}

// Begin returns the second of the first observation that counts, if those before a second do so only if they are of
// versions that are held. It reports false if there is none.
func (s *Span) Begin(since int64) (first int64, ok bool) {
	first, ok = s.held, s.lights < s.rows
	if s.lights > 0 && s.to >= since {
		first, ok = min(first, max(s.from, since)), true
	}
	return first, ok
}

func (t *Table) chunks() int { return (t.rows + ChunkRows - 1) / ChunkRows }

// chunkLen returns how many rows a chunk has.
func (t *Table) chunkLen(chunk int) int { return min(ChunkRows, t.rows-chunk*ChunkRows) }

// damaged names what is damaged.
func (t *Table) damaged(column, chunk int) error {
	return fmt.Errorf("column %d of the rows %d to %d up to revision %d: %w", column, chunk*ChunkRows, min(t.rows, (chunk+1)*ChunkRows)-1, t.id, boltfile.ErrChecksum)
}

// openChunk verifies a chunk of a column, which has so many numbers.
func (t *Table) openChunk(column, chunk, numbers int) (openChunk, error) {
	return t.openIn(&openGroup{}, column, chunk, numbers)
}

// An openGroup is a piece of chunks whose head was verified.
type openGroup struct {
	number      int // 1 beyond that of the piece
	piece, head []byte
}

// openIn is openChunk by the group of the chunk that was opened before.
func (t *Table) openIn(g *openGroup, column, chunk, numbers int) (c openChunk, err error) {
	if group := chunk / groupChunks; g.number != group+1 {
		*g = openGroup{number: group + 1, piece: t.piece(column, group)}
		if g.head, err = headOf(g.piece, salt(t.id, column, -1-group), min(groupChunks, t.chunks()-group*groupChunks)); err != nil {
			g.number = 0
			return c, t.damaged(column, chunk)
		}
	}
	found, behind, err := cutChunk(g.piece, g.head, chunk%groupChunks)
	if err == nil {
		c, err = parseChunk(salt(t.id, column, chunk), found, behind, numbers)
	}
	if err != nil {
		return c, t.damaged(column, chunk)
	}
	c.number = chunk + 1
	return c, nil
}

// damagedRow names the row that is damaged.
func (t *Table) damagedRow(row int, err error) error {
	return fmt.Errorf("row %d up to revision %d: %w", row, t.id, err)
}

// dict returns a dictionary: if it is damaged, its copy.
func (t *Table) dict(dict int) (*dictionary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.dicts[dict]; d != nil {
		return d, nil
	}
	d, err := parseDictionary(salt(t.id, columnOfDicts+dict, 0), t.piece(columnOfDicts+dict, 0))
	if err != nil {
		d, err = t.copyOf(dict)
	}
	if err != nil {
		return nil, fmt.Errorf("dictionary %d up to revision %d: %w", dict, t.id, boltfile.ErrChecksum)
	}
	t.dicts[dict], t.bytes = d, t.bytes+4*d.len()
	return d, nil
}

// copyOf returns the copy of a dictionary.
func (t *Table) copyOf(dict int) (*dictionary, error) {
	content, err := unseal(salt(t.id, columnOfCopy+dict, 0), t.piece(columnOfCopy+dict, 0))
	if err == nil {
		content, err = inflate(content)
	}
	if err != nil {
		return nil, err
	}
	return parseDictionary(salt(t.id, columnOfDicts+dict, 0), content)
}

// text returns the text of a code. Unless the dictionary was read before, it reads no others than those beside it.
func (t *Table) text(dict int, code uint64) ([]byte, error) {
	t.mu.Lock()
	d := t.dicts[dict]
	t.mu.Unlock()
	if d == nil {
		text, err := textIn(salt(t.id, columnOfDicts+dict, 0), t.piece(columnOfDicts+dict, 0), code)
		if err == nil {
			return text, nil
		}
		if d, err = t.dict(dict); err != nil {
			return nil, err
		}
	}
	if code >= uint64(d.len()) {
		return nil, errDictionary
	}
	return d.at(int(code)), nil
}

// folded returns a dictionary with each text folded, as it is searched.
func (t *Table) folded(dict int) (*dictionary, error) {
	d, err := t.dict(dict)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.folds[dict] == nil {
		if slices.Contains(otherColumns[:], dict) {
			d = &dictionary{blank(d.text), d.ends}
		}
		t.folds[dict] = d.folded()
		t.bytes += len(d.text) + 4*d.len()
	}
	return t.folds[dict], nil
}

// finder returns a finder of the texts of a dictionary, or of the UIDs of objects.
func (t *Table) finder(dict int) (*finder, error) {
	d, err := t.dict(dict)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finds[dict] == nil {
		key := d.at
		if dict == dictObjectOf {
			key = func(code int) []byte {
				_, _, uid, _ := cutObject(d.at(code))
				return uid
			}
		}
		t.finds[dict] = &finder{codes: d.len(), key: key}
		if t.growing == nil { // else there is another table soon
			t.finds[dict].index()
			t.bytes += 12 * d.len()
		}
	}
	return t.finds[dict], nil
}

// limit returns how many codes a column can have, 0 if it has none.
func (t *Table) limit(column int) (int, error) {
	if column == colGap {
		return gapDropped + 1, nil
	}
	if column > dictTemplate && column != colWords {
		return 0, nil
	}
	if column == colWords {
		column = dictWords
	}
	d, err := t.dict(column)
	if err != nil {
		return 0, err
	}
	return d.len(), nil
}

// object returns the object of a code.
func (t *Table) object(code int) (o event.Regarding, err error) {
	names, err := t.dict(dictObject)
	if err != nil {
		return o, err
	}
	kinds, err := t.dict(colKind)
	if err != nil {
		return o, err
	}
	kind, namespace, uid, err := t.objectOf(code)
	if err != nil || kind >= kinds.len() {
		return o, cmp.Or(err, errDictionary)
	}
	return event.Regarding{Kind: string(kinds.at(kind)), Namespace: string(namespace), Name: string(names.at(code)), UID: string(uid)}, nil
}

// objectOf returns what tells an object from others of its name.
func (t *Table) objectOf(code int) (kind int, namespace, uid []byte, err error) {
	of, err := t.dict(dictObjectOf)
	if err != nil {
		return 0, nil, nil, err
	}
	namespaces, err := t.dict(colNamespace)
	if err != nil {
		return 0, nil, nil, err
	}
	kind, ns, encoded, ok := splitObject(of, code)
	if !ok || ns >= namespaces.len() {
		return 0, nil, nil, errDictionary
	}
	return kind, namespaces.at(ns), uidOf(encoded), nil
}

// splitObject splits what tells an object from others: the codes of its kind and its namespace, and its encoded UID.
func splitObject(of *dictionary, code int) (kind, namespace int, uid []byte, ok bool) {
	if code >= of.len() {
		return 0, 0, nil, false
	}
	return cutObject(of.at(code))
}

func cutObject(b []byte) (kind, namespace int, uid []byte, ok bool) {
	k, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, nil, false
	}
	ns, m := binary.Uvarint(b[n:])
	if m <= 0 || k > math.MaxInt32 || ns > math.MaxInt32 {
		return 0, 0, nil, false
	}
	return int(k), int(ns), b[n+m:], true
}

// holesOf returns how many words each template has.
func (t *Table) holesOf() ([]int, error) {
	d, err := t.dict(dictTemplate)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holes == nil {
		holes := make([]int, d.len())
		for code := range holes {
			holes[code] = bytes.Count(d.at(code), []byte{hole})
		}
		t.holes, t.bytes = holes, t.bytes+8*len(holes)
	}
	return t.holes, nil
}

// plain returns the plain notes of a chunk.
func (t *Table) plain(chunk int) ([]byte, error) {
	if t.growing != nil {
		return t.growing.plain[chunk], nil
	}
	frame, err := unseal(salt(t.id, columnOfPlain, chunk), t.piece(columnOfPlain, chunk))
	if err == nil {
		frame, err = inflate(frame)
	}
	if err != nil {
		return nil, t.damaged(columnOfPlain, chunk)
	}
	return frame, nil
}

// ChunkTimes returns the seconds in which the rows of a chunk were observed, or further ones.
func (s *Scan) ChunkTimes(chunk int) (first, last int64, err error) {
	t := &s.times
	if t.chunk != chunk+1 {
		least, most, err := s.bounds(colSecond, chunk)
		if err != nil {
			return 0, 0, err
		}
		_, span, err := s.bounds(colSpan, chunk)
		if err != nil {
			return 0, 0, err
		}
		*t = chunkTimes{chunk: chunk + 1, first: unbiased(least), last: min(unbiased(most), s.table.to), spans: span > 0}
		if t.spans {
			t.first = max(t.first-int64(min(span/1e6, math.MaxInt64/4))-1, s.table.from)
		}
	}
	return t.first, t.last, nil
}

// bounds returns bounds of the numbers of a chunk.
func (s *Scan) bounds(column, chunk int) (least, most uint64, err error) {
	if g := s.table.growing; g != nil {
		numbers := g.chunk(column, chunk)
		return slices.Min(numbers), slices.Max(numbers), nil
	}
	c, err := s.open(column, chunk)
	return c.least, c.most(), err
}
