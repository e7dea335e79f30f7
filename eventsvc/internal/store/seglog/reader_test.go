package seglog

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
