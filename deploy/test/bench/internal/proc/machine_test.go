package proc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/deploy/test/bench/internal/proc"
)

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"memory.max": "512 MiB", "memory.limit_in_bytes": "512 MiB", "other": "no directory"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte("536870912\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := proc.MemoryLimit(dir); !strings.Contains(got+fmt.Sprint(err), want) {
			t.Errorf("%s: %s, %v", file, got, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "memory.max"), []byte("max\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := proc.MemoryLimit(dir); err == nil {
		t.Errorf("no limit is taken for %s", got)
	}
}

func TestMachineNamesNobody(t *testing.T) {
	t.Parallel()
	got, err := proc.Machine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, host) || !strings.Contains(got, "cores") || !strings.Contains(got, "GiB") || strings.Contains(got, os.TempDir()) {
		t.Errorf("machine: %s", got)
	}
}
