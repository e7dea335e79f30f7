package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/terminal"
)

// TestProgressOnATerminal: long work shows its progress in one line, which is
// rewritten, fits the terminal, and disappears at the end. Short work shows
// none, and neither does output that is not a terminal.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		person, program := newTerminal(t, 16)
		tell, done := stdio{out: io.Discard, err: program}.progress("backup")
		tell(10, 200) // the work has just begun
		done()
		time.Sleep(time.Second) // of the bubble's time
		tell(50, 200)
		tell(51, 200) // too soon after the other for a person
		time.Sleep(time.Second)
		tell(200, 200)
		done()
		long, end := stdio{out: io.Discard, err: program}.progress("a work with a long name")
		time.Sleep(time.Second)
		long(1, 2)
		end()
		const want = "\r\x1b[Kbackup:  25 %\r\x1b[Kbackup: 100 %\r\x1b[K\r\x1b[Ka work with a …\r\x1b[K"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(person, got); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	})
	nobody, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nobody.Close() }()
	tell, done := stdio{out: io.Discard, err: nobody}.progress("backup")
	tell(1, 2)
	done()
	if info, err := nobody.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("progress is told to a file: %v, %v", info, err)
	}
}

// TestProgressOfFiles: where there is no terminal, a long import writes a line for each 10 seconds, and a short one
// none.
func TestProgressOfFiles(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	synctest.Test(t, func(t *testing.T) {
		tell, end := terminal.Files(log, "import")
		for n := range int64(25) {
			tell(n, 100)
			time.Sleep(time.Second)
		}
		tell(50<<20, 0) // the size of standard input is not known
		time.Sleep(11 * time.Second)
		tell(60<<20, 0)
		end()
	})
	const want = "import:  11 %\nimport:  22 %\nimport: 60.0 MiB read\n"
	if got, err := os.ReadFile(log.Name()); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// steps records progress, which only rises and ends with the whole.
type steps struct {
	t           *testing.T
	n           int
	done, total int64
}

func (s *steps) tell(done, total int64) {
	s.t.Helper()
	if s.n++; done < s.done || done > total || total <= 0 {
		s.t.Errorf("%d of %d behind %d of %d", done, total, s.done, s.total)
	}
	s.done, s.total = done, total
}

// TestLongWorkTellsProgress: check and compact report progress, on the files
// and through the running service; so does restore.
func TestLongWorkTellsProgress(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	p := start(t, dir, newIssuer(t))
	for n := range 20 {
		p.do("POST", eventsPath, newEvent(fmt.Sprint("e", n)))
	}
	file := filepath.Join(copied, "events.tar")
	command(t, 0, "backup", file, "--data-dir="+dir, "--listen-admin="+p.addrs["--listen-admin"])
	running, err := admin.NewRemote(dir, p.addrs["--listen-admin"])
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	restored := filepath.Join(copied, "store")
	told := &steps{t: t}
	if _, err := bolt.Restore(t.Context(), restored, archive, told.tell); err != nil || told.n == 0 || told.done != told.total {
		t.Errorf("restore: %+v, %v", told, err)
	}
	db, err := bolt.Open(bolt.Options{Dir: restored, MinFree: -1, MaxBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for where, s := range map[string]admin.Store{"files": admin.Local{DB: db}, "service": running} {
		for what, work := range map[string]func(context.Context, store.Progress) error{
			"check":   func(ctx context.Context, p store.Progress) error { _, err := s.Check(ctx, p); return err },
			"compact": func(ctx context.Context, p store.Progress) error { _, err := s.Compact(ctx, false, p); return err },
		} {
			told := &steps{t: t}
			err := work(t.Context(), told.tell)
			// The service tells no more often than a person can read.
			if err != nil || told.n == 0 || where == "files" && told.done != told.total {
				t.Errorf("%s of the %s: %+v, %v", what, where, told, err)
			}
		}
	}
}

// TestResultsAsJSON: each command that has a result prints it as one line of
// JSON, on the files as through the running service.
func TestResultsAsJSON(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	p := start(t, dir, newIssuer(t))
	p.do("POST", eventsPath, newEvent("a"))
	here := []string{"--json", "--data-dir=" + dir, "--listen-admin=" + p.addrs["--listen-admin"]}
	for _, where := range []string{"service", "files"} {
		archive, lines := filepath.Join(copied, where+".tar"), filepath.Join(copied, where+".ndjson")
		for _, c := range []struct {
			args []string
			has  map[string]any
		}{
			{[]string{"backup", archive}, map[string]any{"file": archive, "revision": 2.0}},
			{[]string{"export", lines}, map[string]any{"file": lines, "revision": 2.0, "events": 1.0}},
			{[]string{"import", lines}, map[string]any{"unchanged": 1.0, "created": 0.0}},
			{[]string{"check"}, map[string]any{"live": 1.0}},
			{[]string{"compact"}, map[string]any{"events": 1.0}},
			{[]string{"restore", archive, "--json", "--data-dir=" + filepath.Join(copied, where)}, map[string]any{"live": 1.0, "revision": 2.0}},
		} {
			args := c.args
			if args[0] != "restore" {
				args = append(args, here...)
			}
			out := command(t, 0, args...)
			got := decoded[map[string]any](t, out)
			for name, want := range c.has {
				if got[name] != want {
					t.Errorf("%s of the %s: %s is %v, want %v: %s", args[0], where, name, got[name], want, out)
				}
			}
			if strings.Count(out, "\n") != 1 {
				t.Errorf("%s of the %s: more than a line: %q", args[0], where, out)
			}
		}
		if where == "service" {
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
