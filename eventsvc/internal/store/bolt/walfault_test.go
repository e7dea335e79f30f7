package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
)

// openInside opens a store for a test that looks inside of it.
func openInside(t *testing.T, o Options) *DB {
	t.Helper()
	o.MinFree, o.MaxBytes = -1, -1
	db, err := OpenTest(o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// closeInside checks and closes a store.
func closeInside(t *testing.T, db *DB) {
	t.Helper()
	report, err := db.Check(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%v %v", err, report)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// putInside writes an event, whatever it was before.
func putInside(t *testing.T, db *DB, name string, value []byte) uint64 {
	t.Helper()
	return putAttributes(t, db, name, value, nil)
}

func putAttributes(t *testing.T, db *DB, name string, value []byte, a event.Attributes) uint64 {
	t.Helper()
	r, err := db.Update(t.Context(), store.Key{Namespace: "ns", Name: name}, store.Any, func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Put, Draft: store.Draft{Attributes: a, Value: value}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Record.Revision
}

func wantInside(t *testing.T, db *DB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: name}); err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
}

// killedInside copies the files as a kill would leave them, when nothing is
// being checkpointed.
func killedInside(t *testing.T, db *DB) string {
	t.Helper()
	to := t.TempDir()
	err := db.committer.Queue.Do(t.Context(), func() error {
		if err := db.committer.Writer.AwaitCheckpoint(); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(db.o.Dir, "*"))
		for _, path := range files {
			if strings.HasSuffix(path, ".tmp") || err != nil {
				continue
			}
			var content []byte
			if content, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// A head that is sealed goes on as one that has a write-ahead log if the next cannot be
// made.
func TestFailedRotationKeepsTheLog(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), SegmentBytes: 64 << 10}
	db := openInside(t, o)
	for i := range 200 { // whatever base the next has
		if err := os.MkdirAll(filepath.Join(seglog.SegmentPath(o.Dir, uint64(i))+".tmp", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i := range 70 {
		names = append(names, fmt.Sprint("e", i))
		putInside(t, db, names[i], make([]byte, 1000))
	}
	if n := len(db.log.Segments()); n != 1 {
		t.Fatalf("%d files of the log: the test hinders nothing", n)
	}
	left := openInside(t, Options{Dir: killedInside(t, db)})
	wantInside(t, left, names...)
	closeInside(t, left)
	closeInside(t, db)
}

// The commit of a checkpoint that is reported as failed may be in the head, while
// more was acknowledged: the head is no longer trusted, whatever the failure was, and after the
// next start nothing is missing and nothing is there twice.
func TestFailedCheckpointThatIsThere(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"broken": syscall.EIO, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: t.TempDir()}
			db := openInside(t, o)
			putInside(t, db, "a", []byte("value"))
			done := db.log.Pending()
			putInside(t, db, "b", []byte("value"))
			err := db.committer.Queue.Do(t.Context(), func() error {
				if err := db.log.Checkpoint(db.log.Head(), done); err != nil {
					return err
				}
				return db.committer.Writer.EndCheckpoint(commit.Checkpoint{Records: len(done), Err: failure})
			})
			if err == nil || db.committer.Writer.Health.Failed() == nil {
				t.Errorf("a file that was not synced is trusted: %v", err)
			}
			closeInside(t, db)
			db = openInside(t, o)
			putInside(t, db, "c", []byte("value"))
			wantInside(t, db, "a", "b", "c")
			closeInside(t, db)
		})
	}
}

// No backup checkpoints into a failed head.
func TestBackupFindsFailedHead(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	db := openInside(t, o)
	putInside(t, db, "a", []byte("value"))
	db.Fail()
	if s, err := db.Snapshot(t.Context()); err == nil {
		_ = s.Close()
		t.Error("a backup of a store that has failed")
	}
	if n := len(db.log.Pending()); n != 1 {
		t.Errorf("%d records wait for a checkpoint, want 1", n)
	}
	closeInside(t, db)
	db = openInside(t, o)
	wantInside(t, db, "a")
	closeInside(t, db)
}
