package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/service"
)

// Lines below warn wait to be written together; a warning takes them along.
func TestLoggerGathersLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	written := func() string {
		b, err := os.ReadFile(path)
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
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		if got := written(); !strings.Contains(got, "fourth") {
			t.Errorf("after a second: %q, want the fourth line", got)
		}
		log.Info(strings.Repeat("x", 40<<10))
		if got := written(); len(got) < 40<<10 {
			t.Errorf("many lines: %d bytes written, want them at once", len(got))
		}
	})
}
