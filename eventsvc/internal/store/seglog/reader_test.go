package seglog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

// TestPositions: a position leads to its record, also if the transaction of the head has ended since.
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
		old := []Position{r.Position(2), r.Position(3)}
		put(4) // after the reader was opened
		newer := r.Position(4)
		before := r.headTx()
		read(old[1])
		read(old[0])
		if r.headTx() != before {
			t.Error("a position has begun another transaction")
		}
		read(newer)
		read(old[0])
		r.opened[len(r.opened)-1].end()
		read(old[1])
		read(newer)
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

// openFiles returns how many descriptors of the process lead to files of a directory, also to unlinked ones.
func openFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the descriptors of a process are known under Linux alone")
	}
	for _, fd := range all {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(path, dir) {
			n++
		}
	}
	return n
}

// TestReadersHoldFiles: a file that is replaced or removed is read to the end by who has begun to, and closed by the
// last reader. Its bytes are counted until then. Close waits for readers.
func TestReadersHoldFiles(t *testing.T) {
	t.Parallel()
	seal := func(l *Log, revision uint64) {
		t.Helper()
		e := Entry{Revision: revision, Kind: Created, Key: []byte("default/e"), NamespaceLen: 7, Value: fmt.Append(nil, revision)}
		err := l.Checkpoint(l.Head(), []wal.Record{{Revision: revision, Data: AppendEntry(nil, &e)}})
		if err == nil {
			err = l.Head().Seal(revision)
		}
		next, err2 := l.NewHead(revision+1, "id", 1, false)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		l.Add(next)
	}
	seal(newLog(t), 2) // what compresses for all logs must not belong to the bubble
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t)
		seal(l, 2)
		seal(l, 3)
		if n := openFiles(t, l.dir); n != 3 {
			t.Fatalf("%d files are open, want 3", n)
		}
		remove := func() { // as maintenance does
			first := l.Segments()[0]
			if err := os.Remove(first.Path); err != nil {
				t.Fatal(err)
			}
			l.RemoveFirst()
			l.LetGo(first)
		}
		want := func(r *Reader, revision uint64, there bool) {
			t.Helper()
			if e, err := r.Get(revision); there != (err == nil) || there && string(e.Value) != fmt.Sprint(revision) {
				t.Errorf("revision %d: %q, %v", revision, e.Value, err)
			}
		}
		calls := 0
		err := l.View(func(r *Reader) error {
			calls++
			remove()
			err := l.View(func(later *Reader) error {
				calls++
				l.rewriteKeeping(t, l.Segments()[0])
				for range 2 {
					want(r, 2, true)
					want(r, 3, true)
					want(later, 2, false)
					want(later, 3, true)
				}
				remove()
				want(later, 3, true)
				return nil
			})
			if n, bytes := openFiles(t, l.dir), l.UnlinkedBytes(); n != 3 || bytes < 2*segmentPage {
				t.Errorf("%d files of which two are unlinked are open, want 3; %d bytes are unlinked", n, bytes)
			}
			want(r, 2, true)
			want(r, 3, true)
			return err
		})
		if n, bytes := openFiles(t, l.dir), l.UnlinkedBytes(); n != 1 || bytes != 0 || calls != 2 || err != nil {
			t.Errorf("behind the readers %d files are open, and %d bytes unlinked; %d calls, %v", n, bytes, calls, err)
		}
		closed := make(chan error, 1)
		err = l.View(func(r *Reader) error {
			go func() { closed <- l.Close() }()
			synctest.Wait()
			select {
			case err := <-closed:
				t.Errorf("the log was closed while it is read, %v", err)
			default:
			}
			if err := l.View(func(*Reader) error { return nil }); !errors.Is(err, store.ErrClosed) {
				t.Errorf("a reader begins to read what is being closed: %v", err)
			}
			want(r, 3, false)
			return nil
		})
		if err := errors.Join(err, <-closed); err != nil || openFiles(t, l.dir) != 0 {
			t.Errorf("%d files stay open, %v", openFiles(t, l.dir), err)
		}
	})
}
