package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// What tells the test binary that it is the process whose system calls are looked
// at, what it is to do, and where.
const (
	tracedWork = "TIDINGS_TEST_TRACED_WORK"
	tracedDir  = "TIDINGS_TEST_TRACED_DIR"
)

// moved is behind the name of the directory once the first log file is there: so
// syncs of before that are not taken for those that are to fail.
const moved = ".moved"

// traced is what the test binary does when it is started by trace.
var traced = map[string]func(*testing.T, Options){
	"open": func(t *testing.T, o Options) { closeInside(t, openInside(t, o)) },
	"fail to open": func(t *testing.T, o Options) {
		if _, err := OpenTest(o); err == nil {
			t.Error("opened all the same")
		}
	},
	"unlink": func(t *testing.T, o Options) {
		ts := newTombstones(t)
		if err := ts.db.Close(); err != nil {
			t.Fatal(err)
		}
		ts.o.Dir = o.Dir
		ts.db = openInside(t, ts.o)
		ts.dieThenChurn()
	},
	"everything": everything,
	"restore": func(t *testing.T, o Options) {
		from := openInside(t, Options{Dir: o.Dir + ".from"})
		putInside(t, from, "before", nil)
		backup, err := from.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // strace counts by thread
		var b bytes.Buffer
		if err = errors.Join(backup.Write(&b), backup.Close()); err == nil {
			_, err = Restore(t.Context(), o.Dir, &b, nil)
		}
		_, none := os.Stat(o.Dir)
		fmt.Printf("restored: %t, a store is there: %t\n", err == nil, none == nil)
		closeInside(t, from)
	},
	"roll": func(t *testing.T, o Options) {
		db := openInside(t, o)
		putInside(t, db, "before", nil)
		if err := errors.Join(os.Rename(o.Dir, o.Dir+moved), os.Symlink(o.Dir+moved, o.Dir)); err != nil {
			t.Fatal(err)
		}
		err := db.committer.Queue.Do(t.Context(), func() error {
			runtime.LockOSThread() // strace counts by thread
			return db.committer.Writer.Rotate()
		})
		fmt.Println("rolled:", err)
		fmt.Println("ready:", db.Ready(t.Context()))
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	},
}

// trace does some work in a process of its own and returns the lines of what that
// changed and synced below a directory, and what it printed. Syncs of the path that
// fail names fail as it says.
func trace(t *testing.T, work, dir string, fail ...string) (calls []string, printed string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%v: install strace to run this test", err)
	}
	log := filepath.Join(t.TempDir(), "trace")
	top := filepath.Dir(filepath.Dir(log)) // of all directories of this test
	args := []string{"-f", "-y", "-o", log, "-e", "trace=fsync,fdatasync,pwrite64,unlinkat,renameat"}
	cmd := exec.CommandContext(t.Context(), strace, append(append(args, fail...), os.Args[0], "-test.run=^TestNamesAreSynced$", "-test.v")...)
	cmd.Env = append(os.Environ(), tracedWork+"="+work, tracedDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", work, err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	begun := map[string]string{} // by thread: the call that others have come between
	for _, line := range strings.Split(string(text), "\n") {
		thread, _, _ := strings.Cut(line, " ")
		if call, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
			begun[thread] = call
			continue
		} else if _, end, ok := strings.Cut(line, " resumed>"); ok {
			line = begun[thread] + end
		}
		if strings.Contains(line, top) || strings.Contains(line, "(INJECTED)") {
			calls = append(calls, line)
		}
	}
	return calls, string(out)
}

// place returns the first line from one on that matches, and -1 if there is none.
func place(calls []string, from int, pattern string, args ...any) int {
	for i, a := range args {
		args[i] = regexp.QuoteMeta(fmt.Sprint(a))
	}
	match := regexp.MustCompile(fmt.Sprintf(pattern, args...))
	if i := slices.IndexFunc(calls[from:], match.MatchString); i >= 0 {
		return from + i
	}
	return -1
}

// R2: names that a power cut must not take back, or bring back, are synced before
// anything relies on them.
func TestNamesAreSynced(t *testing.T) {
	t.Parallel()
	if work := os.Getenv(tracedWork); work != "" {
		traced[work](t, Options{Dir: os.Getenv(tracedDir)})
		return
	}
	t.Run("the directories above a new store", func(t *testing.T) {
		t.Parallel()
		top := t.TempDir()
		for range 2 { // the second time they were made by a process that was killed at once
			calls, _ := trace(t, "open", filepath.Join(top, "a", "b", "store"))
			for _, dir := range []string{top, top + "/a", top + "/a/b"} {
				if place(calls, 0, `fsync\(\d+<%s>\) += 0`, dir) < 0 {
					t.Errorf("%s was not synced", dir)
				}
			}
			if err := removeFiles(filepath.Join(top, "a", "b", "store")); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a log file that is removed", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "store")
		calls, _ := trace(t, "unlink", dir)
		removed := place(calls, 0, `unlinkat\(.*%s/log-0*2\.db", 0\) += 0`, dir)
		if removed < 0 {
			t.Fatal("nothing was removed")
		}
		synced := place(calls, removed, `fsync\(\d+<%s>\) += 0`, dir)
		if told := place(calls, removed, `pwrite64\(\d+<%s/index.db>`, dir); synced < 0 || told < synced {
			t.Errorf("removed by call %d, synced by %d, and the index was told by %d", removed, synced, told)
		}
	})
	t.Run("a restore whose directory cannot be synced", func(t *testing.T) {
		t.Parallel()
		for when := 1; ; when++ {
			dir := filepath.Join(t.TempDir(), "store")
			calls, printed := trace(t, "restore", dir, "-P", dir+restoring, "-e", "inject=fsync:error=EIO:when="+strconv.Itoa(when))
			if place(calls, 0, `INJECTED`) < 0 {
				if when == 1 || !strings.Contains(printed, "restored: true, a store is there: true") {
					t.Errorf("no sync failed: %s", printed)
				}
				break
			}
			if !strings.Contains(printed, "restored: false, a store is there: false") {
				t.Errorf("sync %d failed: %s", when, printed)
			}
		}
	})
	t.Run("a head that could not be made", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct{ when, rolled, ready string }{
			{"2000", "rolled: <nil>", "ready: <nil>"},
			{"1", "input/output error", "ready: <nil>"},                               // the removal is synced, and the old one goes on
			{"1+", "input/output error", "ready: store: a file could not be written"}, // that fails too: the new one may come back, and hide what is written
		} {
			dir := filepath.Join(t.TempDir(), "store")
			calls, printed := trace(t, "roll", dir, "-P", dir+moved, "-e", "inject=fsync:error=EIO:when="+tt.when)
			failed := place(calls, 0, `fsync\(.*EIO`)
			again := tt.when != "1" || place(calls, failed, `fsync\(\d+<%s>\) += 0`, dir+moved) > failed
			if !again || !strings.Contains(printed, tt.rolled) || !strings.Contains(printed, tt.ready) {
				t.Errorf("with syncs %s failing: %s\n%s", tt.when, printed, strings.Join(calls, "\n"))
			}
		}
	})
}

func removeFiles(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return err
}

// R2: what a start finds may be in the page cache alone. It writes that again, and
// syncs it, before it writes anything else there, and does not start if it cannot.
func TestStartWritesAgainWhatItFinds(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	db := openInside(t, o)
	putInside(t, db, "first", nil)
	if err := db.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	putInside(t, db, "second", nil)
	wantInside(t, db, "first", "second")
	killed := func() string {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.Rename(killedInside(t, db), dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := killed()
	calls, _ := trace(t, "open", dir)
	for name, want := range map[string]string{
		filepath.Base(seglog.SegmentPath(dir, 2)): `pwrite64\(\d+<%s>, .*, 16384, (0|16384)\)`,
		"index.db":   fmt.Sprintf(`pwrite64\(\d+<%%s>, .*, %d, (0|%[1]d)\)`, os.Getpagesize()),
		wal.FileName: `pwrite64\(\d+<%s>, .*, 4096, [1-9]\d*\)`,
	} {
		path := filepath.Join(dir, name)
		first := place(calls, 0, `pwrite64\(\d+<%s>`, path)
		if first < 0 || first != place(calls, 0, want, path) {
			t.Errorf("the first write of %s is not the one again: %d", name, first)
			continue
		}
		synced := place(calls, first, `f(data)?sync\(\d+<%s>\) += 0`, path)
		if next := place(calls, first+1, `pwrite64\(\d+<%s>`, path); synced < 0 || next >= 0 && next < synced {
			t.Errorf("%s is written again by call %d, which is synced by %d, and %d follows", name, first, synced, next)
		}
		failing := killed()
		trace(t, "fail to open", failing, "-P", filepath.Join(failing, name), "-e", "inject=fsync,fdatasync:error=EIO:when=1")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
