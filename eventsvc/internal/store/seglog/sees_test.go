package seglog

import (
	"fmt"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/wal"
)

// mine is what somebody sees who sees one namespace.
var mine = &event.Filter{Kind: event.FilterPlace, Allows: func(namespace, _ string) bool { return namespace == "mine" }}

// findSeen finds the rows of one namespace in tables, and returns how many pieces of chunks it has read.
func findSeen(tables []*columns.Table, last uint64) (read int, err error) {
	for _, t := range tables {
		s, err := t.Scan(&columns.Query{From: -1e6, To: 1e6, Last: last, Filter: mine})
		for chunk := 0; err == nil && s != nil && chunk < s.Chunks(); chunk++ {
			if may, _ := s.May(chunk); may {
				read++
			}
			_, err = s.Find(chunk, nil)
		}
		if err != nil {
			return 0, err
		}
	}
	return read, nil
}

// TestUnseenCostsNothing: what a caller may not see is not decoded, whether it is pending or in a segment: the work for
// what it sees is the same beside any number of events of others.
func TestUnseenCostsNothing(t *testing.T) {
	t.Parallel()
	records := func(namespace string, first uint64, n int) (all []wal.Record) {
		for i := range n {
			at := time.Unix(1000+int64(i%600), 0)
			o := event.Occurrence{Time: at, First: at.Add(-time.Hour), Count: 1e9, New: 1e9} // of which each is spread over an hour
			e := Entry{
				Revision: first + uint64(i), Kind: Created, Key: fmt.Appendf(nil, "%s/e%d", namespace, i), NamespaceLen: len(namespace), Time: at, Value: []byte("{}"),
				Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "R", event.Node: fmt.Sprint("n", i%3)}, nil).With(o),
			}
			all = append(all, wal.Record{Revision: e.Revision, Data: AppendEntry(nil, &e)})
		}
		return all
	}
	work := func(others int) (decoded int, count int64) {
		l := newLog(t)
		stored := append(records("mine", 2, 20), records("other", 1000, others)...)
		if err := l.Checkpoint(l.Head(), stored); err != nil {
			t.Fatal(err)
		}
		l.SetPending(append(records("mine", 100_000, 5), records("other", 200_000, others)...))
		if err := countIn(l, 1<<40, mine, func(o store.Occurred) { count += o.Count }); err != nil {
			t.Fatal(err)
		}
		for _, last := range []uint64{1 << 40, 99_999} { // of what is pending, too, and without
			err := l.View(func(r *Reader) error {
				tables, err := r.Tables(&columns.Query{From: -1e6, To: 1e6, Last: last}, func() error { return nil })
				if err != nil {
					return err
				}
				n, err := findSeen(tables, last)
				decoded += n
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return decoded, count
	}
	alone, want := work(0)
	beside, got := work(3000)
	if alone == 0 || beside != alone || got != want || want == 0 {
		t.Errorf("%d chunks are read alone and %d beside those of others, and %d and %d are counted", alone, beside, want, got)
	}
}
