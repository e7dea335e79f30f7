package bolt_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/wal"
)

// syncBuffer collects what several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A file that cannot be written is given up: writes are refused, reads and
// watches go on, and maintenance moves what was acknowledged to new files. That
// the log cannot be written is found when the write-ahead log is checkpointed into it, and that
// the index cannot when something is merged.
func TestUnwritableFilesAreReplaced(t *testing.T) {
	t.Parallel()
	for _, file := range []string{wal.FileName, "log-00000000000000000002.db", "index.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			said := new(syncBuffer)
			o := bolt.Options{Dir: t.TempDir(), MemtableLimit: 50, Log: slog.New(slog.NewTextHandler(said, nil))}
			db := open(t, o)
			defer func() { closeDB(t, db) }()
			create(t, db, 90, "value")
			if err := db.Compact(t.Context(), false, nil); err != nil { // what is merged is not in the memtable
				t.Fatal(err)
			}
			w, err := db.Watch(t.Context(), store.WatchQuery{})
			if err != nil {
				t.Fatal(err)
			}

			breakFile(t, filepath.Join(o.Dir, file))
			if file != wal.FileName {
				if _, err := store.Create(t.Context(), db, key(1000), store.Draft{Value: []byte("taken")}); err != nil {
					t.Errorf("the write-ahead log can be written: %v", err)
				}
			}
			if strings.HasPrefix(file, "log") {
				if err := db.Checkpoint(); !errors.Is(err, store.ErrUnwritable) {
					t.Errorf("checkpointed into a file that cannot be written: %v", err)
				}
			}
			revision := db.Revision()
			if file != "index.db" {
				refuses(t, db)
			}
			for i := 0; !strings.Contains(said.String(), "is written again"); i++ {
				if file == "index.db" && i < 120 { // a merge finds out
					if _, err := db.Update(t.Context(), key(i%90), store.Any, count0); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := db.Maintain(t.Context()); err != nil {
					t.Log(err)
				}
			}
			takesAgain(t, db, w, revision)
			want := dump(t, db)
			closeDB(t, db)
			db = open(t, o)
			check(t, db)
			if diff := cmp.Diff(want, dump(t, db)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// refuses wants writes refused, and what was there before as it was.
func refuses(t *testing.T, db *bolt.DB) {
	t.Helper()
	before, revision := dump(t, db), db.Revision()
	if _, err := store.Create(t.Context(), db, key(1001), store.Draft{Value: []byte("refused")}); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("written to a file that cannot be: %v", err)
	}
	if _, err := db.Update(t.Context(), key(0), store.Any, remove); !errors.Is(err, store.ErrUnwritable) || db.Ready(t.Context()) == nil {
		t.Errorf("and again: %v, ready: %v", err, db.Ready(t.Context()))
	}
	if diff := cmp.Diff(before, dump(t, db)); diff != "" || db.Revision() != revision {
		t.Errorf("revision %d, was %d: %s", db.Revision(), revision, diff)
	}
}

// takesAgain wants a write taken behind a revision, and a watcher told of that
// and not of what was refused.
func takesAgain(t *testing.T, db *bolt.DB, w store.Watcher, revision uint64) {
	t.Helper()
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := store.Create(t.Context(), db, key(2000), store.Draft{Value: []byte("taken")})
	if err != nil || r.Revision <= revision {
		t.Fatalf("revision %d, %v; revisions that were given away are not used again", r.Revision, err)
	}
	for seen := uint64(0); seen < r.Revision; {
		b, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if string(d.Object.Value) == "refused" {
				t.Error("what was refused was published")
			}
		}
		seen = b.Revision
	}
	if err := db.Compact(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	check(t, db)
}

// A commit that has failed may be on the disk all the same. It does not come
// back: neither now nor at the next start, nor are its revisions used again.
func TestFailedCommitDoesNotComeBack(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := open(t, o)
	defer func() { closeDB(t, db) }()
	create(t, db, 20, "value")
	want, revision := dump(t, db), db.Revision()
	if err := db.FailAfterCommit(key(3), []byte("unknown")); !errors.Is(err, store.ErrUnwritable) {
		t.Fatal(err)
	}
	maintain(t, db)
	if diff := cmp.Diff(want, dump(t, db)); diff != "" {
		t.Error(diff)
	}
	check(t, db)
	closeDB(t, db)
	db = open(t, o)
	r, err := db.Update(t.Context(), key(3), store.Any, count0)
	if err != nil || r.Record.Revision <= revision+1 {
		t.Errorf("revision %d, %v", r.Record.Revision, err)
	}
	want = append(want, fmt.Sprintf("%d: 1 ns/e0003 %[1]d changed", r.Record.Revision))
	for _, line := range dump(t, db) {
		if !slices.Contains(want, line) && !strings.HasPrefix(line, "ns/e0003 ") {
			t.Errorf("not there before: %s", line)
		}
	}
	check(t, db)
}

// Where something that was acknowledged is damaged, nothing is copied that
// would hide it: writing stays refused, and reading goes on.
func TestDamageStopsFailover(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := open(t, o)
	for i := range 20 {
		if _, err := store.Create(t.Context(), db, key(i), store.Draft{Value: fmt.Appendf(nil, "value %d of 20", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.Dir, "log-00000000000000000002.db")
	content := readFile(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; at++ { // pages that are not in use have it too
		next := strings.Index(string(content[at:]), "value 7 of 20")
		if next < 0 {
			break
		}
		at += next
		if _, err := f.WriteAt([]byte{'X'}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	breakFile(t, path)
	if _, err := db.Update(t.Context(), key(5), store.Any, count0); err != nil {
		t.Errorf("update: %v", err)
	}
	if err := db.Checkpoint(); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("checkpointed into a file that cannot be written: %v", err)
	}
	if err := db.Maintain(t.Context()); err == nil || db.Ready(t.Context()) == nil {
		t.Errorf("maintained: %v, ready: %v", err, db.Ready(t.Context()))
	}
	good := 0
	for i := range 20 {
		if r, err := store.Read(t.Context(), db, key(i)); err == nil && (string(r.Value) == fmt.Sprintf("value %d of 20", i) || i == 5 && string(r.Value) == "changed") {
			good++
		}
	}
	if good != 19 {
		t.Errorf("%d events can be read, want 19", good)
	}
	if left, err := filepath.Glob(filepath.Join(o.Dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	_ = db.Close()
}
