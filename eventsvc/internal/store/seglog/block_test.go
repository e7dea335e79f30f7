package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/store/boltfile"
)

var update = flag.Bool("update", false, "write the golden block again")

// record returns a record with its checksum.
func sealedRecord(revision uint64, body string) []byte {
	return binary.BigEndian.AppendUint32([]byte(body), boltfile.Checksum(revision, []byte(body)))
}

// event returns a record that has the strings of its JSON a second time, as protobuf has
// them.
func eventRecord(revision uint64) []byte {
	name, note := fmt.Sprintf("web-%d.17a3b4c5d6e7f809", revision), fmt.Sprintf("pulled image %q in %d ms", "web:v1", revision%977)
	value := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop"},"note":%q,"reason":"Pulled","series":{"count":%d}}`, name, note, revision%5)
	return sealedRecord(revision, "\x01\x00shop/"+name+value+"\x0a"+string(rune(len(name)))+name+"\x12\x04shop"+"\x1a"+string(rune(len(note)))+note+"\x22\x06Pulled\x28\x03")
}

type packedRecord struct {
	revision uint64
	data     []byte
}

// pack makes one block of records. It covers the revisions behind after, up to last.
func packBlock(t testing.TB, after, last uint64, records []packedRecord) (key, value []byte) {
	t.Helper()
	w, err := newBlockWriter(after)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, r := range records {
		if err := w.Add(r.revision, r.data); err != nil {
			t.Fatal(err)
		}
	}
	key, value, err = w.Finish(last)
	if err != nil {
		t.Fatal(err)
	}
	return key, value
}

// finish is parseBlock of the block that a writer finishes.
func finishBlock(w *blockWriter, last uint64) (*inflatedBlock, error) {
	key, value, err := w.Finish(last)
	if err != nil {
		return nil, err
	}
	return parseBlock(key, value)
}

// parse returns a new block.
func parseBlock(key, value []byte) (*inflatedBlock, error) {
	b := new(inflatedBlock)
	return b, b.Parse(key, value)
}

// recordAt returns the record at a position of a block with its checksum, in memory that had other bytes.
func recordAt(b *inflatedBlock, i int) []byte {
	record, _ := b.Append([]byte("front")[:0], i)
	return record.whole(b.Revision(i))
}

// wantRecords fails unless a block has the records, and nothing else.
func wantRecords(t testing.TB, b *inflatedBlock, records []packedRecord) {
	t.Helper()
	if b.Len() != len(records) {
		t.Fatalf("%d records, want %d", b.Len(), len(records))
	}
	for i, r := range records {
		at, found := b.Search(r.revision)
		got := recordAt(b, i)
		if !found || at != i || b.Revision(i) != r.revision || string(got) != string(r.data) {
			t.Fatalf("record %d is %q at %d (%v), want %q of revision %d", i, got, at, found, r.data, r.revision)
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	many := make([]packedRecord, 0, 100)
	for revision := uint64(10); len(many) < cap(many); revision += 1 + revision%3 {
		many = append(many, packedRecord{revision, eventRecord(revision)})
	}
	manyStrings := `{"` + strings.Repeat(`abc","`, 300) + `":1}` + strings.Repeat("\x03abc", 9)
	long := strings.Repeat("long", 40)
	for name, records := range map[string][]packedRecord{
		"none":                   nil,
		"events":                 many,
		"empty body":             {{7, sealedRecord(7, "")}},
		"empty record":           {{7, nil}},
		"no checksum":            {{7, []byte("abc")}},
		"damaged record":         {{7, append(eventRecord(7)[:50:50], eventRecord(7)[51:]...)}, {8, eventRecord(8)}},
		"record of another":      {{7, eventRecord(8)}},
		"no text":                {{7, sealedRecord(7, "a text with a { and a \"")}},
		"text that does not end": {{7, sealedRecord(7, `{"a":{"b":"c"}`)}},
		"string without an end":  {{7, sealedRecord(7, `{"a`)}},
		"backslash at the end":   {{7, sealedRecord(7, `{"a\`)}},
		"only a text":            {{7, sealedRecord(7, `{"abc":"abc"}`)}},
		"many strings":           {{7, sealedRecord(7, manyStrings)}},
		"two bytes of length":    {{7, sealedRecord(7, `{"a":"`+long+`"}`+"\xa0\x01"+long)}},
		"another length":         {{7, sealedRecord(7, `{"a":"abc"}`+"\x83\x00abc")}},
		"escaped":                {{7, sealedRecord(7, `{"a":"b\\\"c\n"}`+"\x04b\\\"c\x05b\\\"cn")}},
		"binary":                 {{7, sealedRecord(7, "\xff\x00{\"\x00\x01\x02\":1}\x03\x00\x01\x02\xff")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := uint64(1000)
			key, value := packBlock(t, 6, last, records)
			b, err := parseBlock(key, value)
			if err != nil {
				t.Fatal(err)
			}
			if b.First() != 7 || b.Last() != last {
				t.Errorf("it covers %d to %d, want 7 to %d", b.First(), b.Last(), last)
			}
			wantRecords(t, b, records)
			if _, found := b.Search(last); found {
				t.Error("a record is found that is not there")
			}
		})
	}
}

// TestWriter: blocks follow each other, and nothing too large gets into one.
func TestWriter(t *testing.T) {
	t.Parallel()
	w, err := newBlockWriter(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !w.Fits(make([]byte, maxBlockBytes+1)) {
		t.Error("a block without records has no room for a large one, which has nowhere else to go")
	}
	noise := make([]byte, maxBlockBytes)
	if err := w.Add(1, noise); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large a record: %v", err)
	}
	if err := w.Add(1, noise[:maxBlockBytes-100]); err != nil {
		t.Errorf("the largest record: %v", err)
	}
	if err := w.Add(1, nil); err == nil {
		t.Error("a revision is added twice")
	}
	if w.Fits(noise[:1]) {
		t.Error("a full block has room")
	}
	b, err := finishBlock(w, 5)
	if err != nil || b.First() != 1 || b.Last() != 5 || b.Len() != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	w.Skip(9)
	if err := w.Add(12, eventRecord(12)); err != nil {
		t.Error(err)
	}
	if b, err = finishBlock(w, w.Last()); err != nil || b.First() != 10 || b.Last() != 12 || w.Covered() != 12 {
		t.Errorf("%+v, %v, covered up to %d", b, err, w.Covered())
	}
}

// R13: a block of which any bit has changed is refused, and so is one under another key.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	key, value := packBlock(t, 6, 9, []packedRecord{{7, eventRecord(7)}, {8, eventRecord(8)}})
	for i := range 8 * (len(key) + len(value)) {
		k, v := bytes.Clone(key), bytes.Clone(value)
		if b := append(k, v...); true {
			b[i/8] ^= 1 << (i % 8)
			k, v = b[:len(k)], b[len(k):]
		}
		if _, err := parseBlock(k, v); !errors.Is(err, boltfile.ErrChecksum) {
			t.Errorf("bit %d: %v", i, err)
		}
	}
	for n := range value {
		if _, err := parseBlock(key, value[:n]); err == nil {
			t.Errorf("%d bytes are taken for a block", n)
		}
	}
}

// sealBlock makes a value with the right checksum, which covers the revisions from 901 to 1000.
func sealBlock(notes, frame, behind []byte) (key, value []byte) {
	value = appendText(appendText([]byte{99}, notes), frame)
	value = append(value, behind...)
	return recordKey(1000), be.AppendUint32(value, boltfile.Checksum(1000, value))
}

// TestBombs: what claims to be larger than a block, or becomes larger, is refused before that
// takes memory.
func TestBombs(t *testing.T) {
	// RFC 8878: magic number; a descriptor that says how many bytes the size has (0xa0: 4, one
	// segment); the size; blocks of 3 bytes of header, here runs of one byte.
	run := func(last uint32, size uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, last|1<<1|size<<3)[:3], 'x')
	}
	frame := func(descriptor byte, size []byte, runs int) []byte {
		b := append([]byte{0x28, 0xb5, 0x2f, 0xfd, descriptor}, size...)
		for i := range runs {
			last := uint32(0)
			if i == runs-1 {
				last = 1
			}
			b = append(b, run(last, 128<<10)...)
		}
		return b
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	none := encoder.EncodeAll([]byte{0}, nil) // the notes of no record
	for name, f := range map[string][]byte{
		"claims too much":          frame(0xa0, binary.LittleEndian.AppendUint32(nil, maxBlockBytes+1), 1),
		"claims very much":         frame(0xe0, binary.LittleEndian.AppendUint64(nil, 1<<62), 1),
		"says nothing":             frame(0x00, []byte{0x38}, 1000),
		"is larger than it claims": frame(0xa0, binary.LittleEndian.AppendUint32(nil, 1000), 1000),
		"no frame":                 []byte("no frame"),
		"two frames":               append(frame(0xa0, binary.LittleEndian.AppendUint32(nil, 128<<10), 1), frame(0xa0, binary.LittleEndian.AppendUint32(nil, 128<<10), 1)...),
		"needs a dictionary":       append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa1, 0x07}, append(binary.LittleEndian.AppendUint32(nil, 128<<10), run(1, 128<<10)...)...),
		"nonsense":                 frame(0xa0, binary.LittleEndian.AppendUint32(nil, 128<<10), 1),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseBlock(sealBlock(f, nil, nil))
		_, err2 := parseBlock(sealBlock(none, f, nil))
		runtime.ReadMemStats(&after)
		if err == nil || err2 == nil {
			t.Errorf("%s: it is taken for a block", name)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
			t.Errorf("%s: %d bytes were allocated", name, allocated)
		}
	}
}

// FuzzRecords: what goes into a block comes out of it.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("body"), true)
	f.Add(eventRecord(7), false)
	f.Add([]byte(`{"a":"b\"c"}`+"\x03b\"c"), true)
	w, err := newBlockWriter(0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, sum bool) {
		first := packedRecord{7, body}
		if sum {
			first.data = sealedRecord(7, string(body))
		}
		records := []packedRecord{first, {8, eventRecord(8)}}
		w.Skip(0)
		for _, r := range records {
			if err := w.Add(r.revision, r.data); err != nil {
				t.Fatal(err)
			}
		}
		b, err := finishBlock(w, 8)
		if err != nil {
			t.Fatal(err)
		}
		wantRecords(t, b, records)
	})
}

// FuzzContent: whatever the frames of a block have, they are refused, or read without harm.
func FuzzContent(f *testing.F) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
	if err != nil {
		f.Fatal(err)
	}
	block, err := parseBlock(packBlock(f, 900, 1000, randomRecords(f, 1, 900, 20)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(block.notes.content, block.content, block.behind)
	block, err = parseBlock(packBlock(f, 900, 1000, []packedRecord{{907, storedRecord(f, 907, nil)}, {909, []byte("whole")}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(block.notes.content, block.content, block.behind)
	f.Fuzz(func(t *testing.T, notes, content, behind []byte) {
		b, err := parseBlock(sealBlock(encoder.EncodeAll(notes, nil), encoder.EncodeAll(content, nil), behind))
		if err != nil {
			return
		}
		made := 0
		for i := range b.Len() {
			made += len(recordAt(b, i))
		}
		if made > 5*maxBlockBytes+200*(len(notes)+len(content)+len(behind)) {
			t.Errorf("%d bytes of a content of %d", made, len(content))
		}
	})
}

// FuzzBlock: whatever bytes are a block, they are refused, or read without harm.
func FuzzBlock(f *testing.F) {
	key, value := packBlock(f, 6, 9, []packedRecord{{7, eventRecord(7)}, {8, eventRecord(8)}})
	f.Add(key, value[:len(value)-4])
	f.Fuzz(func(_ *testing.T, key, value []byte) {
		if len(key) == 8 {
			value = binary.BigEndian.AppendUint32(value, boltfile.Checksum(binary.BigEndian.Uint64(key), value))
		}
		if b, err := parseBlock(key, value); err == nil {
			for i := range b.Len() {
				recordAt(b, i)
			}
		}
	})
}

// R18: a block that was written before stays readable.
func TestGoldenBlock(t *testing.T) {
	t.Parallel()
	var records []packedRecord
	r := rand.New(rand.NewPCG(1, 2))
	for revision := uint64(5); len(records) < 40; revision += 1 + r.Uint64N(3) {
		records = append(records, packedRecord{revision, eventRecord(revision)})
	}
	for i := range records[20:] {
		records[20+i].data = storedRecord(t, records[20+i].revision, nil)
	}
	records[3].data = bytes.Clone(records[3].data)
	records[3].data[20] ^= 1 // damaged before
	path := filepath.Join("testdata", "block")
	if *update {
		key, value := packBlock(t, 4, 1000, records)
		if err := os.WriteFile(path, append(key, value...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parseBlock(golden[:8], golden[8:])
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, b, records)
}
