package seglog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// R13: whichever bit of the minute of a run is flipped, a range of the index by time has what was
// observed in it, or an error. The file is so large that its leaves are not checked when it is
// opened, and the flips leave the keys in order or not.
func TestRunsInOtherPlaces(t *testing.T) {
	t.Parallel()
	const large = 5 << 20
	l := newLog(t)
	var all []wal.Record
	for i := range uint64(placedRuns) {
		all = append(all, observedRecord(2+i, int64(minuteOfRun(i))*60))
	}
	filler := Entry{Revision: placedRuns + 2, Kind: Deleted, Key: []byte("ns/large"), NamespaceLen: 2, Value: make([]byte, large)}
	all = append(all, wal.Record{Revision: filler.Revision, Data: AppendEntry(nil, &filler)})
	if err := l.Checkpoint(l.Head(), all); err != nil {
		t.Fatal(err)
	}
	path := l.Head().Path
	l.rotateTo(t, placedRuns+3)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	places, found := 0, 0
	for _, i := range []uint64{0, 1, 2, 300, 598, 599, 600, 601, placedRuns - 2, placedRuns - 1} {
		key := runKey(int64(minuteOfRun(i)), 2+i)
		places += bytes.Count(whole, key) // the first one is in a branch too
		for at := bytes.Index(whole, key); at >= 0; at = next(whole, key, at) {
			for bit := range 64 {
				flipped := []byte{whole[at+bit/8] ^ 1<<(bit%8)}
				if _, err := f.WriteAt(flipped, int64(at+bit/8)); err != nil {
					t.Fatal(err)
				}
				if !rangesAreRight(t, filepath.Dir(path), minuteOfRun(i)) {
					found++
				}
				if _, err := f.WriteAt(whole[at+bit/8:][:1], int64(at+bit/8)); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					t.Fatalf("with bit %d of the minute of run %d, at %d, flipped", bit, i, at)
				}
			}
		}
	}
	if places < 11 || found == 0 {
		t.Errorf("%d places, damage found %d times: the test looks at the wrong file", places, found)
	}
}

// placedRuns have some leaves.
const placedRuns = 1200

// minuteOfRun leaves room between minutes, so that a flipped bit need not change the order of runs.
func minuteOfRun(i uint64) uint64 { return 1000 + 64*i }

func next(whole, key []byte, at int) int {
	n := bytes.Index(whole[at+1:], key)
	if n < 0 {
		return n
	}
	return at + 1 + n
}

// rangesAreRight reads ranges around a minute, and reports whether none was an error.
func rangesAreRight(t *testing.T, dir string, minute uint64) bool {
	t.Helper()
	l, err := Open(dir, 1<<20, func() uint64 { return 1e6 })
	if err != nil {
		if fe := new(store.FileError); !errors.As(err, &fe) {
			t.Errorf("opened with %v", err)
		}
		return false
	}
	defer func() { _ = l.Close() }()
	right := true
	at, end := int64(minute)*60, int64(1e7)
	for _, span := range [][2]int64{{0, end}, {at, at + 60}, {at - 60, at}, {at + 60, at + 3600}, {at - 64*60, at + 60}, {at, at + 65*60}, {0, at + 60}, {at, end}, {0, at}, {at + 60, end}} {
		want := int64(0)
		for i := range uint64(placedRuns) {
			if second := int64(minuteOfRun(i)) * 60; second >= span[0] && second < span[1] {
				want++
			}
		}
		for way, read := range map[string]func(*Reader) (int64, error){
			"counted": func(r *Reader) (int64, error) { return countRecords(r, span) },
		} {
			var n int64
			err := l.View(func(r *Reader) (err error) {
				n, err = read(r)
				return err
			})
			switch {
			case errors.Is(err, boltfile.ErrChecksum):
				right = false
			case err != nil || n != want:
				t.Errorf("%s from %d to %d: %d with %v, want %d", way, span[0], span[1], n, err, want)
			}
		}
	}
	return right
}

func countRecords(r *Reader, span [2]int64) (n int64, err error) {
	err = eachOccurrence(r, &Moments{From: span[0], To: span[1], Last: 1e6}, func(store.Occurred) { n++ })
	return n, err
}
