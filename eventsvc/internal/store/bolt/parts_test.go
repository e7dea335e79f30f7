package bolt_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// partedDraft has a head of 7 bytes and two parts.
func partedDraft() store.Draft {
	first, second := strings.Repeat("first ", 60), strings.Repeat("second ", 40)
	return store.Draft{
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, map[string]string{"app": "web"}),
		Value:      []byte("head 7 " + first + second), First: 7, Second: 7 + len(first),
	}
}

const partedRevision = 5<<32 + 70

// R13: whichever bit of a record is flipped, who reads the whole value is told,
// and who reads a part is told if it is in front of the parts or in theirs. What
// else is damaged does not change what they are shown.
func TestFlippedBitsOfParts(t *testing.T) {
	t.Parallel()
	d := partedDraft()
	good := bolt.EncodeRecord(key(1), partedRevision, d)
	const header, places, sum = 26, 8, 4
	sums := header + len(key(1).String()) + len(d.Attributes) + places
	value := sums + 2*sum
	type span struct{ from, to int }
	unused := map[store.Part][]span{
		store.WholeValue: nil,
		store.FirstPart:  {{sums + sum, value}, {value + d.Second, len(good)}},
		store.SecondPart: {{sums, sums + sum}, {value + d.First, value + d.Second}, {len(good) - sum, len(good)}},
	}
	for uses, spans := range unused {
		read := func(revision uint64, record []byte) bool {
			r, err := bolt.ReadRecord(revision, record, uses)
			if err == nil && (r.Key != key(1) || used(d, r.Value, uses) != used(d, d.Value, uses)) {
				t.Errorf("who uses %d is shown %s: %q", uses, r.Key, r.Value)
			}
			return err == nil
		}
		if !read(partedRevision, good) {
			t.Errorf("who uses %d cannot read what is whole", uses)
		}
		for at := range 8 * len(good) {
			spoiled := slices.Clone(good)
			spoiled[at/8] ^= 1 << (at % 8)
			may := slices.ContainsFunc(spans, func(s span) bool { return s.from <= at/8 && at/8 < s.to })
			if got := read(partedRevision, spoiled); got != may {
				t.Errorf("bit %d of byte %d of %d flipped: who uses %d is shown something: %v, want %v", at%8, at/8, len(good), uses, got, may)
			}
		}
		for bit := range 64 {
			if read(partedRevision^1<<bit, good) {
				t.Errorf("who uses %d is shown the record of another revision", uses)
			}
		}
		for n := range good {
			read(partedRevision, good[:n])
		}
	}
}

// R18: a program that knows nothing of parts finds the checksum where it was, and
// reads the same attributes and the same value.
func TestPartsAreReadByThoseWhoKnowNone(t *testing.T) {
	t.Parallel()
	d := partedDraft()
	record := bolt.EncodeRecord(key(1), partedRevision, d)
	body := record[:len(record)-4]
	sum := crc32.Checksum(append(binary.BigEndian.AppendUint64(nil, partedRevision), body...), crc32.MakeTable(crc32.Castagnoli))
	if got := binary.BigEndian.Uint32(record[len(body):]); got != sum {
		t.Errorf("the record ends in %x, its checksum is %x", got, sum)
	}
	keyLen, attrLen := int(binary.BigEndian.Uint16(record[4:])), int(binary.BigEndian.Uint32(record[6:]))
	rest := body[26+keyLen:]
	a := event.Attributes(rest[:attrLen])
	for f := range event.NumFields {
		if diff := cmp.Diff(string(d.Attributes.Field(f)), string(a.Field(f))); diff != "" {
			t.Errorf("field %d: %s", f, diff)
		}
	}
	labels := map[string]string{}
	for k, v := range a.Labels() {
		labels[string(k)] = string(v)
	}
	if diff := cmp.Diff(map[string]string{"app": "web"}, labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(d.Value), string(rest[attrLen:])); diff != "" {
		t.Error(diff)
	}
}

// Places that are not within a value, one behind the other, make no parts.
func TestPartsThatAreNone(t *testing.T) {
	t.Parallel()
	plain := bolt.EncodeRecord(key(1), 9, store.Draft{Value: []byte("value")})
	for _, places := range [][2]int{{0, 0}, {3, 0}, {0, 6}, {3, 2}, {-1, 2}, {-2, -1}} {
		d := store.Draft{Value: []byte("value"), First: places[0], Second: places[1]}
		if diff := cmp.Diff(plain, bolt.EncodeRecord(key(1), 9, d)); diff != "" {
			t.Errorf("%v: %s", places, diff)
		}
	}
}
