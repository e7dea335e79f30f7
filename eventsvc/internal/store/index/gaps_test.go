package index

import (
	"math"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/randtest"
)

// TestGaps: revisions come out of a run as they went in, and those of frequent terms take few bits.
func TestGaps(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	for mean, most := range map[uint64]float64{1: 1.1, 2: 3, 50: 8, 1 << 20: 24} {
		revisions := []uint64{1 << 50}
		for range 10_000 {
			revisions = append(revisions, revisions[len(revisions)-1]+1+rnd.Uint64N(2*mean-1))
		}
		run := appendRun(nil, 7, revisions)
		if got, err := parseRun(nil, 7, run); err != nil || !slices.Equal(got, revisions) {
			t.Errorf("mean %d: %d revisions, %v", mean, len(got), err)
		}
		if each := 8 * float64(len(run)) / float64(len(revisions)); each > most {
			t.Errorf("mean %d: a revision takes %.1f bits", mean, each)
		}
	}
	for _, revisions := range [][]uint64{{1}, {math.MaxUint64}, {1, math.MaxUint64}, {1, 2, 3, 1 << 62, 1<<62 + 1}, {5, 1 << 40, 1<<40 + 1, 1<<40 + 2}} {
		if got, err := parseRun(nil, 7, appendRun(nil, 7, revisions)); err != nil || !slices.Equal(got, revisions) {
			t.Errorf("%d: %d, %v", revisions, got, err)
		}
	}
}

// TestOneTermTwice: a version that has a term twice, as two labels with one hash would, hides no other version.
func TestOneTermTwice(t *testing.T) {
	t.Parallel()
	label := "\x01k\x01v"
	twice := event.Attributes(append(make([]byte, event.NumFields), "\x02"+label+label...))
	p := postings{of: map[Term][]uint64{}}
	want := []uint64{5, 9, 13, 20}
	for _, revision := range want {
		p.add(revision, twice)
	}
	term := labelTerm([]byte("k"), []byte("v"))
	got, err := parseRun(nil, term, appendRun(nil, term, p.of[term]))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d, %v, want %d", got, err, want)
	}
}

// FuzzGaps: whatever bytes are gaps, they are read without harm, and no more revisions than there are bits.
func FuzzGaps(f *testing.F) {
	f.Add(uint64(9), appendGaps(nil, []uint64{1, 2, 3, 70, 1 << 60}))
	f.Add(uint64(1<<62), []byte{32, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, n uint64, gaps []byte) {
		if got := readGaps(nil, 1, n, gaps); len(got) > 8*len(gaps) {
			t.Errorf("%d revisions of %d bytes", len(got), len(gaps))
		}
	})
}
