package seglog

import (
	"errors"
	"sync"
	"testing"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// newLog is an empty log.
func newLog(t *testing.T) *Log {
	t.Helper()
	l, err := Open(t.TempDir(), 1<<20, func() uint64 { return 100 })
	if err == nil {
		err = l.Init(2, "id", 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestTransactionsAreKept: readers one after another share a transaction, which sees
// what was checkpointed meanwhile, and closing waits for none that nobody reads in.
func TestTransactionsAreKept(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	head := l.Head()
	for revision := uint64(2); revision < 5; revision++ {
		e := Entry{Revision: revision, Kind: Created, Key: []byte("default/e"), NamespaceLen: 7, Value: []byte("{}")}
		if err := head.Checkpoint([]wal.Record{{Revision: revision, Data: AppendRecord(nil, &e)}}); err != nil {
			t.Fatal(err)
		}
		if n := head.pool.idleCount(); n != 0 {
			t.Fatalf("%d transactions are kept beyond a checkpoint", n)
		}
		for range 3 {
			err := l.View(func(r *Reader) error {
				_, err := r.Get(revision)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := head.pool.idleCount(); n != 1 {
				t.Fatalf("%d transactions are kept after a read, want 1", n)
			}
		}
		if n := head.Stats().OpenTxN; n != 0 {
			t.Errorf("%d open reads, but nobody reads", n)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTransactionsEnd: a transaction that was begun before a write, or while there is one, or
// in which something was found wrong, is nobody else's.
func TestTransactionsEnd(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	head := l.Head()
	read := func(during func() error) error {
		return l.View(func(r *Reader) error {
			if _, err := r.segment(0); err != nil {
				return err
			}
			return during()
		})
	}
	write := func() error { return head.SetFormat(boltfile.Version) }
	wrong := errors.New("something is wrong")
	for _, tt := range []struct {
		name   string
		during func() error
		kept   int
	}{
		{"nothing", func() error { return nil }, 1},
		{"a write", write, 0},
		{"a fault", func() error { return wrong }, 0},
		{"a panic", func() error { panic("page") }, 0},
	} {
		head.pool.beginWrite()
		head.pool.endWrite()
		func() {
			defer func() { _ = recover() }() // a panic that is not bbolt's is passed on
			_ = read(tt.during)
		}()
		if n := head.pool.idleCount(); n != tt.kept {
			t.Errorf("%s: %d transactions are kept, want %d", tt.name, n, tt.kept)
		}
	}
	head.pool.beginWrite()
	_ = read(func() error { return nil })
	if n := head.pool.idleCount(); n != 0 {
		t.Errorf("%d transactions are kept while the file is written", n)
	}
	head.pool.beginWrite()
	head.pool.endWrite()
	_ = read(func() error { return nil })
	if n := head.pool.idleCount(); n != 0 {
		t.Errorf("%d transactions are kept while the file is written, of two that do the one has ended", n)
	}
	_ = read(func() error { head.pool.endWrite(); return nil })
	if n := head.pool.idleCount(); n != 0 {
		t.Errorf("%d transactions are kept that were begun before the last write has ended", n)
	}
	// More at once than are kept.
	var all, met sync.WaitGroup
	met.Add(2 * maxIdle)
	for range 2 * maxIdle {
		all.Go(func() {
			_ = read(func() error { met.Done(); met.Wait(); return nil })
		})
	}
	all.Wait()
	if n := head.pool.idleCount(); n != maxIdle {
		t.Errorf("%d transactions are kept, want %d", n, maxIdle)
	}
}
