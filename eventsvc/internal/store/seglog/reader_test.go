package seglog

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/wal"
)

// newLog is an empty log.
func newLog(t *testing.T) *Log {
	t.Helper()
	l, err := Open(t.TempDir(), 1<<20, func() uint64 { return 100 })
	if err != nil {
		t.Fatal(err)
	}
	head, err := l.NewHead(2, "id", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	l.Add(head)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestReadersSeeCheckpoints: a reader sees what was checkpointed before it was opened.
func TestReadersSeeCheckpoints(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for revision := uint64(2); revision < 5; revision++ {
		e := Entry{Revision: revision, Kind: Created, Key: []byte("default/e"), NamespaceLen: 7, Value: []byte("{}")}
		if err := l.Checkpoint(l.Head(), []wal.Record{{Revision: revision, Data: AppendEntry(nil, &e)}}); err != nil {
			t.Fatal(err)
		}
		err := l.View(func(r *Reader) error {
			_, err := r.Get(revision)
			return err
		})
		if err != nil {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
}

// TestPositions: a position leads to its record, also if the reader was opened again since, which a position never does.
func TestPositions(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	newest := uint64(0)
	l.published = func() uint64 { return newest }
	put := func(revision uint64) {
		e := Entry{Revision: revision, Kind: Created, Key: []byte("default/e"), NamespaceLen: 7, Value: fmt.Append(nil, revision)}
		if err := l.Checkpoint(l.Head(), []wal.Record{{Revision: revision, Data: AppendEntry(nil, &e)}}); err != nil {
			t.Fatal(err)
		}
		newest = revision
	}
	put(2)
	put(3)
	err := l.View(func(r *Reader) error {
		read := func(p Position) {
			t.Helper()
			if e, err := r.Read(&p); err != nil || e.Revision != p.revision || string(e.Value) != fmt.Sprint(p.revision) {
				t.Errorf("revision %d: %d %q, %v", p.revision, e.Revision, e.Value, err)
			}
		}
		before := r.generation
		old := []Position{r.Position(2), r.Position(3)}
		put(4) // after the reader was opened
		newer := r.Position(4)
		read(old[1])
		read(old[0])
		if r.generation != before {
			t.Error("a position has opened the files again, and ended those before")
		}
		read(newer)
		if r.generation == before {
			t.Error("a record that was written later is read from the old state")
		}
		read(old[0])
		gone := r.Position(7)
		if _, err := r.Read(&gone); !errors.Is(err, ErrGone) {
			t.Errorf("a record that does not exist: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDamagedRecords: a record whose checksum does not match is returned with its error, from Get and to Scan, so that
// its room can be counted.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	record := AppendEntry(nil, &Entry{Revision: 2, Kind: Created, Key: []byte("default/e"), NamespaceLen: 7, Value: []byte("{}")})
	record[len(record)-1]++
	if err := l.Checkpoint(l.Head(), []wal.Record{{Revision: 2, Data: record}, {Revision: 3, Data: record[:3]}}); err != nil {
		t.Fatal(err)
	}
	err := l.View(func(r *Reader) error {
		e, err := r.Get(2)
		if !errors.As(err, new(*store.CorruptError)) || e.Size() != int64(len(record)) || string(e.Key) != "default/e" {
			t.Errorf("a wrong checksum: %q of %d bytes, %v", e.Key, e.Size(), err)
		}
		if e, err := r.Get(3); !errors.As(err, new(*store.CorruptError)) || e.Key != nil {
			t.Errorf("no header: %q, %v", e.Key, err)
		}
		var damaged []string
		err = r.Scan(0, 9, func(e Entry) bool { t.Errorf("%d is whole", e.Revision); return true }, func(e Entry) bool {
			damaged = append(damaged, fmt.Sprintf("%d %s", e.Revision, e.Key))
			return true
		})
		if want := []string{"2 default/e", "3 "}; !slices.Equal(damaged, want) || err != nil {
			t.Errorf("damaged are %q, %v, want %q", damaged, err, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTransactionsEnd: a reader leaves no transaction open, however it ends.
func TestTransactionsEnd(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	head := l.Head()
	for name, during := range map[string]func() error{
		"nothing": func() error { return nil },
		"a write": func() error { return head.NoteWAL(true) },
		"a fault": func() error { return errors.New("something is wrong") },
		"a panic": func() error { panic("page") },
	} {
		open := 0
		func() {
			defer func() { _ = recover() }() // a panic that is not bbolt's is passed on
			_ = l.View(func(r *Reader) error {
				if _, err := r.segment(0); err != nil {
					return err
				}
				open = head.Stats().OpenTxN
				return during()
			})
		}()
		if left := head.Stats().OpenTxN; open != 1 || left != 0 {
			t.Errorf("%s: %d transactions while it is read, %d behind it, want 1 and 0", name, open, left)
		}
	}
}

// TestOldestRead: a read transaction that stays open is seen, with its age.
func TestOldestRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t)
		err := l.View(func(*Reader) error {
			time.Sleep(90 * time.Second) // of the bubble's time
			_ = l.View(func(*Reader) error { return nil })
			if age := l.OldestRead(); age < 89*time.Second || age > 91*time.Second {
				t.Errorf("after 90 s: %s", age)
			}
			return nil
		})
		if age := l.OldestRead(); age != 0 || err != nil {
			t.Errorf("when it is closed: %s, %v", age, err)
		}
	})
}
