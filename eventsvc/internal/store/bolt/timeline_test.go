package bolt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// allTime is more than tests observe.
func allTime() store.Range {
	return store.Range{From: time.Unix(-1e9, 0), To: goldenTime().Add(1e6 * time.Second)}
}

// countAll counts what was observed in a range, whatever it is.
func countAll(in store.Range) store.Count {
	return store.Count{Range: in, Group: func(event.Dimensions, event.Regarding) int { return 0 }}
}

// occurred returns how often what was observed, by namespace, reason and second.
func occurred(t testing.TB, db *bolt.DB) map[string]int64 {
	t.Helper()
	n := map[string]int64{}
	var groups []string
	count := store.Count{Range: allTime(), Group: func(d event.Dimensions, _ event.Regarding) int {
		groups = append(groups, d.Namespace+" "+d.Reason)
		return len(groups) - 1
	}}
	err := db.Timeline().Count(t.Context(), count, func(o store.Occurred) { n[fmt.Sprint(groups[o.Group], o.Second)] += o.Count })
	if err != nil {
		t.Error(err)
	}
	return n
}

// observed returns the events by the time of their observation.
func observed(t testing.TB, db *bolt.DB, q store.TimeQuery) (all []string) {
	t.Helper()
	q.Range = allTime()
	for {
		p, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, at store.Moment) bool {
			all = append(all, fmt.Sprintf("%s %s %d", at.Time, v.Key, v.Revision))
			return len(all)%7 > 0
		})
		if err != nil {
			t.Error(err)
		}
		if !p.More || err != nil {
			return all
		}
		q.After, q.Revision = p.Last, p.Revision
	}
}

// A history is what a test has observed.
type history struct {
	rnd *rand.Rand
	n   map[string]int64 // as occurred returns it
}

func newHistory(t *testing.T) *history {
	t.Helper()
	return &history{randtest.New(t), map[string]int64{}}
}

// write creates, changes or deletes an event.
func (h *history) write(t testing.TB, db *bolt.DB) {
	t.Helper()
	k := store.Key{Namespace: fmt.Sprint("ns", h.rnd.IntN(3)), Name: fmt.Sprint("e", h.rnd.IntN(40))}
	o := event.Occurrence{Time: goldenTime().Add(time.Duration(h.rnd.Int64N(int64(20 * time.Minute)))).Truncate(time.Microsecond), Count: 1 + h.rnd.Int64N(9)}
	reason := fmt.Sprint("R", h.rnd.IntN(4))
	o.New = o.Count
	_, err := db.Update(t.Context(), k, store.Any, func(is *store.Record) (store.Decision, error) {
		if is != nil && h.rnd.IntN(3) == 0 {
			o.New = 0
			return store.Decision{Op: store.Delete}, nil
		}
		a := event.NewAttributes([event.NumFields]string{event.Reason: reason, event.Type: "Normal"}, nil).With(o)
		if is != nil {
			was, _ := is.Attributes.Occurrence()
			o.New = max(0, o.Count-was.Counted)
		}
		return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a, Value: make([]byte, h.rnd.IntN(900))}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.New > 0 {
		h.n[fmt.Sprint(k.Namespace+" "+reason, o.Time.Unix())] += o.New
	}
}

// compare wants what was observed counted once.
func (h *history) compare(t testing.TB, db *bolt.DB, when string) {
	t.Helper()
	if diff := cmp.Diff(h.n, occurred(t, db)); diff != "" {
		t.Fatalf("%s: %s", when, diff)
	}
}

// TestOccurrencesStay: what was observed is counted once, whatever becomes of the files:
// checkpoints, rotation, stops after a failure, kills, compaction, an index that is made again.
func TestOccurrencesStay(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 16 << 10, MemtableLimit: 30, History: time.Nanosecond}
	db := bolttest.Open(t, o)
	rounds := 15
	if *storetest.Long {
		rounds = 1000
	}
	for round := range rounds {
		for range h.rnd.IntN(60) {
			h.write(t, db)
		}
		what := h.rnd.IntN(6)
		switch what {
		case 0:
			db.Fail()
			bolttest.Close(t, db)
			db = bolttest.Open(t, o)
		case 1:
			bolttest.Close(t, db)
			if err := os.Remove(filepath.Join(o.Dir, "index.db")); err != nil {
				t.Fatal(err)
			}
			db = bolttest.Open(t, o)
		case 2:
			dir := killed(t, o.Dir)
			bolttest.Close(t, db)
			o.Dir = dir
			db = bolttest.Open(t, o)
		case 3:
			if err := db.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		case 4:
			if err := db.Compact(t.Context(), false, nil); err != nil {
				t.Fatal(err)
			}
		default:
			bolttest.Maintain(t, db)
		}
		h.compare(t, db, fmt.Sprintf("round %d, after %d", round, what))
		bolttest.Check(t, db)
	}
	bolttest.Close(t, db)
}

// TestCountsOutliveRecords: the files of records that are gone are counted on until what was observed according to them
// is past its time. Then they go.
func TestCountsOutliveRecords(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	now := goldenTime().Add(20 * time.Minute)
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 8 << 10, MemtableLimit: 30, History: time.Nanosecond, Retention: time.Hour, Now: func() time.Time { return now }}
	db := bolttest.Open(t, o)
	for range 120 {
		h.write(t, db)
	}
	h.compare(t, db, "written")
	for i := range 40 * 3 {
		k := store.Key{Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("e", i/3)}
		_, err := db.Update(t.Context(), k, store.Any, func(is *store.Record) (store.Decision, error) {
			if is == nil {
				return store.Decision{}, nil
			}
			return store.Decision{Op: store.Delete}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed := len(db.Segments())
	for range 3 {
		now = now.Add(time.Second)
		if err := db.Compact(t.Context(), false, nil); err != nil {
			t.Fatal(err)
		}
		h.compare(t, db, "compacted")
		bolttest.Check(t, db)
		o.Dir = killed(t, o.Dir)
		bolttest.Close(t, db)
		db = bolttest.Open(t, o)
		h.compare(t, db, "after a start")
	}
	if stats := db.Stats(); stats.Events+stats.LiveBytes+stats.HistoryBytes+stats.DeadBytes > 0 || len(db.Segments()) != sealed {
		t.Errorf("%d files of %d are left, with %+v", len(db.Segments()), sealed, stats)
	}
	now = now.Add(30 * time.Minute) // between the first observation that goes and the last
	bolttest.Maintain(t, db)
	now = now.Add(time.Hour)
	bolttest.Maintain(t, db)
	if clear(h.n); len(db.Segments()) != 1 {
		t.Errorf("%d files are left", len(db.Segments()))
	}
	h.compare(t, db, "past its time")
	bolttest.Close(t, db)
}

// TestDamagedColumns: damage of columns is named by check, and answers are whole or an error. Compaction makes the
// columns of records again.
func TestDamagedColumns(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	o := bolt.Options{Dir: t.TempDir()}
	db := bolttest.Open(t, o)
	for range 60 {
		h.write(t, db)
	}
	if err := db.Seal(); err != nil {
		t.Fatal(err)
	}
	bolttest.Close(t, db)
	damage(t, filepath.Join(o.Dir, firstLog), "columns")
	db = bolttest.Open(t, o)
	n, want := int64(0), int64(0)
	for _, times := range h.n {
		want += times
	}
	err := db.Timeline().Count(t.Context(), countAll(allTime()), func(o store.Occurred) { n += o.Count })
	if err == nil && n != want || err != nil && !errors.As(err, new(*store.CorruptError)) {
		t.Errorf("%d are counted, want %d: %v", n, want, err)
	}
	report, err := db.Check(t.Context(), nil)
	if named := strings.Contains(strings.Join(report.Problems, "\n"), "column"); err != nil || !named {
		t.Errorf("check: %v, %q", err, report.Problems)
	}
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Error(err)
	}
	bolttest.Check(t, db)
	bolttest.Close(t, db)
}

// damage changes the middle entry of a bucket.
func damage(t *testing.T, path, bucket string) {
	t.Helper()
	editBucket(t, path, bucket, func(b *bbolt.Bucket) error {
		c := b.Cursor()
		k, v := c.First()
		for range 2 {
			k, v = c.Next()
		}
		spoiled := slices.Clone(v)
		spoiled[len(v)/2] ^= 4
		return b.Put(k, spoiled)
	})
}

// TestObservedLooksAtFew: a page ends when it has looked at many events, also if it has found
// none, and the next one goes on from there.
func TestObservedLooksAtFew(t *testing.T) {
	t.Parallel()
	const events = 17_000 // a page looks at 16,384
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	defer bolttest.Close(t, db)
	bolttest.Fill(t, db, events, func(i int) (store.Key, store.Draft) {
		at := goldenTime().Add(time.Duration(i/20) * time.Second)
		a := event.NewAttributes([event.NumFields]string{}, nil).With(event.Occurrence{Time: at, Count: 1, New: 1})
		return bolttest.Key(i), store.Draft{Attributes: a}
	})
	few := func(name string) bool { // which no column has
		return slices.Contains([]string{bolttest.Key(0).Name, bolttest.Key(1).Name, bolttest.Key(events - 2).Name, bolttest.Key(events - 1).Name}, name)
	}
	for _, oldestFirst := range []bool{false, true} {
		q := store.TimeQuery{Range: allTime(), OldestFirst: oldestFirst, Filter: &event.Filter{Kind: event.FilterField, Field: event.FieldName, Fits: few}}
		var found []store.Key
		pages := 0
		for more := true; more; pages++ {
			p, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
				found = append(found, v.Key)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			q.Revision, q.After, more = p.Revision, p.Last, p.More
		}
		sorted := slices.SortedFunc(slices.Values(found), func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
		want := []store.Key{bolttest.Key(0), bolttest.Key(1), bolttest.Key(events - 2), bolttest.Key(events - 1)}
		slices.SortFunc(want, func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
		if diff := cmp.Diff(want, sorted); diff != "" || pages != 2 {
			t.Errorf("oldest first %v: %d pages, %s", oldestFirst, pages, diff)
		}
	}
}

// TestObservedSees: a page has what its caller sees and nothing else, whether it goes over the time or reads the
// postings of a term.
func TestObservedSees(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	defer bolttest.Close(t, db)
	bolttest.Fill(t, db, 400, func(i int) (store.Key, store.Draft) {
		reason := "Usual"
		if i%100 < 2 {
			reason = "Rare"
		}
		at := goldenTime().Add(time.Duration(i) * time.Second)
		a := event.NewAttributes([event.NumFields]string{event.Reason: reason, event.Node: "n"}, nil).With(event.Occurrence{Time: at, Count: 1, New: 1})
		return store.Key{Namespace: []string{"mine", "other"}[i%2], Name: fmt.Sprint("e", i)}, store.Draft{Attributes: a}
	})
	for _, s := range []*event.Selector{nil, {Fields: []event.FieldRequirement{{Field: event.Reason, Value: "Rare"}}}} {
		q := store.TimeQuery{Range: allTime(), Selector: s}
		q.Sees = func(d event.Dimensions) bool { return d.Namespace == "mine" && d.Node == "" }
		n := 0
		_, err := db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
			if n++; v.Namespace != "mine" {
				t.Errorf("%v: shows %s", s, v.Key)
			}
			return true
		})
		if want := map[bool]int{true: 200, false: 4}[s == nil]; err != nil || n != want {
			t.Errorf("%v: %d events, want %d: %v", s, n, want, err)
		}
	}
}

// TestLongTime: what happened over a long time is counted in a few rounds. Their work depends on what happened, and not
// on how long ago.
func TestLongTime(t *testing.T) {
	t.Parallel()
	const events = 20_000
	day := func(i int) time.Time { return time.Unix(int64(i)*86400, 0) }
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: func() time.Time { return day(events) }, SegmentBytes: 256 << 10})
	defer bolttest.Close(t, db)
	bolttest.Fill(t, db, events, func(i int) (store.Key, store.Draft) {
		a := event.NewAttributes([event.NumFields]string{event.Reason: "R"}, nil).With(event.Occurrence{Time: day(i), Count: 2, New: 2})
		return bolttest.Key(i), store.Draft{Attributes: a}
	})
	for _, flushed := range []bool{false, true} {
		n := int64(0)
		r := store.Range{From: time.Unix(-1e10, 0), To: time.Unix(1e10, 0)}
		if err := db.Timeline().Count(t.Context(), countAll(r), func(o store.Occurred) { n += o.Count }); err != nil || n != 2*events {
			t.Errorf("flushed %v: %d occurrences, %v", flushed, n, err)
		}
		if err := db.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotCredible: an event that says it was observed before 1970 or far in the future is found
// when it was written, whichever of its versions says so.
func TestNotCredible(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: goldenTime})
	defer bolttest.Close(t, db)
	for i, at := range []time.Time{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), goldenTime().AddDate(1, 0, 0)} {
		for count := range int64(2) {
			a := event.NewAttributes([event.NumFields]string{event.Reason: "R"}, nil).With(event.Occurrence{Time: at, Count: count + 1, New: count + 1})
			_, err := db.Update(t.Context(), bolttest.Key(i), store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{fmt.Sprint("ns R", goldenTime().Unix()): 4}, occurred(t, db)); diff != "" {
		t.Error(diff)
	}
	if observed, written, err := db.Timeline().Begin(t.Context()); err != nil || !observed.Equal(goldenTime()) || !written.Equal(goldenTime()) {
		t.Errorf("history begins at %v, and was first written at %v, %v", observed, written, err)
	}
}

// TestTimelineWhileWritten: of one revision the answers are whole and the same, while events
// are written, and files are rotated, compacted and removed.
func TestTimelineWhileWritten(t *testing.T) {
	t.Parallel()
	const events = 30
	writes := 200
	if *storetest.Long {
		writes = 20_000
	}
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 16 << 10, MemtableLimit: 50, History: 20 * time.Millisecond})
	defer bolttest.Close(t, db)
	write := func(i int) {
		_, err := db.Update(t.Context(), bolttest.Key(i%events), store.Any, func(is *store.Record) (store.Decision, error) {
			o := event.Occurrence{Time: goldenTime().Add(time.Duration(i) * time.Second), Count: 1, New: 1}
			if is != nil {
				was, _ := is.Attributes.Occurrence()
				o.Count += was.Count
			}
			a := event.NewAttributes([event.NumFields]string{event.Reason: fmt.Sprint(i % 7)}, nil).With(o)
			return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a, Value: make([]byte, 200)}}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for i := range events {
		write(i)
	}
	var done atomic.Bool
	var running sync.WaitGroup
	running.Go(func() {
		defer done.Store(true)
		for i := events; i < writes && !t.Failed(); i++ {
			write(i)
		}
	})
	running.Go(func() {
		for !done.Load() {
			bolttest.Maintain(t, db)
		}
	})
	reads := 0
	for !done.Load() || reads == 0 {
		in := allTime()
		in.Revision = db.Revision()
		n, shown := int64(0), 0
		err := db.Timeline().Count(t.Context(), countAll(in), func(o store.Occurred) { n += o.Count })
		if err == nil && n != int64(in.Revision)-1 { // the first revision is that of the empty store
			t.Errorf("%d observed at revision %d", n, in.Revision)
		}
		if err == nil {
			_, err = db.Timeline().Observed(t.Context(), store.TimeQuery{Range: in}, func(*store.View, store.Moment) bool { shown++; return true })
		}
		if err != nil && !errors.As(err, new(*store.ExpiredError)) {
			t.Error(err)
		} else if err == nil && shown != events {
			t.Errorf("%d events at revision %d", shown, in.Revision)
		}
		if err == nil {
			reads++
		}
		if t.Failed() {
			break
		}
	}
	waittest.Join(t, &running)
	t.Logf("%d reads of %d segments", reads, len(db.Segments()))
}

// TestTimelineInParts: pages that show their events in several parts have them all, in
// order, also of one second that has more than what is kept.
func TestTimelineInParts(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
	defer bolttest.Close(t, db)
	value := strings.Repeat("x", 40_000)
	values := []string{storetest.Noted("even" + value), storetest.Noted("odd" + value)}
	var want []string
	for i := range 90 {
		// In each of three seconds, the later ones were observed first.
		at := goldenTime().Add(time.Duration(i/30)*time.Second + time.Duration(900-i)*time.Millisecond)
		a := event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil).With(event.Occurrence{Time: at, Count: 1, New: 1})
		r, err := store.Create(t.Context(), db, bolttest.Key(i), store.Draft{Attributes: a, Value: []byte(values[i%2])})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s %s %d", at, r.Key, r.Revision))
	}
	for _, second := range [][]string{want[:30], want[30:60], want[60:]} {
		slices.Reverse(second)
	}
	even := func(line string) bool { return (line[len(line)-1]-'0')%2 == 0 }
	matched := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return !even(line) })
	match := func(v *store.View) (bool, error) {
		note, err := codec.Note(v)
		return string(note) == "even"+value, err
	}
	if diff := cmp.Diff(want, observed(t, db, store.TimeQuery{OldestFirst: true})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(matched, observed(t, db, store.TimeQuery{OldestFirst: true, Match: match})); diff != "" {
		t.Errorf("with Match (-want +got)\n%s", diff)
	}
	slices.Reverse(want)
	slices.Reverse(matched)
	if diff := cmp.Diff(want, observed(t, db, store.TimeQuery{})); diff != "" {
		t.Errorf("newest first (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(matched, observed(t, db, store.TimeQuery{Match: match})); diff != "" {
		t.Errorf("newest first, with Match (-want +got)\n%s", diff)
	}
}

// TestTimelineEndsWithStore: a store that is closed waits for the function of a page that works, and ends the page
// behind it.
func TestTimelineEndsWithStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"match", "visit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := bolttest.Open(t, bolt.Options{Dir: t.TempDir()})
			bolttest.Create(t, db, 3, storetest.Noted("value"))
			calls := 0
			done := make(chan error, 1)
			works := func() bool {
				if calls++; calls > 1 {
					return true
				}
				go func() { done <- db.Close() }()
				waittest.Until(t, "the store closes", func() bool { return db.Ready(t.Context()) != nil })
				select {
				case err := <-done:
					t.Errorf("the files were closed while they are read, %v", err)
				default:
				}
				return true
			}
			q := store.TimeQuery{Range: store.Range{To: time.Now().Add(time.Hour)}}
			if name == "match" {
				q.Match = func(*store.View) (bool, error) { return works(), nil }
			}
			if _, err := db.Timeline().Observed(t.Context(), q, func(*store.View, store.Moment) bool { return works() }); !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
			if calls == 0 {
				t.Error("no event was shown")
			}
			if err := waittest.Within(t, done); err != nil {
				t.Error(err)
			}
		})
	}
}
