package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
	if want := int(l.Size()/2/blockSize) - 1; frames != want {
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
