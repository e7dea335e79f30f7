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

// A Table is rows that are read. It is for one goroutine, and valid as long as its pieces are.
type Table struct {
	get func(key []byte) []byte // returns a piece, nil if it is missing
	*Known
}

// Known is what was read of a table once, and what all its readers share. It is valid as long as the pieces are,
// wherever they are read from, and safe for concurrent use.
type Known struct {
	id       uint64 // the last revision
	base     uint64
	rows     int
	plains   int   // rows with a plain note
	from, to int64 // seconds of the first and the last observation

	mu     sync.Mutex
	bytes  int // about what the rest takes
	dicts  [numDicts]*dictionary
	folds  [numDicts]*dictionary // folded
	holes  []int                 // by template
	places []place
}

// Reader returns the table as it is read from some place.
func (k *Known) Reader(get func(key []byte) []byte) *Table { return &Table{get, k} }

// Bytes returns about how much memory it takes.
func (k *Known) Bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}

// Open returns the table that ends with a revision.
func Open(last uint64, get func(key []byte) []byte) (*Table, error) {
	t := &Table{get, &Known{id: last}}
	for n := range 2 {
		m, err := unseal(salt(last, columnOfMeta, n), get(pieceKey(last, columnOfMeta, n)))
		if err != nil || len(m) != metaBytes {
			continue
		}
		t.rows, t.base = int(binary.BigEndian.Uint32(m)), binary.BigEndian.Uint64(m[4:])
		t.from, t.to = unbiased(binary.BigEndian.Uint64(m[12:])), unbiased(binary.BigEndian.Uint64(m[20:]))
		t.plains = int(binary.BigEndian.Uint32(m[28:]))
		if t.rows > 0 && t.rows <= MaxRows && t.base <= last {
			return t, nil
		}
	}
	return nil, fmt.Errorf("the columns up to revision %d: what they say of themselves: %w", last, boltfile.ErrChecksum)
}

// Next returns the last revision of the first table behind a revision, of those that a cursor seeks among.
func Next(after uint64, seek func(key []byte) []byte) (last uint64, ok bool) {
	key := seek(pieceKey(after+1, 0, 0))
	if len(key) != 11 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key), true
}

// Times returns the seconds of the first and the last observation.
func (k *Known) Times() (first, last int64) { return k.from, k.to }

func (t *Table) chunks() int { return (t.rows + ChunkRows - 1) / ChunkRows }

// chunkLen returns how many rows a chunk has.
func (t *Table) chunkLen(chunk int) int { return min(ChunkRows, t.rows-chunk*ChunkRows) }

// damaged names what is damaged.
func (t *Table) damaged(column, chunk int) error {
	return fmt.Errorf("column %d of the rows %d to %d up to revision %d: %w", column, chunk*ChunkRows, min(t.rows, (chunk+1)*ChunkRows)-1, t.id, boltfile.ErrChecksum)
}

// read reads the numbers of a chunk. Codes are less than limit.
func (t *Table) read(dst []uint64, column, chunk, limit int) error {
	group := chunk / groupChunks
	piece := t.get(pieceKey(t.id, column, group))
	in := min(groupChunks, t.chunks()-group*groupChunks)
	found, behind, err := chunkOf(piece, salt(t.id, column, -1-group), in, chunk%groupChunks)
	if err == nil {
		err = readChunk(dst, salt(t.id, column, chunk), found, behind)
	}
	if err != nil {
		return t.damaged(column, chunk)
	}
	if limit > 0 {
		most := uint64(0)
		for _, n := range dst {
			most = max(most, n)
		}
		if most >= uint64(limit) {
			return t.damaged(column, chunk)
		}
	}
	return nil
}

// dict returns a dictionary: if it is damaged, its copy.
func (t *Table) dict(dict int) (*dictionary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.dicts[dict]; d != nil {
		return d, nil
	}
	content, err := unseal(salt(t.id, columnOfDicts+dict, 0), t.get(pieceKey(t.id, columnOfDicts+dict, 0)))
	if err != nil {
		if content, err = unseal(salt(t.id, columnOfCopy+dict, 0), t.get(pieceKey(t.id, columnOfCopy+dict, 0))); err == nil {
			content, err = inflate(content)
		}
	}
	var d *dictionary
	if err == nil {
		d, err = parseDictionary(content)
	}
	if err != nil {
		return nil, fmt.Errorf("dictionary %d up to revision %d: %w", dict, t.id, boltfile.ErrChecksum)
	}
	t.dicts[dict], t.bytes = d, t.bytes+4*d.len()
	return d, nil
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

// limit returns how many codes a column can have, 0 if it has none.
func (t *Table) limit(column int) (int, error) {
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
	b := of.at(code)
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
	frame, err := unseal(salt(t.id, columnOfPlain, chunk), t.get(pieceKey(t.id, columnOfPlain, chunk)))
	if err == nil {
		frame, err = inflate(frame)
	}
	if err != nil {
		return nil, t.damaged(columnOfPlain, chunk)
	}
	return frame, nil
}

// Verify returns an error if any of the table is damaged, but for a dictionary that has a copy.
func (t *Table) Verify() error {
	for column := range numColumns + 1 {
		for chunk := range t.chunks() {
			group := chunk / groupChunks
			in := min(groupChunks, t.chunks()-group*groupChunks)
			found, _, err := chunkOf(t.get(pieceKey(t.id, column, group)), salt(t.id, column, -1-group), in, chunk%groupChunks)
			if err == nil {
				_, err = unseal(salt(t.id, column, chunk), found)
			}
			if err != nil {
				return t.damaged(column, chunk)
			}
		}
	}
	for dict := range numDicts {
		if _, err := t.dict(dict); err != nil {
			return err
		}
	}
	if _, err := t.placesOf(); err != nil {
		return err
	}
	for chunk := range t.chunks() {
		if t.get(pieceKey(t.id, columnOfPlain, chunk)) != nil {
			if _, err := t.plain(chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lost returns the key of a piece that stands for a table that is lost: [Open] says so.
func Lost(last uint64) []byte { return pieceKey(last, columnOfMeta, 0) }

// Damaged returns the error of a piece that is not what it was.
func Damaged(key []byte) error {
	return fmt.Errorf("column %d, piece %d: %w", key[8], binary.BigEndian.Uint16(key[9:]), boltfile.ErrChecksum)
}

// ChunkTimes returns the seconds in which the rows of a chunk were observed, or further ones.
func (s *Scan) ChunkTimes(chunk int) (first, last int64, err error) {
	least, most, err := s.table.bounds(colSecond, chunk)
	if err != nil {
		return 0, 0, err
	}
	_, span, err := s.table.bounds(colSpan, chunk)
	if first, last = unbiased(least), unbiased(most); span > 0 {
		first = max(first-int64(min(span/1e6, math.MaxInt64/4))-1, s.table.from)
	}
	return first, min(last, s.table.to), err
}

// bounds returns bounds of the numbers of a chunk.
func (t *Table) bounds(column, chunk int) (least, most uint64, err error) {
	group := chunk / groupChunks
	in := min(groupChunks, t.chunks()-group*groupChunks)
	found, _, err := chunkOf(t.get(pieceKey(t.id, column, group)), salt(t.id, column, -1-group), in, chunk%groupChunks)
	if err == nil {
		least, most, err = chunkBounds(salt(t.id, column, chunk), found)
	}
	if err != nil {
		return 0, 0, t.damaged(column, chunk)
	}
	return least, most, nil
}
