package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// bucketKeys has the keys, in order and many in one entry. A key takes eighty bytes as an entry of its own, and a
// quarter of that here, because those that follow each other begin alike, and the names of events end with a number in
// hexadecimal digits.
//
//	key: the last key of the group
//	value: the first revision of the group (uvarint), and for each key, in order
//	  how many bytes it has from the one before (uvarint) | length of what follows (uvarint) | what follows |
//	  twice the number of hexadecimal digits behind that, at the end of the key, + 1 if the newest version is a
//	  deletion (uvarint) | two digits in each byte | revision - the first one (uvarint)
//	and then CRC32C of key and value 4
const bucketKeys = "keys"

// A group is full when it has so many bytes: with its key, a page has four of them. With 900, many pages had room for
// three.
const keyGroupBytes = 820

// A keyGroup is an entry of bucketKeys.
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
		end, n := binary.Uvarint(rest)
		digits := end >> 1
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
		if rest = rest[n:]; !f(key, NewPointer(g.first+revision, end&1 > 0)) {
			return nil
		}
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// appendKey appends a key to those of a group.
func appendKey(dst, before, key []byte, revision uint64, deletion bool) []byte {
	same := common(before, key)
	end := len(key)
	for end > same && strings.IndexByte(hexDigits, key[end-1]) >= 0 {
		end--
	}
	dst = binary.AppendUvarint(dst, uint64(same))
	dst = binary.AppendUvarint(dst, uint64(end-same))
	dst = append(dst, key[same:end]...)
	digits := uint64(len(key)-end) << 1
	if deletion {
		digits |= 1
	}
	dst = binary.AppendUvarint(dst, digits)
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

// findKey finds a key in the file.
func findKey(keys *bbolt.Bucket, key []byte) (p Pointer, ok bool, err error) {
	k, v := keys.Cursor().Seek(key)
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

// storedKeys goes over the keys of the file.
type storedKeys struct {
	cursor *bbolt.Cursor
	last   []byte      // key of the entry that the present keys are of
	keys   []storedKey // of the entry, from the present one on
}

// storedKey is a key with its pointer. With an error, it stands for all keys of its entry, and is not behind them.
type storedKey struct {
	key     []byte
	pointer Pointer
	err     error
}

// seek moves to the first key that is not less than from.
func (s *storedKeys) seek(keys *bbolt.Bucket, from []byte) {
	s.cursor = keys.Cursor()
	k, v := s.cursor.Seek(from)
	s.load(k, v, from)
	for len(s.keys) > 0 && bytes.Compare(s.keys[0].key, from) < 0 {
		s.keys = s.keys[1:]
	}
}

// load takes the keys of an entry, none of which is less than from.
func (s *storedKeys) load(k, v, from []byte) {
	if s.last, s.keys = k, s.keys[:0]; k == nil {
		return
	}
	var err error
	if s.keys, err = appendKeys(s.keys, k, v); err != nil {
		s.keys = append(s.keys[:0], storedKey{key: bytes.Clone(from), err: err})
	}
}

// appendKeys appends the keys of an entry, in memory of their own.
func appendKeys(dst []storedKey, k, v []byte) ([]storedKey, error) {
	g, err := parseKeyGroup(k, v)
	if err != nil {
		return dst, err
	}
	texts := make([]byte, 0, 4*len(v))
	var room [128]byte
	err = g.each(room[:], func(key []byte, p Pointer) bool {
		at := len(texts)
		texts = append(texts, key...)
		dst = append(dst, storedKey{key: texts[at:len(texts):len(texts)], pointer: p})
		return true
	})
	return dst, err
}

// at returns the present key, one without text at the end.
func (s *storedKeys) at() (k storedKey) {
	if len(s.keys) > 0 {
		k = s.keys[0]
	}
	return k
}

// next moves to the next key.
func (s *storedKeys) next() {
	if s.keys = s.keys[1:]; len(s.keys) == 0 {
		behind := append(bytes.Clone(s.last), 0)
		k, v := s.cursor.Next()
		s.load(k, v, behind)
	}
}

// A change is what becomes of a key: it gets a pointer or, if it has that, is taken out.
type change struct {
	key     []byte
	pointer Pointer
	out     bool
}

// changeKeys changes keys, which are in order, in the file. Deletions up to the compact revision, which no readable
// state needs, take their key out.
func changeKeys(keys *bbolt.Bucket, changes []change, compactRevision uint64) error {
	for len(changes) > 0 {
		c := keys.Cursor()
		k, v := c.Seek(changes[0].key)
		n := len(changes)
		if k == nil {
			k, v = c.Last()
		} else {
			n = sort.Search(n, func(i int) bool { return bytes.Compare(changes[i].key, k) > 0 })
		}
		if err := changeGroup(keys, k, v, changes[:n], compactRevision); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// changeGroup changes the keys of an entry. There may be none.
func changeGroup(keys *bbolt.Bucket, k, v []byte, changes []change, compactRevision uint64) (err error) {
	var stored []storedKey
	if k != nil {
		if stored, err = appendKeys(nil, k, v); err != nil {
			return err
		}
	}
	w := keyWriter{keys: changed(stored, changes, compactRevision)}
	w.divide()
	if k != nil && (len(w.writes) == 0 || !bytes.Equal(w.writes[len(w.writes)-1].key, k)) {
		if err := keys.Delete(bytes.Clone(k)); err != nil {
			return err
		}
	}
	return putEntries(keys, w.writes)
}

// changed returns what changes make of the keys of an entry.
func changed(stored []storedKey, changes []change, compactRevision uint64) []storedKey {
	all := make([]storedKey, 0, len(stored)+len(changes))
	for _, c := range changes {
		n := sort.Search(len(stored), func(i int) bool { return bytes.Compare(stored[i].key, c.key) >= 0 })
		all, stored = append(all, stored[:n]...), stored[n:]
		before := Pointer(0)
		if len(stored) > 0 && bytes.Equal(stored[0].key, c.key) {
			before, stored = stored[0].pointer, stored[1:]
		}
		after := c.pointer
		switch {
		case c.out && before == c.pointer, !c.out && after.Deletion() && after.Revision() <= compactRevision:
			continue
		case c.out:
			after = before
		}
		if after != 0 {
			all = append(all, storedKey{key: c.key, pointer: after})
		}
	}
	return append(all, stored...)
}

func putEntries(keys *bbolt.Bucket, entries []entry) error {
	for _, e := range entries {
		if err := keys.Put(e.key, e.value); err != nil {
			return err
		}
	}
	return nil
}

// A keyWriter makes the entries of keys.
type keyWriter struct {
	writes []entry // that are made

	keys []storedKey // of the group in the making
	size int         // about that of the group
	room []byte
}

// An entry is one of bucketKeys.
type entry struct{ key, value []byte }

// copyKeys copies the keys of a file to a new one, as many in an entry as may be, but for deletions up to the compact
// revision.
func copyKeys(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, compactRevision uint64) error {
	var w keyWriter
	write := func() error {
		err := to.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketKeys))
			b.FillPercent = boltfile.FillPercent
			return putEntries(b, w.writes)
		})
		w.writes = w.writes[:0]
		return errors.Join(ctx.Err(), err)
	}
	for it := viewOf(from).Iterate("", ""); it.Valid(); it.Next() {
		if err := it.Err(); err != nil {
			return err
		}
		if p := it.Pointer(); !p.Deletion() || p.Revision() > compactRevision {
			w.add(storedKey{key: bytes.Clone(it.Key()), pointer: p})
		}
		if len(w.writes) >= mergeChunk {
			if err := write(); err != nil {
				return err
			}
		}
	}
	w.end()
	return write()
}

// add adds a key to the group in the making, which ends when it is full.
func (w *keyWriter) add(k storedKey) {
	w.keys = append(w.keys, k)
	if w.size += w.sizeOf(len(w.keys) - 1); w.size >= keyGroupBytes {
		w.end()
	}
}

// sizeOf returns about how many bytes a key of the group in the making takes.
func (w *keyWriter) sizeOf(i int) int {
	var before []byte
	if i > 0 {
		before = w.keys[i-1].key
	}
	w.room = appendKey(w.room[:0], before, w.keys[i].key, 1<<14, false)
	return len(w.room)
}

// divide makes entries of about one size of the group in the making.
func (w *keyWriter) divide() {
	sizes, all := make([]int, len(w.keys)), 0
	for i := range w.keys {
		sizes[i] = w.sizeOf(i)
		all += sizes[i]
	}
	most := all / (all/keyGroupBytes + 1)
	rest, first := w.keys, 0
	for i, size := range sizes {
		if w.size += size; w.size > most && i < len(sizes)-1 {
			w.keys = rest[first : i+1]
			first = i + 1
			w.end()
		}
	}
	w.keys = rest[first:]
	w.end()
}

// end adds the group in the making to what is to be written.
func (w *keyWriter) end() {
	if len(w.keys) == 0 {
		return
	}
	first := w.keys[0].pointer.Revision()
	for _, k := range w.keys {
		first = min(first, k.pointer.Revision())
	}
	value := binary.AppendUvarint(make([]byte, 0, w.size+16), first)
	var before []byte
	for _, k := range w.keys {
		value = appendKey(value, before, k.key, k.pointer.Revision()-first, k.pointer.Deletion())
		before = k.key
	}
	w.writes = append(w.writes, entry{before, be.AppendUint32(value, groupChecksum(before, value))})
	w.keys, w.size = w.keys[:0], 0
}

// common returns how many bytes two texts begin with alike.
func common(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
