package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
)

// appendFrame appends a frame of n records, the first with a revision.
func appendFrame(t *testing.T, l *Log, n int, first, before uint64) *Frame {
	t.Helper()
	f := NewFrame(n, int64(n*100))
	for i := range n {
		f.Append(first+uint64(i), func(dst []byte) []byte { return fmt.Appendf(dst, "record %d", first+uint64(i)) })
	}
	if !l.Fits(f) {
		t.Fatalf("a frame of %d records does not fit", n)
	}
	if err := l.Append(f, before); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestReplay: records that were appended and not checkpointed are replayed, in order and from both halves, and the log
// continues after them.
func TestReplay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wal")
	l, err := Create(path, "id", SizeFor(0))
	if err != nil {
		t.Fatal(err)
	}
	reopen := func(after, first, last uint64, both bool) {
		t.Helper()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var records []Record
		if l, records, err = Open(path, "id", after); err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if want := first + uint64(i); r.Revision != want || string(r.Data) != fmt.Sprint("record ", want) {
				t.Fatalf("record %d is %d %q, want %d", i, r.Revision, r.Data, want)
			}
			if data := Find(records, r.Revision); !bytes.Equal(data, r.Data) {
				t.Fatalf("found %q for %d", data, r.Revision)
			}
		}
		if n := last + 1 - first; uint64(len(records)) != n || l.BothInUse() != both {
			t.Errorf("%d records, both halves in use %t; want %d and %t", len(records), l.BothInUse(), n, both)
		}
	}
	reopen(1, 2, 1, false)
	appendFrame(t, l, 3, 2, 1)
	appendFrame(t, l, 1, 5, 4)
	reopen(1, 2, 5, false)
	reopen(4, 5, 5, false)
	l.Rotate()
	appendFrame(t, l, 2, 6, 5)
	reopen(1, 2, 7, true)
	l.ReleaseOtherHalf()
	appendFrame(t, l, 1, 8, 7)
	reopen(5, 6, 8, false)
	l.Reset() // which would be wrong without a checkpoint: the next frame overwrites the first of its half
	appendFrame(t, l, 1, 9, 8)
	reopen(8, 9, 9, false)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := Open(path, "another", 1); !errors.As(err, new(*store.FileError)) {
		t.Errorf("the log of another store: %v", err)
	}
	if l, err = Begin(path, "id", SizeFor(1<<20)); err != nil { // another size: made again
		t.Fatal(err)
	}
	reopen(1, 2, 1, false)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Every record is replayed with its own revision, whatever gaps there are within a frame and between frames, and
// wherever the log was released.
func TestReplayWithGaps(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "wal")
	l, err := Create(path, "id", MinSize)
	if err != nil {
		t.Fatal(err)
	}
	last, released := uint64(1), uint64(1)
	var want []Record
	for range 200 {
		f := NewFrame(20, 20*100)
		for range 1 + r.IntN(20) {
			before := last
			last += 1 + uint64(r.ExpFloat64()*float64(r.IntN(3)*r.IntN(1<<20)))
			f.Append(last, func(dst []byte) []byte { return fmt.Appendf(dst, "record %d behind %d", last, before) })
		}
		if !l.Fits(f) { // what the other half has is checkpointed by now
			released = want[len(want)-1].Revision
			l.Rotate()
			l.ReleaseOtherHalf()
			want = nil
		}
		before := released
		if len(want) > 0 {
			before = want[len(want)-1].Revision
		}
		if err := l.Append(f, before); err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Records {
			want = append(want, Record{r.Revision, bytes.Clone(r.Data)})
		}
		if r.IntN(4) > 0 {
			continue
		}
		var got []Record
		if err = l.Close(); err == nil {
			l, got, err = Open(path, "id", released)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		for _, r := range want {
			if found := Find(got, r.Revision); !bytes.Equal(found, r.Data) {
				t.Fatalf("found %q for revision %d", found, r.Revision)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestFull: a frame fits until the half is full, and one that is too long for a half
// never does.
func TestFull(t *testing.T) {
	t.Parallel()
	l, err := Create(filepath.Join(t.TempDir(), "wal"), "id", SizeFor(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	long := NewFrame(1, MinSize)
	long.Append(2, func(dst []byte) []byte { return append(dst, make([]byte, MinSize/2)...) })
	if l.FitsHalf(long) {
		t.Error("a frame as long as a half fits into one with the header")
	}
	frames := 0
	for revision := uint64(2); ; revision++ {
		f := NewFrame(1, 1)
		f.Append(revision, func(dst []byte) []byte { return append(dst, 'x') })
		if !l.Fits(f) {
			break
		}
		if err := l.Append(f, revision-1); err != nil {
			t.Fatal(err)
		}
		frames++
	}
	if want := int(l.size/2/blockSize) - 1; frames != want {
		t.Errorf("%d frames of a block each, want %d", frames, want)
	}
}

// TestFailedAppend: the error says that the log must not be appended to again.
func TestFailedAppend(t *testing.T) {
	t.Parallel()
	l, err := Create(filepath.Join(t.TempDir(), "wal"), "id", SizeFor(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f := NewFrame(1, 1)
	f.Append(2, func(dst []byte) []byte { return append(dst, 'x') })
	if err := l.Append(f, 1); !errors.Is(err, ErrAppend) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("append to a closed file: %v", err)
	}
}

// TestTwoFramesCutShort: of two frames that were cut short, with revisions between
// them that went to refused writes, neither is taken for damage of the other.
func TestTwoFramesCutShort(t *testing.T) {
	t.Parallel()
	for _, halves := range [][2]bool{{true, false}, {false, true}} {
		path := filepath.Join(t.TempDir(), "wal")
		l, err := Create(path, "id", MinSize)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []int{10, 1} {
			l.begin(halves[i])
			at := l.end
			f := appendFrame(t, l, n, uint64(11+20*i), 10)
			if _, err := l.file.WriteAt([]byte("X"), at+int64(len(f.bytes))-1); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, records, err := Open(path, "id", 10)
		if len(records) > 0 || err != nil {
			t.Fatalf("%d records of writes that nobody was told of, %v", len(records), err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// fill makes a log of one record each for the revisions behind 1, and returns its file.
func fill(t *testing.T, id string, values ...string) (file []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wal")
	l, err := Create(path, id, MinSize)
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range values {
		f := NewFrame(1, int64(len(value)))
		f.Append(uint64(2+i), func(dst []byte) []byte { return append(dst, value...) })
		if err := l.Append(f, uint64(1+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return file
}

// R18: a file that is not whole, or of another store or program, is refused by name and left as it is.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	whole, another := fill(t, "id", "first", "second", "third"), fill(t, "another", "first")
	noFrame := bytes.Clone(whole) // the second is not whole any more
	noFrame[2*blockSize+3] ^= 1
	for says, content := range map[string][]byte{
		"it is missing":            nil,
		"should have":              whole[:len(whole)-blockSize],
		"not a write-ahead log":    []byte("something else"),
		"first block is damaged":   append([]byte("tidings event store wal 2\n"), make([]byte, 10000)...),
		"format 3":                 append([]byte("tidings event store wal 3\n"), whole...),
		"belongs to another store": another,
		"goes on behind":           noFrame,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "wal")
			if content != nil {
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := Open(path, "id", 1)
			if fe := new(store.FileError); !errors.As(err, &fe) || fe.Path != path || fe.Fix == "" || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want a FileError that says what to do, and %q", err, says)
			}
			if left, _ := os.ReadFile(path); !bytes.Equal(left, content) {
				t.Error("it was changed")
			}
		})
	}
}

// R13: whichever byte is flipped, the file is refused, or the records are those that were appended,
// but for the one with the flip, whose own checksum tells. Only the last frame may be missing
// without a word: that cannot be told from one that a crash has cut short.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	var values []string
	for i := range 4 {
		values = append(values, strings.Repeat(fmt.Sprint(i), 100+i*3000))
	}
	file := fill(t, "id", values...)
	used := len(bytes.TrimRight(file, "\x00"))
	refused, changed, missing := 0, 0, 0
	for at := range used {
		file[at] ^= 1 << (at % 8)
		switch records, err := read(file); {
		case err != nil:
			refused++
		case len(records) < len(values)-1 || len(records) > len(values):
			t.Fatalf("byte %d flipped: %d records", at, len(records))
		default:
			missing += len(values) - len(records)
			changed += changedIn(t, records, values, at)
		}
		file[at] ^= 1 << (at % 8)
	}
	if refused == 0 || changed == 0 || missing == 0 {
		t.Errorf("of %d flips %d are refused, %d in a record that is returned, %d hide the last: the test looks at the wrong place", used, refused, changed, missing)
	}
}

// changedIn counts the records that are not those which were appended. The last is never one of them.
func changedIn(t *testing.T, records []Record, values []string, at int) (n int) {
	t.Helper()
	for i, r := range records {
		if r.Revision != uint64(2+i) || len(r.Data) != len(values[i]) {
			t.Fatalf("byte %d flipped: record %d has revision %d and %d bytes", at, i, r.Revision, len(r.Data))
		}
		if string(r.Data) == values[i] {
			continue
		}
		if n++; i == len(values)-1 {
			t.Fatalf("byte %d flipped: the last record is damaged, and returned", at)
		}
	}
	return n
}

// read returns the records of a file, as Open does.
func read(file []byte) ([]Record, error) {
	l, err := parseHeader("wal", "id", file, "")
	if err != nil {
		return nil, err
	}
	if int64(len(file)) != l.size {
		return nil, errors.New("another size")
	}
	records, _, err := l.replay(file, 1)
	return records, err
}

// TestCutShortAndWrittenAgain: a frame that was cut short and one that was written after the restart continue from the
// same revision. The one that was acknowledged is taken, whichever lies first, and so is what continues from it.
func TestCutShortAndWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"behind it": true, "before it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "wal")
			l, err := Create(path, "id", MinSize)
			if err != nil {
				t.Fatal(err)
			}
			reopen := func(want ...uint64) {
				t.Helper()
				var records []Record
				if err = l.Close(); err == nil {
					l, records, err = Open(path, "id", 1)
				}
				if err != nil {
					t.Fatal(err)
				}
				var got []uint64
				for _, r := range records {
					got = append(got, r.Revision)
					if string(r.Data) != fmt.Sprint("record ", r.Revision) {
						t.Errorf("revision %d is %q", r.Revision, r.Data)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatal(diff)
				}
			}
			l.begin(second)
			appendFrame(t, l, 1, 2, 1)
			l.Rotate()
			at := l.end
			appendFrame(t, l, 2, 3, 2)
			if _, err := l.file.WriteAt([]byte("cut"), at+frameHeader+2); err != nil {
				t.Fatal(err)
			}
			reopen(2)
			appendFrame(t, l, 1, 3, 2)
			reopen(2, 3)
			appendFrame(t, l, 1, 4, 3)
			reopen(2, 3, 4)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
