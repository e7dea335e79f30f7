package bolt_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
)

// reasons are the reasons of the events that [fillNotes] creates. The last one is rare.
var reasons = []string{"Pulled", "BackOff", "Straße", "Evicted"}

// fillNotes makes a store with three log files that can be sealed, and an open one.
func fillNotes(t *testing.T, db *bolt.DB, rnd *rand.Rand) {
	t.Helper()
	for file := range 4 {
		drafts, keys := make([]store.Draft, 700), make([]store.Key, 700)
		for i := range drafts {
			at := event.Occurrence{Time: goldenTime().Add(time.Duration(rnd.IntN(3600)) * time.Second), Count: 1, New: 1}
			fields := [event.NumFields]string{event.Reason: reasons[rnd.IntN(20)/6], event.RegardingName: fmt.Sprintf("web-%d", rnd.IntN(300))}
			drafts[i] = store.Draft{Value: []byte(storetest.Noted(storetest.Text(rnd, 1+rnd.IntN(6)))), Attributes: event.NewAttributes(fields, nil).With(at)}
			keys[i] = bolttest.Key(rnd.IntN(2000))
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

// A scanned is a version of an event as a scan of the whole store finds it.
type scanned struct {
	key          store.Key
	at           store.Moment
	revision     uint64
	text         []byte // event.AppendText
	note, rest   string // the same, with letters of which case is ignored made one
	reason, name string
}

// sameCase returns a text in which letters that differ in case only are the same: the least of each kind. It is what
// [event.Fold] promises, in a slow and plain way.
func sameCase(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
			least = min(least, c)
		}
		return least
	}, text)
}

// scan returns all events, the newest first.
func scan(t *testing.T, db *bolt.DB) (all []scanned) {
	t.Helper()
	q := store.TimeQuery{Range: hour()}
	for more := true; more; {
		p, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
			all = append(all, scannedOf(t, v))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		more, q.After = p.More, p.Last
	}
	if n := db.Stats().Events; int64(len(all)) != n {
		t.Fatalf("a scan finds %d events of %d", len(all), n)
	}
	return all
}

// scanVersions returns all versions that are held of some events.
func scanVersions(t *testing.T, db *bolt.DB, events []scanned) (all []scanned) {
	t.Helper()
	exists := map[store.Key]bool{}
	for _, s := range events {
		exists[s.key] = true
	}
	err := db.Timeline().Versions(t.Context(), nil, func(v *store.View, gone bool) bool {
		if exists[v.Key] && !gone {
			all = append(all, scannedOf(t, v))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func scannedOf(t *testing.T, v *store.View) scanned {
	t.Helper()
	note, err := codec.Note(v)
	o, ok := v.Attributes.Occurrence()
	if err != nil || !ok {
		t.Fatal(err)
	}
	text := event.AppendText(nil, note, v.Attributes)
	return scanned{
		v.Key, store.Moment{Time: o.Time, Revision: v.Revision}, v.Revision, text, sameCase(string(note)), sameCase(string(text[len(note):])),
		string(v.Attributes.Field(event.Reason)), string(v.Attributes.Field(event.RegardingName)),
	}
}

// newestOf returns the newest version of each event that matches, the newest first.
func newestOf(versions []scanned, match func(*scanned) bool) (all []scanned) {
	newest := map[store.Key]scanned{}
	for _, s := range versions {
		if match(&s) && newest[s.key].revision < s.revision {
			newest[s.key] = s
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b scanned) int { return a.at.Compare(b.at, false) })
}

// hour is the range that all events are in.
func hour() store.Range { return store.Range{From: goldenTime(), To: goldenTime().Add(time.Hour)} }

// having returns the revisions of the events that match, oldest or newest first.
func having(all []scanned, oldestFirst bool, match func(*scanned) bool) (revisions []uint64) {
	for i := range all {
		if match(&all[i]) {
			revisions = append(revisions, all[i].revision)
		}
	}
	if oldestFirst {
		slices.Reverse(revisions)
	}
	return revisions
}

// searchAll compares what is found by pieces, and by what people search for, with what a scan finds, until enough
// searches of both kinds found something.
func searchAll(t *testing.T, db *bolt.DB, rnd *rand.Rand, searches int) {
	t.Helper()
	all := scan(t, db)
	versions := scanVersions(t, db, all)
	byPieces, byText := 0, 0
	for n := 0; n < searches || min(byPieces, byText) < searches/4; n++ {
		if n == 20*searches {
			t.Fatalf("of %d searches only %d and %d found anything", n, byPieces, byText)
		}
		byPieces += min(1, searchPieces(t, db, rnd, all))
		byText += min(1, searchText(t, db, rnd, versions))
	}
}

// searchPieces searches for random pieces of texts, with and without saying which they are, and returns how many events
// have them.
func searchPieces(t *testing.T, db *bolt.DB, rnd *rand.Rand, all []scanned) int {
	t.Helper()
	var pieces [][]byte
	for range 1 + rnd.IntN(3) {
		text := storetest.Text(rnd, 1)
		if rnd.IntN(2) == 0 {
			parts := strings.Split(string(all[rnd.IntN(len(all))].text), "\x00") // a piece has no NUL
			text = cmp.Or(parts[rnd.IntN(len(parts))], text)
		}
		pieces = append(pieces, storetest.PartOf(rnd, text))
	}
	matches := func(text []byte) bool {
		text = event.Fold(nil, text)
		return !slices.ContainsFunc(pieces, func(p []byte) bool { return !bytes.Contains(text, p) })
	}
	q := store.TimeQuery{Range: hour(), OldestFirst: rnd.IntN(2) == 0}
	q.Match = func(v *store.View) (bool, error) {
		note, err := codec.Note(v)
		return matches(event.AppendText(nil, note, v.Attributes)), err
	}
	want := having(all, q.OldestFirst, func(s *scanned) bool { return matches(s.text) })
	for range 2 {
		var found []uint64
		for q, more := q, true; more; {
			p, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
				found = append(found, v.Revision)
				return len(found)%500 != 0
			})
			if err != nil {
				t.Fatal(err)
			}
			more, q.Revision, q.After = p.More, p.Revision, p.Last
		}
		if !slices.Equal(found, want) {
			t.Fatalf("%q, pieces %t: %d are found of %d", pieces, q.Filter != nil, len(found), len(want))
		}
		q.Match, q.Filter = nil, words(pieces...)
	}
	return len(want)
}

// words returns a filter of pieces.
func words(pieces ...[]byte) *event.Filter {
	all := event.All()
	for _, p := range pieces {
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterWord, Word: p})
	}
	return all
}

// randomTerm returns a term of a search, and whether an event matches it.
func randomTerm(rnd *rand.Rand, all []scanned) (term string, match func(*scanned) bool) {
	one := &all[rnd.IntN(len(all))]
	text := storetest.Text(rnd, 1)
	if rnd.IntN(2) == 0 {
		note, _ := event.CutNote(one.text)
		text = string(note)
	}
	part := string(storetest.PartOf(rnd, text))
	phrase := `"` + part + `"`
	part = sameCase(part)
	switch rnd.IntN(6) {
	case 0:
		return "note:" + phrase, func(s *scanned) bool { return strings.Contains(s.note, part) }
	case 1:
		return "-" + phrase, func(s *scanned) bool { return !strings.Contains(s.note, part) && !strings.Contains(s.rest, part) }
	case 2:
		reason := sameCase(one.reason)
		return "(" + phrase + " OR reason:" + strings.ToLower(one.reason) + ")", func(s *scanned) bool {
			return strings.Contains(s.note, part) || strings.Contains(s.rest, part) || sameCase(s.reason) == reason
		}
	default:
		return phrase, func(s *scanned) bool { return strings.Contains(s.note, part) || strings.Contains(s.rest, part) }
	}
}

// searchText searches as people do: for phrases, without phrases, for one phrase of two, and by fields. It returns how
// many events have it.
func searchText(t *testing.T, db *bolt.DB, rnd *rand.Rand, all []scanned) int {
	t.Helper()
	var terms []string
	var matches []func(*scanned) bool
	for range 1 + rnd.IntN(3) {
		term, match := randomTerm(rnd, all)
		terms, matches = append(terms, term), append(matches, match)
	}
	switch one := all[rnd.IntN(len(all))]; rnd.IntN(6) {
	case 0: // is looked up by its postings
		terms, matches = append(terms, "name:"+one.name), append(matches, func(s *scanned) bool { return s.name == one.name })
	case 1:
		terms, matches = append(terms, "reason!="+one.reason), append(matches, func(s *scanned) bool { return s.reason != one.reason })
	case 2: // few events have it
		rare := reasons[len(reasons)-1]
		terms, matches = append(terms, "reason:"+rare), append(matches, func(s *scanned) bool { return s.reason == rare })
	}
	text := strings.Join(terms, " ")
	parsed, err := query.ParseTerms("", "", text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	querier := query.Querier{Timeline: db.Timeline(), Revision: db.Revision, Now: goldenTime}
	shot, err := querier.Snapshot(t.Context(), query.Query{From: hour().From, To: hour().To, Allows: func(string, string) bool { return true }, Terms: parsed})
	if err != nil {
		t.Fatal(err)
	}
	page := query.Page{OldestFirst: rnd.IntN(2) == 0, Limit: []int{0, 100}[rnd.IntN(2)]}
	want := having(newestOf(all, func(s *scanned) bool {
		return !slices.ContainsFunc(matches, func(match func(*scanned) bool) bool { return !match(s) })
	}), page.OldestFirst, func(*scanned) bool { return true })
	var found []uint64
	for more := true; more; {
		next, err := shot.Events(t.Context(), page, func(v *store.View, _ store.Moment) bool {
			found = append(found, v.Revision)
			return page.Limit == 0 || len(found)%page.Limit != 0
		})
		if err != nil {
			t.Fatal(err)
		}
		more, page.After = next.More, next.After
	}
	if !slices.Equal(found, want) {
		t.Fatalf("%q: %d are found of %d", text, len(found), len(want))
	}
	return len(want)
}

// searchEnds searches for nobody.
func searchEnds(t *testing.T, db *bolt.DB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := store.TimeQuery{Range: hour(), Filter: words([]byte("NOWHERE"))}
	if _, err := db.Timeline().Observed(ctx, q, func(*store.View, store.Moment) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// asking is a context that counts the calls of its Err.
type asking struct {
	context.Context
	times int
}

func (a *asking) Err() error {
	a.times++
	return a.Context.Err()
}

// TestSearchInRounds: a search and a count are read in rounds, between which other requests go first: one of 512 rows,
// and one of each event that is read.
func TestSearchInRounds(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: goldenTime})
	rnd := randtest.New(t)
	fillNotes(t, db, rnd)
	rounds := func(f *event.Filter) (listed, counted int) {
		ctx := &asking{Context: t.Context()}
		if _, err := db.Timeline().Observed(ctx, store.TimeQuery{Range: hour(), Filter: f}, func(*store.View, store.Moment) bool { return true }); err != nil {
			t.Fatal(err)
		}
		listed, ctx.times = ctx.times, 0
		c := store.Count{Range: hour(), Filter: f, Group: func(event.Dimensions, event.Regarding) int { return 0 }}
		if err := db.Timeline().Count(ctx, c, func(store.Occurred) {}); err != nil {
			t.Fatal(err)
		}
		return listed, ctx.times
	}
	for range 2 {
		searchAll(t, db, rnd, 4)
		if listed, counted := rounds(words([]byte("E"))); listed < 100 || counted < 7 { // chunks of 2,800 versions in four files
			t.Errorf("a search has %d rounds, a count %d", listed, counted)
		}
		named := &event.Filter{Kind: event.FilterField, Field: event.FieldName, Fits: func(string) bool { return false }}
		if listed, counted := rounds(named); listed < 2800 || counted < 2800 {
			t.Errorf("a search for a name has %d rounds, a count %d", listed, counted)
		}
		if err := db.Compact(t.Context(), true, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSearch: open, compressed, restored and rewritten, with damaged columns and without, a store finds what is
// found when all texts are looked at. Damage is reported, and goes when the files are written again, by whichever
// command. A search ends when nobody waits for it.
func TestSearch(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	searches := 4
	if *storetest.Long {
		searches = 2000
	}
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
	db := bolttest.Open(t, o)
	fillNotes(t, db, rnd)
	searchAll(t, db, rnd, searches)
	searchEnds(t, db)
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	wantCompressed(t, db, 3)
	searchAll(t, db, rnd, searches)
	bolttest.Check(t, db)
	_, archive := backUp(t, db)
	files := db.Segments()[:3]
	bolttest.Close(t, db)
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := bolt.Restore(t.Context(), restored, bytes.NewReader(archive), nil); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, bolt.Options{Dir: restored, Now: goldenTime})
	searchAll(t, db, rnd, searches)
	bolttest.Close(t, db)
	flip := func(b *bbolt.Bucket, rnd *rand.Rand, k, v []byte) error {
		v = bytes.Clone(v)
		v[rnd.IntN(len(v))] ^= 1 << rnd.IntN(8)
		return b.Put(bytes.Clone(k), v)
	}
	none := func(b *bbolt.Bucket, _ *rand.Rand, k, _ []byte) error { return b.Delete(k) }
	for name, damage := range map[string]struct {
		spoil func(b *bbolt.Bucket, rnd *rand.Rand, k, v []byte) error
		mend  func(t *testing.T, o bolt.Options)
	}{
		"flipped":            {flip, repaired},
		"none":               {none, repaired},
		"flipped, compacted": {flip, compactedAgain},
		"none, compacted":    {none, compactedAgain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			o := bolt.Options{Dir: t.TempDir(), Now: goldenTime}
			if err := os.CopyFS(o.Dir, os.DirFS(filepath.Dir(files[0]))); err != nil {
				t.Fatal(err)
			}
			for _, file := range files[rnd.IntN(3):] {
				editBucket(t, filepath.Join(o.Dir, filepath.Base(file)), "columns", func(b *bbolt.Bucket) error {
					k, v := b.Cursor().First()
					return damage.spoil(b, rnd, k, v)
				})
			}
			db := bolttest.Open(t, o)
			searchAll(t, db, rnd, searches)
			if r, err := db.Check(t.Context(), nil); err != nil || len(r.Problems) == 0 {
				t.Errorf("the check finds nothing, %v", err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			damage.mend(t, o)
			db = bolttest.Open(t, o)
			defer bolttest.Close(t, db)
			searchAll(t, db, rnd, searches)
			bolttest.Check(t, db)
		})
	}
}

// repaired does what check --repair does.
func repaired(t *testing.T, o bolt.Options) {
	t.Helper()
	if _, err := bolt.DropDamaged(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
}

// compactedAgain deletes some events of each file, and compacts once their history is over.
func compactedAgain(t *testing.T, o bolt.Options) {
	t.Helper()
	clock := bolttest.NewClock()
	o.Now, o.History = clock.Now, time.Minute
	db := bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	storetest.Parallel(t, 400, func(i int) {
		if _, err := db.Update(t.Context(), bolttest.Key(5*i), store.Any, bolttest.Remove); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	clock.Add(2 * time.Minute)
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
}
