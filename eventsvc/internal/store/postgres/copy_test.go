package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// written writes events through a replica, and has the database remove the history of most of them.
func written(t *testing.T, db *postgres.DB) {
	t.Helper()
	key := func(i int) store.Key { return store.Key{Namespace: "a", Name: fmt.Sprint(i)} }
	for round := range 3 {
		for i := range 60 {
			if round == 2 && i%2 == 0 {
				continue
			}
			_, err := db.Update(t.Context(), key(i), store.Any, func(*store.Record) (store.Decision, error) {
				return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "round %d %0500d", round, i)}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	waittest.Becomes(t, func() error {
		if err := db.Maintain(t.Context()); err != nil {
			return err
		}
		if s := db.Stats(); s.Oldest < 100 {
			return fmt.Errorf("history from revision %d on is held", s.Oldest)
		}
		return nil
	})
}

// killedCopy copies the directory of a replica as a kill would leave it. Nobody writes meanwhile.
func killedCopy(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A copy that was filled from a log with gaps, and was killed, goes on where it was.
func TestFilledCopyIsKilled(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	first := options(dsn, t.TempDir())
	first.Copy.History = 1
	a := open(t, first)
	written(t, a)
	for _, more := range []int{0, 1} {
		o := options(dsn, t.TempDir())
		o.Copy.SegmentBytes, o.Copy.MemtableLimit = 1<<20, 1000 // the write-ahead log has everything
		b := open(t, o)
		for range more {
			created(t, b, "one more")
		}
		again := registered(options(dsn, killedCopy(t, o.Copy.Dir)))
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		b = open(t, again)
		healthy(t, dsn, a, b)
		if n := metric(t, again, "store_copy_remade_total"); n != 0 {
			t.Errorf("with %d more writes, the copy was made again", more)
		}
	}
}

// A copy that cannot be opened is made again from the database, whatever is wrong with its files. It is counted.
func TestUnusableCopyIsMadeAgain(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	o := options(dsn, t.TempDir())
	o.Copy.History = 1
	a := open(t, o)
	written(t, a)
	garbage := func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) }
	segments := func(dir string) []string {
		paths, _ := filepath.Glob(filepath.Join(dir, "log-*.db"))
		slices.Sort(paths)
		return paths
	}
	for name, damage := range map[string]func(dir string) error{
		"no write-ahead log":          func(dir string) error { return os.Remove(filepath.Join(dir, "wal")) },
		"another write-ahead log":     func(dir string) error { return garbage(filepath.Join(dir, "wal")) },
		"a write-ahead log cut short": func(dir string) error { return os.Truncate(filepath.Join(dir, "wal"), 8192) },
		"no index, and no first file": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "index.db")), os.Remove(segments(dir)[1]))
		},
		"another index":   func(dir string) error { return garbage(filepath.Join(dir, "index.db")) },
		"an empty head":   func(dir string) error { return os.Truncate(slices.Max(segments(dir)), 0) },
		"no head":         func(dir string) error { return os.Remove(slices.Max(segments(dir))) },
		"damaged records": func(dir string) error { return spoilFrames(filepath.Join(dir, "wal")) },
		"a damaged mark":  func(dir string) error { return garbage(filepath.Join(dir, "copy-of.json")) },
		"nothing but the mark, and a file that was being made": func(dir string) error {
			for _, path := range append(segments(dir), filepath.Join(dir, "wal")) {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := registered(options(dsn, killedCopy(t, o.Copy.Dir)))
			if err := damage(again.Copy.Dir); err != nil {
				t.Fatal(err)
			}
			b := open(t, again)
			healthy(t, dsn, a, b)
			if n := metric(t, again, "store_copy_remade_total"); n != 1 {
				t.Errorf("the copy was made again %v times, want once", n)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			again = registered(again)
			healthy(t, dsn, a, open(t, again))
			if n := metric(t, again, "store_copy_remade_total"); n != 0 {
				t.Error("it was made again at the next start too")
			}
		})
	}
}

// spoilFrames damages a record in every frame of a write-ahead log.
func spoilFrames(path string) error {
	const block = 4096
	file, err := os.ReadFile(path)
	for at := block + 100; at < len(file); at += block {
		file[at] ^= 1
	}
	return errors.Join(err, os.WriteFile(path, file, 0o600))
}
