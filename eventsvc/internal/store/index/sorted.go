package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// bucketSorted has the keys of the events that existed when they were packed last, in order and many in one entry. A
// key takes eighty bytes as an entry of its own, and a quarter of that here, because those that follow each other begin
// alike, and the names of events end with a number in hexadecimal digits. [Index.Pack] and [Index.Rewrite] bring keys
// here; merges leave theirs in bucketKeys, where they hide those here.
//
//	key: the last key of the group
//	value: the first revision of the group (uvarint), and for each key, in order
//	  how many bytes it has from the one before (uvarint) | length of what follows (uvarint) | what follows |
//	  number of hexadecimal digits behind that, at the end of the key (uvarint) | two of them in each byte |
//	  revision - the first one (uvarint)
//	and then CRC32C of key and value 4
const bucketSorted = "sorted"

// A group is full when it has so many bytes: with its key, a page has four of them. With 900, many pages had room for
// three.
const keyGroupBytes = 820

// A keyGroup is an entry of bucketSorted.
type keyGroup struct {
	first uint64 // revision
	keys  []byte
}

func groupChecksum(key, value []byte) uint32 {
	return boltfile.Checksum(uint64(boltfile.Checksum(uint64(len(key)), key)), value)
}

func parseKeyGroup(k, v []byte) (g keyGroup, err error) {
	if len(v) >= 4 && be.Uint32(v[len(v)-4:]) == groupChecksum(k, v[:len(v)-4]) {
		if first, n := binary.Uvarint(v[:len(v)-4]); n > 0 {
			return keyGroup{first, v[n : len(v)-4]}, nil
		}
	}
	return g, fmt.Errorf("index: keys up to %q: %w", k, boltfile.ErrChecksum)
}

// each calls f with the keys, in order, until it returns false. A key is valid until f returns. Room is for keys.
func (g keyGroup) each(room []byte, f func(key []byte, p Pointer) bool) error {
	rest, key := g.keys, room[:0]
	for len(rest) > 0 {
		same, n := binary.Uvarint(rest)
		if n <= 0 || same > uint64(len(key)) {
			return boltfile.ErrChecksum
		}
		rest = rest[n:]
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return boltfile.ErrChecksum
		}
		key = append(key[:same], rest[n:n+int(size)]...)
		rest = rest[n+int(size):]
		digits, n := binary.Uvarint(rest)
		if n <= 0 || digits > 2*uint64(len(rest)-n) {
			return boltfile.ErrChecksum
		}
		rest = rest[n:]
		for i := range int(digits) {
			key = append(key, hexDigits[rest[i/2]>>(4-i%2*4)&15])
		}
		rest = rest[(digits+1)/2:]
		revision, n := binary.Uvarint(rest)
		if n <= 0 {
			return boltfile.ErrChecksum
		}
		if rest = rest[n:]; !f(key, NewPointer(g.first+revision, false)) {
			return nil
		}
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// appendKey appends a key to those of a group.
func appendKey(dst, before, key []byte, revision uint64) []byte {
	same := common(before, key)
	end := len(key)
	for end > same && strings.IndexByte(hexDigits, key[end-1]) >= 0 {
		end--
	}
	dst = binary.AppendUvarint(dst, uint64(same))
	dst = binary.AppendUvarint(dst, uint64(end-same))
	dst = append(dst, key[same:end]...)
	dst = binary.AppendUvarint(dst, uint64(len(key)-end))
	for i, c := range key[end:] {
		digit := byte(strings.IndexByte(hexDigits, c))
		if i%2 == 0 {
			dst = append(dst, digit<<4)
		} else {
			dst[len(dst)-1] |= digit
		}
	}
	return binary.AppendUvarint(dst, revision)
}

// findSorted finds a key in a bucket, of which there may be none.
func findSorted(sorted *bbolt.Bucket, key []byte) (p Pointer, ok bool, err error) {
	if sorted == nil {
		return 0, false, nil
	}
	k, v := sorted.Cursor().Seek(key)
	if k == nil {
		return 0, false, nil
	}
	g, err := parseKeyGroup(k, v)
	if err == nil {
		var room [128]byte
		err = g.each(room[:], func(at []byte, q Pointer) bool {
			order := bytes.Compare(at, key)
			if order == 0 {
				p, ok = q, true
			}
			return order < 0
		})
	}
	if err != nil {
		return 0, false, &store.CorruptError{Reason: fmt.Sprintf("its entry in the index, %q: %v", key, err)}
	}
	return p, ok, nil
}

// hides reports whether an entry of bucketKeys with a key would hide a sorted one. That cannot be taken out, so a
// deletion stays in its place. What cannot be read is hidden, too.
func (v View) hides(key []byte) bool {
	_, ok, err := findSorted(v.sorted, key)
	return ok || err != nil
}

// checkKeyGroup checks an entry: its keys are in order, and the last one is the key of the entry.
func checkKeyGroup(k, v []byte) error {
	g, err := parseKeyGroup(k, v)
	if err != nil {
		return err
	}
	var before []byte
	inOrder := true
	err = g.each(nil, func(key []byte, _ Pointer) bool {
		inOrder = inOrder && bytes.Compare(before, key) < 0
		before = append(before[:0], key...)
		return true
	})
	if err == nil && (!inOrder || !bytes.Equal(before, k)) {
		err = boltfile.ErrChecksum
	}
	return err
}

// sortedKeys goes over the keys of a bucket.
type sortedKeys struct {
	cursor *bbolt.Cursor // nil: there is no bucket
	last   []byte        // key of the entry that the present keys are of
	keys   []sortedKey   // of the entry, from the present one on
}

// sortedKey is a key with its pointer. With an error, it stands for all keys of its entry, and is not behind them.
type sortedKey struct {
	key     []byte
	pointer Pointer
	err     error
}

// seek moves to the first key that is not less than from.
func (s *sortedKeys) seek(sorted *bbolt.Bucket, from []byte) {
	if sorted == nil {
		return
	}
	s.cursor = sorted.Cursor()
	k, v := s.cursor.Seek(from)
	s.load(k, v, from)
	for len(s.keys) > 0 && bytes.Compare(s.keys[0].key, from) < 0 {
		s.keys = s.keys[1:]
	}
}

// load takes the keys of an entry, none of which is less than from.
func (s *sortedKeys) load(k, v, from []byte) {
	s.last, s.keys = k, s.keys[:0]
	if k == nil {
		return
	}
	texts := make([]byte, 0, 4*len(v))
	g, err := parseKeyGroup(k, v)
	if err == nil {
		var room [128]byte
		err = g.each(room[:], func(key []byte, p Pointer) bool {
			at := len(texts)
			texts = append(texts, key...)
			s.keys = append(s.keys, sortedKey{key: texts[at:len(texts):len(texts)], pointer: p})
			return true
		})
	}
	if err != nil {
		s.keys = append(s.keys[:0], sortedKey{key: bytes.Clone(from), err: err})
	}
}

// at returns the present key, one without text at the end.
func (s *sortedKeys) at() (k sortedKey) {
	if len(s.keys) > 0 {
		k = s.keys[0]
	}
	return k
}

// next moves to the next key.
func (s *sortedKeys) next() {
	if s.keys = s.keys[1:]; len(s.keys) == 0 {
		behind := append(bytes.Clone(s.last), 0)
		k, v := s.cursor.Next()
		s.load(k, v, behind)
	}
}

// A keyWriter makes the entries of keys.
type keyWriter struct {
	writes []entry // that are made

	keys      [][]byte // of the group in the making
	revisions []uint64
	size      int // about that of the group
	room      []byte
}

// copyKeys copies the keys of a file to a new one: those of events that exist are sorted. Of the others, those are left
// out of whose deletion the log has no record.
func copyKeys(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, held Revisions) error {
	var w keyWriter
	for it := viewOf(from).Iterate("", ""); it.Valid(); it.Next() {
		if err := it.Err(); err != nil {
			return err
		}
		key, p := bytes.Clone(it.Key()), it.Pointer()
		switch {
		case !p.Deletion():
			w.add(key, p.Revision())
		case held.Has(p.Revision()):
			w.writes = append(w.writes, entry{bucketKeys, key, appendPointer(nil, key, p)})
		}
		if len(w.writes) >= mergeChunk {
			if err := errors.Join(ctx.Err(), writeEntries(to, w.writes)); err != nil {
				return err
			}
			w.writes = w.writes[:0]
		}
	}
	w.end()
	return errors.Join(ctx.Err(), writeEntries(to, w.writes))
}

// add adds a key to the group in the making, which ends when it is full.
func (w *keyWriter) add(key []byte, revision uint64) {
	w.keys, w.revisions = append(w.keys, key), append(w.revisions, revision)
	var before []byte
	if n := len(w.keys); n > 1 {
		before = w.keys[n-2]
	}
	w.room = appendKey(w.room[:0], before, key, 1<<14)
	if w.size += len(w.room); w.size >= keyGroupBytes {
		w.end()
	}
}

// end adds the group in the making to what is to be written.
func (w *keyWriter) end() {
	if len(w.keys) == 0 {
		return
	}
	first := w.revisions[0]
	for _, r := range w.revisions {
		first = min(first, r)
	}
	value := binary.AppendUvarint(make([]byte, 0, w.size+16), first)
	var before []byte
	for i, key := range w.keys {
		value = appendKey(value, before, key, w.revisions[i]-first)
		before = key
	}
	w.writes = append(w.writes, entry{bucketSorted, before, be.AppendUint32(value, groupChecksum(before, value))})
	w.keys, w.revisions, w.size = w.keys[:0], w.revisions[:0], 0
}

// common returns how many bytes two texts begin with alike.
func common(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
