package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
)

// fillNotes makes a store with three log files that can be sealed, and an open one.
func fillNotes(t *testing.T, db *bolt.DB, rnd *rand.Rand) {
	t.Helper()
	for file := range 4 {
		drafts, keys := make([]store.Draft, 700), make([]store.Key, 700)
		for i := range drafts {
			at := event.Occurrence{Time: goldenTime().Add(time.Duration(rnd.IntN(3600)) * time.Second), Count: 1, New: 1}
			drafts[i] = store.Draft{Value: []byte(storetest.Noted(storetest.Text(rnd, 1+rnd.IntN(6)))), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "R"}, nil).With(at)}
			keys[i] = key(rnd.IntN(2000))
		}
		storetest.Parallel(t, len(drafts), func(i int) {
			if _, err := db.Update(t.Context(), keys[i], store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: drafts[i]}, nil
			}); err != nil {
				t.Error(err)
			}
		})
		if file == 3 {
			return
		}
		if err := db.Seal(); err != nil {
			t.Fatal(err)
		}
	}
}

// searchAll compares what is found by pieces with what is left when all notes are looked at.
func searchAll(t *testing.T, db *bolt.DB, rnd *rand.Rand, searches int) {
	t.Helper()
	query := func(q store.TimeQuery) (found []uint64) {
		for {
			p, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
				found = append(found, v.Revision)
				return len(found)%500 != 0
			})
			if err != nil {
				t.Fatal(err)
			}
			if !p.More {
				return found
			}
			q.Revision, q.After = p.Revision, p.Last
		}
	}
	var notes [][]byte
	if _, err := db.List(t.Context(), store.Query{}, func(v *store.View) bool {
		note, err := codec.Note(v)
		if err != nil {
			t.Fatal(err)
		}
		notes = append(notes, event.AppendText(nil, note, v.Attributes))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	in := store.Range{From: goldenTime(), To: goldenTime().Add(time.Hour)}
	some := 0
	for range searches {
		var pieces [][]byte
		for range 1 + rnd.IntN(3) {
			text := storetest.Text(rnd, 1)
			if rnd.IntN(2) == 0 {
				text = string(notes[rnd.IntN(len(notes))])
			}
			pieces = append(pieces, storetest.PartOf(rnd, text))
		}
		match := func(note []byte) (bool, error) {
			note = event.Fold(nil, note)
			return !slices.ContainsFunc(pieces, func(p []byte) bool { return !bytes.Contains(note, p) }), nil
		}
		q := store.TimeQuery{Range: in, OldestFirst: rnd.IntN(2) == 0, Match: match}
		want := query(q)
		q.Pieces = pieces
		if got := query(q); !slices.Equal(got, want) {
			t.Fatalf("%q: %d are found of %d", pieces, len(got), len(want))
		}
		n := 0
		for _, note := range notes {
			if ok, _ := match(note); ok {
				n++
			}
		}
		if n != len(want) {
			t.Fatalf("%q: %d texts have them, and %d are found", pieces, n, len(want))
		}
		some += min(n, 1)
	}
	if some < searches/4 {
		t.Errorf("of %d searches only %d found anything", searches, some)
	}
}

// searchEnds searches for nobody.
func searchEnds(t *testing.T, db *bolt.DB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := store.TimeQuery{Range: store.Range{From: goldenTime(), To: goldenTime().Add(time.Hour)}, Pieces: [][]byte{[]byte("NOWHERE")}, Match: func([]byte) (bool, error) { return false, nil }}
	if _, err := db.Timeline().Observed(ctx, q, func(*store.View, store.Moment) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// asking is a context that counts how often it is asked whether it has ended.
type asking struct {
	context.Context
	times int
}

func (a *asking) Err() error {
	a.times++
	return a.Context.Err()
}

// TestSearchInRounds: a search and what it finds are read in rounds, between which other requests go first. Whatever a round
// ends behind, nothing is lost and nothing comes twice. It runs beside no other test, as it changes how long all rounds are.
func TestSearchInRounds(t *testing.T) { //nolint:paralleltest // see there
	defer bolt.SetRoundTime(0)()
	db := open(t, bolt.Options{Dir: t.TempDir(), Now: goldenTime})
	rnd := rand.New(rand.NewPCG(1, 0))
	fillNotes(t, db, rnd)
	turns := func(pieces ...[]byte) int {
		ctx := &asking{Context: t.Context()}
		q := store.TimeQuery{Range: store.Range{From: goldenTime(), To: goldenTime().Add(time.Hour)}, Pieces: pieces, Match: func([]byte) (bool, error) { return false, nil }}
		if _, err := db.Timeline().Observed(ctx, q, func(*store.View, store.Moment) bool { return true }); err != nil {
			t.Fatal(err)
		}
		return ctx.times
	}
	searchAll(t, db, rnd, 4)
	if n := turns([]byte("NOWHERE")); n < 700 {
		t.Errorf("a search over 2800 records in files that are not compressed has %d rounds", n)
	}
	if n := turns(); n < 700 {
		t.Errorf("a look at 2800 notes has %d rounds", n)
	}
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	searchAll(t, db, rnd, 4)
}

// TestSearch: open, compressed and rewritten, with damaged words and without, a store
// finds by parts of a text what is found when all notes are looked at. Damage is reported, and goes when the
// files are written again. A search ends when nobody waits for it.
func TestSearch(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	searches := 15
	if *long {
		searches = 2000
	}
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
	db := open(t, o)
	fillNotes(t, db, rnd)
	searchAll(t, db, rnd, searches)
	searchEnds(t, db)
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	wantCompressed(t, db, 3)
	searchAll(t, db, rnd, searches)
	check(t, db)
	files := db.Segments()[:3]
	closeDB(t, db)
	flip := func(b *bbolt.Bucket, k, v []byte) error {
		v = bytes.Clone(v)
		v[rnd.IntN(len(v))] ^= 1 << rnd.IntN(8)
		return b.Put(bytes.Clone(k), v)
	}
	for name, spoil := range map[string]func(b *bbolt.Bucket, k, v []byte) error{
		"flipped": flip,
		"none":    func(b *bbolt.Bucket, k, _ []byte) error { return b.Delete(k) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
			if err := os.CopyFS(o.Dir, os.DirFS(filepath.Dir(files[0]))); err != nil {
				t.Fatal(err)
			}
			editBucket(t, filepath.Join(o.Dir, filepath.Base(files[rnd.IntN(3)])), "words", func(b *bbolt.Bucket) error {
				k, v := b.Cursor().First()
				return spoil(b, k, v)
			})
			db := open(t, o)
			searchAll(t, db, rnd, searches)
			if r, err := db.Check(t.Context(), nil); err != nil || len(r.Problems) == 0 {
				t.Errorf("the check finds nothing, %v", err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := bolt.DropDamaged(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
			db = open(t, o)
			defer closeDB(t, db)
			searchAll(t, db, rnd, searches)
			check(t, db)
		})
	}
}
