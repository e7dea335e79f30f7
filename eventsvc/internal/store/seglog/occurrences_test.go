package seglog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
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

// countIn calls visit with what was observed according to versions up to a revision.
func countIn(l *Log, last uint64, sees *event.Filter, visit func(store.Occurred)) error {
	return l.View(func(r *Reader) error {
		q := columns.Query{From: -1e9, To: 1e9, Last: last, Filter: sees}
		tables, err := r.Tables(&q, func() error { return nil })
		for _, t := range tables {
			scan, failed := t.Scan(&q)
			if failed != nil || scan == nil {
				err = cmp.Or(err, failed)
				continue
			}
			count := &store.Count{Range: store.Range{From: time.Unix(q.From, 0), To: time.Unix(q.To, 0)}, Group: func(event.Dimensions, event.Regarding) int { return 0 }}
			counter, failed := scan.Counter(count, visit)
			for chunk := 0; failed == nil && chunk < scan.Chunks(); chunk++ {
				failed = counter.Chunk(chunk)
			}
			if err = cmp.Or(err, failed); err == nil {
				counter.Flush()
			}
		}
		return err
	})
}

// countedIn returns how often something was observed in each second, of what was written up
// to a revision.
func countedIn(t *testing.T, l *Log, last uint64) map[int64]int64 {
	t.Helper()
	n := map[int64]int64{}
	if err := countIn(l, last, nil, func(o store.Occurred) { n[o.Second] += o.Count }); err != nil {
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
	if diff := gocmp.Diff(want, countedIn(t, l, 100)); diff != "" {
		t.Error(diff)
	}
	l.SetPending(all[2:]) // which the head has
	if diff := gocmp.Diff(want, countedIn(t, l, 100)); diff != "" {
		t.Errorf("with pending records: %s", diff)
	}
	delete(want, 70)
	if diff := gocmp.Diff(want, countedIn(t, l, 5)); diff != "" {
		t.Errorf("at revision 5: %s", diff)
	}
}

// TestRewriteKeepsCounts: what records report that are left out is counted on, up to any revision, but for what was
// observed before a time.
func TestRewriteKeepsCounts(t *testing.T) {
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
	want, before := countedIn(t, l, 100), countedIn(t, l, 4)
	l.rewriteAll(t, l.Segments()[0], time.Time{})
	for range 2 {
		if diff := gocmp.Diff(want, countedIn(t, l, 100)); diff != "" || len(want) != 6 {
			t.Errorf("rewritten: %s", diff)
		}
		if diff := gocmp.Diff(before, countedIn(t, l, 4)); diff != "" || len(before) != 3 {
			t.Errorf("rewritten, up to revision 4: %s", diff)
		}
		l.rewriteKeeping(t, l.Segments()[0])
	}
	l.rewriteAll(t, l.Segments()[0], time.Unix(61, 0))
	delete(want, 0)
	delete(want, 40)
	if diff := gocmp.Diff(want, countedIn(t, l, 100)); diff != "" || len(want) != 4 {
		t.Errorf("what is old: %s", diff)
	}
	if last, any, err := l.Segments()[0].LastObserved(); err != nil || !any || last.Unix() != 200 {
		t.Errorf("last observed at %v, %t, %v", last, any, err)
	}
	l.checkAll(t)
	l.rewriteAll(t, l.Segments()[0], time.Unix(201, 0))
	if _, any, err := l.Segments()[0].LastObserved(); err != nil || any {
		t.Errorf("something is left: %v", err)
	}
	l.checkAll(t)
}

// checkAll wants the columns of all segments to be those of their records.
func (l *Log) checkAll(t *testing.T) {
	t.Helper()
	for _, s := range l.Segments() {
		if err := CheckColumns(s, func(format string, args ...any) { t.Errorf("%s: %s", s.Path, fmt.Sprintf(format, args...)) }); err != nil {
			t.Error(err)
		}
	}
}

// TestColumnsGrow: a head gets the columns of its records as soon as there are enough, and the rest when it is sealed.
// Counts are the same whatever is in the file, in memory or pending, and after a start.
func TestColumnsGrow(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	want := map[int64]int64{}
	same := func(l *Log, when string) {
		t.Helper()
		if diff := gocmp.Diff(want, countedIn(t, l, 1e9)); diff != "" {
			t.Errorf("%s: %.500s", when, diff)
		}
		l.checkAll(t)
	}
	through := func() (through uint64) {
		_ = l.Head().view(func(tx *bbolt.Tx) error {
			through = noted(tx, metaThrough)
			return nil
		})
		return through
	}
	revision := uint64(2)
	l.published = func() uint64 { return revision - 1 }
	for _, n := range []int{100, memoryRows - 101, 3, memoryRows + 50, 10} {
		var records []wal.Record
		for range n {
			r := observedRecord(revision, int64(revision%1000))
			if revision%7 > 0 {
				want[int64(revision%1000)] += int64(revision)
			} else { // a deletion reports nothing
				r.Data = AppendEntry(nil, &Entry{Revision: revision, Kind: Deleted, Previous: revision - 1, Key: []byte("ns/e"), NamespaceLen: 2})
			}
			records, revision = append(records, r), revision+1
		}
		l.SetPending(records)
		same(l, fmt.Sprintf("%d pending", n))
		if err := l.Checkpoint(l.Head(), records); err != nil {
			t.Fatal(err)
		}
		l.SetPending(nil)
		same(l, fmt.Sprintf("%d more in the head", n))
		if behind := revision - 1 - through(); behind >= memoryRows {
			t.Errorf("%d records have no columns", behind)
		}
	}
	l.Head().tables.tables, l.Head().tables.tail, l.Head().tables.tailed, l.Head().tables.next = nil, nil, nil, 0 // as after a start
	same(l, "read again")
	l.rotateTo(t, revision)
	same(l, "sealed")
	l.rewriteKeeping(t, l.Segments()[0])
	same(l, "written again")
}

// TestLostCounts: if what is left of versions that are no longer held is damaged, who counts is told, also when the
// file was written again, until it is dropped.
func TestLostCounts(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	var all []wal.Record
	for i := range uint64(20) {
		all = append(all, observedRecord(2+i, int64(i)))
	}
	if err := l.Checkpoint(l.Head(), all); err != nil {
		t.Fatal(err)
	}
	l.rotateTo(t, 100)
	l.rewriteIf(t, l.Segments()[0], Rewriting{}, func(e *Entry) bool { return e.Revision%2 == 0 })
	if got := countedIn(t, l, 100); len(got) != 20 {
		t.Errorf("counted %v", got)
	}
	s := l.Segments()[0]
	changeFile(t, s.Path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketColumns))
		k, v := b.Cursor().First() // of the namespaces
		spoiled := bytes.Clone(v)
		spoiled[len(v)/2] ^= 4
		return b.Put(bytes.Clone(k), spoiled)
	})
	again, err := OpenSegment(s.Path, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Replace(again)
	l.LetGo(s)
	told := func(when string) {
		t.Helper()
		if err := countIn(l, 100, nil, func(store.Occurred) {}); !errors.Is(err, boltfile.ErrChecksum) && !errors.As(err, new(*store.CorruptError)) {
			t.Errorf("%s: %v", when, err)
		}
	}
	told("damaged")
	l.rewriteKeeping(t, l.Segments()[0])
	told("written again")
	l.rewriteIf(t, l.Segments()[0], Rewriting{Drop: func(first, last uint64, _ error) {
		if first <= last {
			t.Errorf("revisions %d to %d are dropped", first, last)
		}
	}}, func(*Entry) bool { return true })
	if got := countedIn(t, l, 100); len(got) != 10 {
		t.Errorf("dropped, then counted %v", got)
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
	l.rewriteIf(t, s, Rewriting{Since: since}, func(*Entry) bool { return needed })
}

func (l *Log) rewriteIf(t *testing.T, s *Segment, r Rewriting, needed func(*Entry) bool) {
	t.Helper()
	r.Filter = func(f func(needed func(*Entry) (bool, error)) error) error {
		return f(func(e *Entry) (bool, error) { return needed(e), nil })
	}
	path := s.Path + ".tmp"
	_, err := l.Rewrite(context.Background(), s, path, r)
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

// changeFile changes a file that no process writes.
func changeFile(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	copied := path + ".changed"
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(copied, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(copied, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close(), os.Rename(copied, path)); err != nil {
		t.Fatal(err)
	}
}
