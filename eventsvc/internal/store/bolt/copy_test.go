package bolt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
)

// source makes the changes of another store, which has removed some of its history: their revisions have gaps.
type source struct {
	r      *rand.Rand
	last   uint64
	exists map[int]bool
}

func (s *source) changes(n int) (all []commit.Replicated) {
	for range n {
		s.last++
		if s.r.IntN(3) == 0 {
			s.last += uint64(s.r.IntN(1 << s.r.IntN(40)))
		}
		i := s.r.IntN(40)
		c := commit.Replicated{Revision: s.last, Key: bolttest.Key(i), Time: goldenTime().Add(time.Duration(s.last)), Kind: seglog.Created}
		switch {
		case s.exists[i] && s.r.IntN(3) == 0:
			c.Kind = seglog.Deleted
		case s.exists[i]:
			c.Kind = seglog.Modified
		}
		if s.exists[i] = c.Kind != seglog.Deleted; s.exists[i] {
			c.Draft = store.Draft{Value: fmt.Appendf(nil, "revision %d %0*d", s.last, s.r.IntN(4000), 0)}
		}
		all = append(all, c)
	}
	return all
}

// R1: a copy that is killed has every change that was applied, under its revision, whatever revisions were left out,
// and goes on from there.
func TestCopyIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 40
	if *storetest.Long {
		rounds = 2000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &source{r: rand.New(rand.NewPCG(seed, 1)), last: 1, exists: map[int]bool{}}
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime, SegmentBytes: 300 << 10, MinFree: -1, MaxBytes: -1, Copy: &bolt.Copy{
		Expires: func() bool { return false }, Delete: func(context.Context, []store.Seen) error { return nil },
	}}
	db := bolttest.Open(t, o)
	for round := range rounds {
		if err := db.Follow().Apply(t.Context(), s.changes(1+s.r.IntN(30))); err != nil {
			t.Fatal(err)
		}
		if s.r.IntN(10) == 0 {
			s.last += uint64(s.r.IntN(1000))
			if err := db.Follow().SkipTo(t.Context(), s.last); err != nil {
				t.Fatal(err)
			}
		}
		if s.r.IntN(3) > 0 {
			continue
		}
		if err := db.AwaitCheckpoint(); err != nil {
			t.Fatal(err)
		}
		want := bolttest.Dump(t, db)
		o.Dir = killed(t, o.Dir)
		bolttest.Close(t, db)
		db = bolttest.Open(t, o)
		if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" || db.Revision() != s.last {
			t.Fatalf("round %d: revision %d, want %d: %s", round, db.Revision(), s.last, diff)
		}
	}
	bolttest.Close(t, db)
}
