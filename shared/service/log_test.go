package service_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/cli"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

// logFile is a regular file: a device would be taken for a terminal.
func logFile(tb testing.TB) *os.File {
	tb.Helper()
	file, err := os.Create(filepath.Join(tb.TempDir(), "log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	return file
}

// TestLoggerGathersLines: lines below warn wait and are written together; a warning is written at once, with them.
func TestLoggerGathersLines(t *testing.T) {
	t.Parallel()
	file := logFile(t)
	written := func() string {
		b, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	synctest.Test(t, func(t *testing.T) {
		log, err := service.Logger(file, "json", "info")
		if err != nil {
			t.Fatal(err)
		}
		log.With("a", 1).Info("first")
		log.WithGroup("g").Info("second")
		if got := written(); got != "" {
			t.Errorf("written at once: %s", got)
		}
		log.Warn("third")
		if got := written(); strings.Count(got, "\n") != 3 || !strings.Contains(got, `"first","a":1`) {
			t.Errorf("a warning wrote %q, want all three lines", got)
		}
		log.Info("fourth")
		time.Sleep(time.Second) // of fake time
		synctest.Wait()
		if got := written(); !strings.Contains(got, "fourth") {
			t.Errorf("after a second: %q, want the fourth line", got)
		}
		log.Info(strings.Repeat("x", 200<<10))
		if got := written(); len(got) < 200<<10 {
			t.Errorf("many lines: %d bytes written, want them at once", len(got))
		}
	})
}

// TestLoggerKeepsOrder: lines of many goroutines are written whole and none is lost; those of one goroutine keep their
// order.
func TestLoggerKeepsOrder(t *testing.T) {
	t.Parallel()
	file := logFile(t)
	log, err := service.Logger(file, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 4000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				log.Info("line", "writer", w, "i", i)
			}
		})
	}
	waittest.Join(t, &all)
	log.Warn("last")
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var next [writers]int
	lines := 0
	for line := range bytes.Lines(text) {
		var of struct {
			Msg       string
			Writer, I int
		}
		if err := json.Unmarshal(line, &of); err != nil {
			t.Fatalf("line %d, %q: %v", lines, line, err)
		}
		if lines++; of.Msg == "last" {
			continue
		}
		if of.I != next[of.Writer] {
			t.Fatalf("writer %d: line %d, want %d", of.Writer, of.I, next[of.Writer])
		}
		next[of.Writer]++
	}
	if lines != writers*each+1 {
		t.Errorf("%d lines, want %d", lines, writers*each+1)
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ format, level, want string }{
		"auto into a file is JSON": {"auto", "info", `"msg":"hello\nthere"`},
		"text":                     {"text", "debug", `msg="hello\nthere"`},
		"level":                    {"json", "error", ""},
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		log, err := service.Logger(file, test.format, test.level)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("hello\nthere")
		content, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if test.want == "" && len(content) > 0 || !strings.Contains(string(content), test.want) {
			t.Errorf("%s: logged %q, want %q", name, content, test.want)
		}
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"json", "loud"}} {
		if _, err := service.Logger(os.Stderr, bad[0], bad[1]); cli.ExitCode(err) != 2 {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
}
