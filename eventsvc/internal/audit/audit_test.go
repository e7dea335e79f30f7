package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/audit"
)

// record opens a log in a directory, records n entries and stops it.
func record(t *testing.T, path string, from, n int) {
	t.Helper()
	l, err := audit.Open(audit.Config{Path: path, MaxBytes: 1000, Files: 3, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		l.Record(&audit.Entry{ID: fmt.Sprint(from + i), Path: "/a\n\"b"})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func ids(t *testing.T, path string) (found []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e audit.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		found = append(found, e.ID)
	}
	return found
}

// TestRotation: entries stay in order over the files, the oldest file goes, and
// a restart goes on where the log was.
func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "audit.log")
	record(t, path, 0, 3)
	record(t, path, 3, 57)
	var all []string
	for _, name := range []string{path + ".2", path + ".1", path} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > 1000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		all = append(all, ids(t, name)...)
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("too many files are kept")
	}
	for i, id := range all {
		if want := fmt.Sprint(60 - len(all) + i); id != want {
			t.Fatalf("entry %s where %s should be: %v", id, want, all)
		}
	}
	if len(all) < 10 {
		t.Errorf("only %d entries", len(all))
	}
}

// counts are the entries that are counted, by result.
func counts(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "eventsvc_audit_failing" {
				got["failing"] = m.GetGauge().GetValue()
				continue
			}
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return got
}

func counted(t *testing.T, reg *prometheus.Registry, written, dropped, failing float64) {
	t.Helper()
	if diff := cmp.Diff(map[string]float64{"written": written, "dropped": dropped, "failing": failing}, counts(t, reg)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// TestFullQueue: no request waits for the disk, and lost entries are counted.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l, err := audit.Open(audit.Config{Path: filepath.Join(t.TempDir(), "a"), MaxBytes: 1 << 30, Files: 1, Log: slog.New(slog.DiscardHandler), Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	for range 8192 + 7 { // nothing runs that would write them
		l.Record(&audit.Entry{})
	}
	if l.Failing(t.Context()) == nil {
		t.Error("entries are lost, and the log says it does not fail")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	counted(t, reg, 8192, 7, 1)
}

// TestDeviceThatIsFull: entries that are not in the file do not count as
// written.
func TestDeviceThatIsFull(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l, err := audit.Open(audit.Config{Path: "/dev/full", MaxBytes: 1 << 30, Files: 1, Log: slog.New(slog.DiscardHandler), Registry: reg})
	if err != nil {
		t.Skipf("%v: this system has no device that is always full", err)
	}
	for range 60 {
		l.Record(&audit.Entry{})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the end is %v", err)
	}
	counted(t, reg, 0, 60, 1)
}

// limited sets a limit of this process. Tests that do so are not parallel.
func limited(t *testing.T, resource int, most uint64) (undo func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(resource, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	undo = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(resource, &before); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(undo)
	return undo
}

// TestFileThatFailsForATime: entries wait until the file can be written again,
// and are then written whole and in order, even one that was written in part.
// The log reports the failure once.
func TestFileThatFailsForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		path, reg := filepath.Join(t.TempDir(), "a"), prometheus.NewRegistry()
		l, err := audit.Open(audit.Config{Path: path, MaxBytes: 1 << 20, Files: 1, RefuseWrites: true, Log: slog.New(slog.NewTextHandler(&said, nil)), Registry: reg})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		l.Record(&audit.Entry{ID: "0"})
		synctest.Wait()
		counted(t, reg, 1, 0, 0)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		mend := limited(t, syscall.RLIMIT_FSIZE, uint64(info.Size()*5/2)) // room for one entry and a half
		for id := 1; id <= 3; id++ {
			l.Record(&audit.Entry{ID: fmt.Sprint(id)})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		counted(t, reg, 2, 0, 1)
		if l.Writable() == nil || l.Failing(ctx) == nil {
			t.Error("the log says that it does not fail")
		}
		mend()
		time.Sleep(time.Second)
		synctest.Wait()
		counted(t, reg, 4, 0, 0)
		if err := l.Writable(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "3"}, ids(t, path)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := strings.Count(said.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors are logged:\n%s", n, said.String())
		}
	})
}

// TestRotationThatCannotOpen: while no new file can be opened, the old ones move
// up once and not with each attempt, and then all entries are there.
func TestRotationThatCannotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, reg := filepath.Join(t.TempDir(), "a"), prometheus.NewRegistry()
		l, err := audit.Open(audit.Config{Path: path, MaxBytes: 300, Files: 4, Log: slog.New(slog.DiscardHandler), Registry: reg})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		next := 0
		record := func(n int) {
			for range n {
				l.Record(&audit.Entry{ID: fmt.Sprint(next)})
				next++
			}
			synctest.Wait()
		}
		all := func() (found []string) {
			for _, name := range []string{path + ".3", path + ".2", path + ".1", path} {
				if _, err := os.Stat(name); err == nil {
					found = append(found, ids(t, name)...)
				}
			}
			return found
		}
		record(7) // three files, of which the current one has room
		for counts(t, reg)["failing"] == 0 {
			before := all()
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			free := f.Fd()
			_ = f.Close()
			mend := limited(t, syscall.RLIMIT_NOFILE, uint64(free))
			record(1)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			mend()
			if counts(t, reg)["failing"] == 1 {
				if diff := cmp.Diff(before, all()); diff != "" {
					t.Errorf("before and after the attempts (-want +got):\n%s", diff)
				}
				if _, err := os.Stat(path); err == nil {
					t.Error("nothing was put aside")
				}
				break
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		counted(t, reg, float64(next), 0, 0)
		var want []string
		for id := range next {
			want = append(want, fmt.Sprint(id))
		}
		if diff := cmp.Diff(want, all()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestUnfinishedLine: a line that a crash has cut short does not damage the
// next line.
func TestUnfinishedLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte(`{"id":"0"}`+"\n"+`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	record(t, path, 1, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var e audit.Entry
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || len(lines) != 3 || e.ID != "1" {
		t.Errorf("%v, in %q", err, lines)
	}
}
