package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/usage"
)

// A tombstones store has small segments, and a clock by which all that was
// superseded so far can be forgotten.
type tombstones struct {
	t   *testing.T
	o   Options
	db  *DB
	now atomic.Int64
}

func newTombstones(t *testing.T) *tombstones {
	ts := &tombstones{t: t}
	ts.now.Store(startTime)
	ts.o = Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, History: time.Minute, Retention: 30 * 24 * time.Hour, Now: func() time.Time { return time.Unix(0, ts.now.Load()) }}
	ts.db = openInside(t, ts.o)
	t.Cleanup(func() { _ = ts.db.Close() })
	return ts
}

const startTime = 1_700_000_000_000_000_000

// put writes events of a kilobyte each, which were observed longer ago than is counted.
func (ts *tombstones) put(kind string, from, to int) {
	ts.t.Helper()
	for i := from; i < to; i++ {
		putAttributes(ts.t, ts.db, fmt.Sprint(kind, i), make([]byte, 1000), event.NewAttributes([event.NumFields]string{}, nil).With(event.Occurrence{Time: time.Unix(1e9, 0), Count: 1, New: 1}))
	}
}

func (ts *tombstones) remove(kind string, from, to int) {
	ts.t.Helper()
	for i := from; i < to; i++ {
		if _, err := ts.db.Update(ts.t.Context(), store.Key{Namespace: "ns", Name: fmt.Sprint(kind, i)}, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Delete}, nil
		}); err != nil {
			ts.t.Fatal(err)
		}
	}
}

// seal starts the next segment.
func (ts *tombstones) seal() {
	ts.t.Helper()
	if err := ts.db.committer.Queue.Do(ts.t.Context(), func() error { return ts.db.committer.Writer.Rotate() }); err != nil {
		ts.t.Fatal(err)
	}
}

// maintain forgets all that was superseded so far.
func (ts *tombstones) maintain() {
	ts.t.Helper()
	ts.now.Add(int64(time.Hour))
	if err := ts.db.Maintain(ts.t.Context()); err != nil {
		ts.t.Fatal(err)
	}
}

// reopen opens the store again after its files were changed.
func (ts *tombstones) reopen(change func() error) {
	ts.t.Helper()
	if err := errors.Join(ts.db.Close(), change()); err != nil {
		ts.t.Fatal(err)
	}
	ts.db = openInside(ts.t, ts.o)
}

// rebuild has the index made again from the log.
func (ts *tombstones) rebuild() {
	ts.t.Helper()
	ts.reopen(func() error { return os.Remove(filepath.Join(ts.o.Dir, "index.db")) })
}

// want compares the events with those that must be there, and has the store checked.
func (ts *tombstones) want(names ...string) {
	ts.t.Helper()
	if got := ts.names(); !slices.Equal(got, names) {
		ts.t.Errorf("there is %s, want %s", got, names)
	}
	if r, err := ts.db.Check(ts.t.Context(), nil); err != nil || len(r.Problems) > 0 {
		ts.t.Errorf("the check says %v, %v", r, err)
	}
}

func (ts *tombstones) names() (names []string) {
	ts.t.Helper()
	records, page, err := store.Records(ts.t.Context(), ts.db, store.Query{})
	if err != nil || page.More {
		ts.t.Fatal(page.More, err)
	}
	for _, r := range records {
		names = append(names, r.Key.Name)
	}
	return names
}

func (ts *tombstones) first() *seglog.Segment { return ts.db.log.Segments()[0] }

// dieThenChurn makes a first segment of nothing but events that are gone, a second
// one with their deletions, and a third, and forgets all of that but for the first.
func (ts *tombstones) dieThenChurn() (first string, content []byte) {
	ts.t.Helper()
	ts.put("gone", 0, 20)
	ts.seal()
	ts.put("kept", 0, 3)
	ts.remove("gone", 0, 20)
	ts.put("churn", 0, 20)
	ts.seal()
	path := ts.first().Path
	content, err := os.ReadFile(path)
	if err != nil {
		ts.t.Fatal(err)
	}
	ts.maintain()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		ts.t.Fatalf("the first segment was not removed: %v", err)
	}
	return path, content
}

// R11: a log file whose removal a power cut has undone holds versions whose
// deletions must stay with it, although the index was told that it is gone.
func TestSegmentThatComesBack(t *testing.T) {
	t.Parallel()
	ts := newTombstones(t)
	path, content := ts.dieThenChurn()
	ts.reopen(func() error { return os.WriteFile(path, content, 0o600) })
	ts.remove("churn", 0, 20) // makes the segment with the deletions one to be compacted
	ts.maintain()
	ts.maintain()
	ts.rebuild()
	ts.want("kept0", "kept1", "kept2")
}

// R11: an index that is made again from the log does not know of versions that are
// dead because of others that are not there any more. Deletions are kept for
// them too, when it is made again later.
func TestDeletionsStayWithARebuiltIndex(t *testing.T) {
	t.Parallel()
	ts := newTombstones(t)
	ts.put("kept", 0, 40)
	ts.put("gone", 0, 5) // too little to compact that segment
	ts.seal()
	ts.put("gone", 0, 5)
	ts.put("churn", 0, 30)
	ts.seal()
	ts.remove("churn", 0, 30)
	ts.remove("gone", 0, 5)
	ts.put("late", 0, 30)
	ts.seal()
	ts.maintain() // the second version of what is gone goes
	want := ts.names()
	want = slices.DeleteFunc(want, func(name string) bool { return strings.HasPrefix(name, "late") })
	ts.rebuild()
	ts.remove("late", 0, 30) // and now the segment with its deletion is compacted
	ts.maintain()
	ts.rebuild()
	ts.want(want...)
}

// A deletion shows the version before it. If only an older version is left, none stands in
// for it.
func TestDeletionWithoutTheVersionBefore(t *testing.T) {
	t.Parallel()
	if *storetest.Compress {
		t.Skip("a segment that is compressed loses what is dead in it, be it little")
	}
	ts := newTombstones(t)
	ts.put("kept", 0, 40)
	ts.put("gone", 0, 1) // too little to compact that segment
	first := ts.db.Revision()
	ts.seal()
	ts.put("gone", 0, 1)
	ts.put("churn", 0, 30)
	ts.seal()
	ts.remove("churn", 0, 30)
	ts.remove("gone", 0, 1)
	ts.put("gone", 0, 1)
	want := []string{fmt.Sprint(first, " there"), fmt.Sprint(ts.db.Revision(), " there")}
	ts.put("late", 0, 30)
	ts.seal()
	ts.maintain() // the second version goes, its deletion stays
	var got []string
	err := ts.db.Timeline().Versions(t.Context(), nil, func(v *store.View, gone bool) bool {
		if v.Key.Name == "gone0" {
			got = append(got, fmt.Sprint(v.Revision, map[bool]string{false: " there", true: " gone"}[gone]))
		}
		return true
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// spoil has the index file lead from a key to a revision. The newest record is of
// another key.
func (ts *tombstones) spoil(key string, p index.Pointer) {
	ts.t.Helper()
	db := ts.db
	if err := db.committer.Flush(ts.t.Context()); err != nil {
		ts.t.Fatal(err)
	}
	for range 10 {
		err := db.committer.Queue.Do(ts.t.Context(), func() error {
			db.index.Put(key, p)
			return db.log.View(func(log *seglog.Reader) error { // the index goes on with the newest revision
				e, err := log.Newest()
				db.index.Put(string(e.Key), index.NewPointer(e.Revision, e.Kind == seglog.Deleted))
				db.index.Freeze(db.usage.Live())
				return err
			})
		})
		if err = errors.Join(err, db.index.Merge(0)); err != nil {
			ts.t.Fatal(err)
		}
		switch got, ok, err := db.index.Newest(key); {
		case err != nil || ok && got != p:
			ts.t.Fatalf("the index has %s at %d, %v, %v", key, got.Revision(), ok, err)
		case ok:
			return
		}
		// The merge of Flush had told the background to merge, which did so with this entry and dropped it as it
		// should.
	}
	ts.t.Fatalf("the index does not keep %s", key)
}

// R11: a deletion is kept as well when the index has it still.
func TestDeletionsStayThatTheIndexHas(t *testing.T) {
	t.Parallel()
	ts := newTombstones(t)
	ts.put("kept", 0, 40)
	ts.put("gone", 0, 1)
	ts.seal()
	ts.remove("gone", 0, 1)
	ts.put("churn", 0, 30)
	ts.seal()
	deletion := ts.db.Revision() - 30
	ts.maintain()
	ts.spoil("ns/gone0", index.NewPointer(deletion, true)) // as if forgetting it had failed
	ts.remove("churn", 0, 30)
	ts.maintain()
	if len(ts.db.log.Segments()) < 3 {
		t.Fatal("the first segments are gone")
	}
	want := slices.DeleteFunc(ts.names(), func(name string) bool { return !strings.HasPrefix(name, "kept") })
	ts.rebuild()
	ts.want(want...)
}

// R1: a process that is killed when it has compacted a segment, and has not told
// the index of it, leaves an account by which nothing of the segment is needed.
func TestKilledBehindACompaction(t *testing.T) {
	t.Parallel()
	ts := newTombstones(t)
	ts.put("kept", 0, 10)
	ts.put("gone", 0, 30)
	ts.remove("gone", 0, 30)
	ts.seal()
	first := ts.first()
	dead := first.Bytes()
	ts.maintain()
	want := ts.names()
	if len(want) != 10 || ts.first() == first {
		t.Fatalf("there is %s, in a segment that was not compacted", want)
	}
	if err := ts.db.usage.SetSegment(ts.first().Base, usage.SegmentAccount{Dead: dead}); err != nil {
		t.Fatal(err)
	}
	ts.reopen(func() error { return nil })
	ts.maintain()
	ts.want(want...)
	ts.rebuild()
	ts.want(want...)
}

// R11: the check tells of versions that an index which is made again from the log
// would bring back, or would not have, and a compaction removes the former.
func TestCheckTellsOfLostDeletions(t *testing.T) {
	t.Parallel()
	ts := newTombstones(t)
	path, content := ts.dieThenChurn()
	ts.remove("churn", 0, 20)
	ts.maintain() // the deletions go, with nothing that they are of
	ts.want("kept0", "kept1", "kept2")
	ts.reopen(func() error { return os.WriteFile(path, content, 0o600) })
	r, err := ts.db.Check(t.Context(), nil)
	if err != nil || len(r.Problems) != 20 || !strings.Contains(r.Problems[0], "ns/gone0 does not exist, but an index made again from the log would bring it back") {
		t.Errorf("the check says %v, %v", r, err)
	}
	if err := ts.db.Compact(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	ts.want("kept0", "kept1", "kept2")
	ts.rebuild()
	ts.want("kept0", "kept1", "kept2")

	before, err := store.Read(t.Context(), ts.db, store.Key{Namespace: "ns", Name: "kept0"})
	if err != nil {
		t.Fatal(err)
	}
	ts.remove("kept", 0, 1)
	ts.put("later", 0, 1)
	ts.spoil("ns/kept0", index.NewPointer(before.Revision, false))
	if r, err = ts.db.Check(t.Context(), nil); err != nil || !strings.Contains(fmt.Sprint(r.Problems), "the index has ns/kept0 at revision") {
		t.Errorf("the check says %v, %v", r, err)
	}
}
