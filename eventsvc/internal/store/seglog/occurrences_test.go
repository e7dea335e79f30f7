package seglog

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/wal"
)

// observedRecord is the record of a version that was observed as often as its revision says.
func observedRecord(revision uint64, second int64) wal.Record {
	o := event.Occurrence{Time: time.Unix(second, 0), Count: int64(revision), New: int64(revision)}
	e := Entry{
		Revision: revision, Kind: Created, Key: fmt.Appendf(nil, "ns/e%d", revision), NamespaceLen: 2, Time: time.Unix(9e8, 0),
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "R"}, nil).With(o), Value: []byte("{}"),
	}
	return wal.Record{Revision: revision, Data: AppendEntry(nil, &e)}
}

// eachOccurrence calls visit with what was observed in a range.
func eachOccurrence(r *Reader, m *Moments, visit func(store.Occurred)) (err error) {
	for more := true; more && err == nil; {
		more, err = m.Occurrences(r, visit)
	}
	return err
}

// countedIn returns how often something was observed in each second, of what was written up
// to a revision.
func countedIn(t *testing.T, l *Log, last uint64) map[int64]int64 {
	t.Helper()
	n := map[int64]int64{}
	err := l.View(func(r *Reader) error {
		return eachOccurrence(r, &Moments{From: -1e9, To: 1e9, Last: last}, func(o store.Occurred) { n[o.Second] += o.Count })
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestCheckpointTwice: a checkpoint of records that the head has, because one that was
// reported as failed is there, counts nothing twice.
func TestCheckpointTwice(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	all := []wal.Record{observedRecord(2, 10), observedRecord(3, -10), observedRecord(5, 10), observedRecord(6, 70)}
	for _, some := range [][]wal.Record{all[:2], all[1:3], all} {
		if err := l.Checkpoint(l.Head(), some); err != nil {
			t.Fatal(err)
		}
	}
	want := map[int64]int64{10: 7, -10: 3, 70: 6}
	if diff := cmp.Diff(want, countedIn(t, l, 100)); diff != "" {
		t.Error(diff)
	}
	l.SetPending(all[2:]) // which the head has
	if diff := cmp.Diff(want, countedIn(t, l, 100)); diff != "" {
		t.Errorf("with pending records: %s", diff)
	}
	delete(want, 70)
	if diff := cmp.Diff(want, countedIn(t, l, 5)); diff != "" {
		t.Errorf("at revision 5: %s", diff)
	}
}

// TestRewriteKeepsSums: what records report that are left out is summed up, but for minutes
// before a time. What is carried, and where it came from, is kept.
func TestRewriteKeepsSums(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	var all []wal.Record
	for i := range uint64(6) {
		all = append(all, observedRecord(2+i, int64(i)*40))
	}
	if err := l.Checkpoint(l.Head(), all); err != nil {
		t.Fatal(err)
	}
	l.rotateTo(t, 10)
	if damaged, err := l.Carry(l.Segments()[0], time.Time{}); damaged || err != nil {
		t.Fatal(damaged, err)
	}
	want := countedIn(t, l, 100)
	l.rotateTo(t, 20)
	carriedTo := l.Segments()[1]
	l.rewriteAll(t, carriedTo, time.Time{})
	if diff := cmp.Diff(want, countedIn(t, l, 100)); diff != "" || len(want) != 6 {
		t.Errorf("carried, then rewritten: %s", diff)
	}
	l.rewriteAll(t, l.Segments()[1], time.Unix(61, 0)) // the next whole minute is the third
	for second := range want {
		if second < 120 {
			delete(want, second)
		}
	}
	if diff := cmp.Diff(want, countedIn(t, l, 100)); diff != "" || len(want) == 0 {
		t.Errorf("old minutes: %s", diff)
	}
}

// TestNeedsMerge: a segment with several runs of most minutes says so when it is sealed, and
// has one of each when it was rewritten.
func TestNeedsMerge(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for part := range uint64(2) {
		var records []wal.Record
		for i := range uint64(manyRuns / 2) {
			records = append(records, observedRecord(2+part*manyRuns+i, int64(i)*60))
		}
		if err := l.Checkpoint(l.Head(), records); err != nil {
			t.Fatal(err)
		}
	}
	want := countedIn(t, l, 1e6)
	l.rotateTo(t, 3*manyRuns)
	l.rotateTo(t, 3*manyRuns+1)
	if ss := l.Segments(); !ss[0].NeedsMerge() || ss[1].NeedsMerge() {
		t.Errorf("scattered: %v and %v", ss[0].NeedsMerge(), ss[1].NeedsMerge())
	}
	l.rewriteAll(t, l.Segments()[0], time.Time{})
	if l.Segments()[0].NeedsMerge() {
		t.Error("scattered when it was rewritten")
	}
	if diff := cmp.Diff(want, countedIn(t, l, 1e6)); diff != "" || len(want) != manyRuns/2 {
		t.Error(diff)
	}
}

// rotateTo seals the head and starts one with a base.
func (l *Log) rotateTo(t *testing.T, base uint64) {
	t.Helper()
	err := l.Head().Seal(base - 1)
	next, err2 := l.NewHead(base, "id", 1, false)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	l.Add(next)
}

// rewriteAll leaves all records out of a segment.
func (l *Log) rewriteAll(t *testing.T, s *Segment, since time.Time) {
	t.Helper()
	l.rewrite(t, s, since, false)
}

// rewriteKeeping rewrites a segment with all of its records.
func (l *Log) rewriteKeeping(t *testing.T, s *Segment) {
	t.Helper()
	l.rewrite(t, s, time.Unix(0, 0), true)
}

func (l *Log) rewrite(t *testing.T, s *Segment, since time.Time, needed bool) {
	t.Helper()
	filter := func(f func(needed func(*Entry) (bool, error)) error) error {
		return f(func(*Entry) (bool, error) { return needed, nil })
	}
	path := s.Path + ".tmp"
	_, err := l.Rewrite(context.Background(), s, path, Rewriting{Filter: filter, Since: since})
	if err == nil {
		err = os.Rename(path, s.Path)
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := OpenSegment(s.Path, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Replace(next)
	l.LetGo(s)
}
