package audit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

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

// TestFullQueue: nobody waits for the disk, and what is lost is counted.
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
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if got["written"] != 8192 || got["dropped"] != 7 {
		t.Errorf("counted %v", got)
	}
}
