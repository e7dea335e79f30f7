package proc_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/proc"
)

func TestCPUCountsWork(t *testing.T) {
	t.Parallel()
	before, err := proc.CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Minute) // on a machine that others need
	for used := time.Duration(0); used < 50*time.Millisecond; {
		now, err := proc.CPU(os.Getpid())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("used %v of CPU in 5 minutes of work, %v", used, err)
		}
		used = now - before
	}
	if busy, err := proc.BusyCPU(); err != nil || busy <= before {
		t.Errorf("the machine used %v and one of its processes %v, %v", busy, before, err)
	}
}

func TestMemoryGrowsByWhatIsTouched(t *testing.T) {
	t.Parallel()
	before, err := proc.MemoryOf(os.Getpid())
	if err != nil || before.Anon == 0 || before.File == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	const size = 64 << 20
	touched, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE) // the heap may have it already
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(touched) }()
	for i := 0; i < size; i += 4096 {
		touched[i] = 1
	}
	after, err := proc.MemoryOf(os.Getpid())
	if err != nil || after.Anon-before.Anon < size/2 {
		t.Errorf("after touching %d bytes: %+v, before %+v, %v", size, after, before, err)
	}
}

func TestDiskBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 10_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := proc.DiskBytes(dir); err != nil || got < 20_000 || got > 100_000 {
		t.Errorf("two files of 10000 bytes occupy %d, %v", got, err)
	}
}

func TestProcessThatEndsSaysWhy(t *testing.T) {
	t.Parallel()
	p, err := proc.Start(filepath.Join(t.TempDir(), "log"), exec.Command("/bin/sh", "-c", "echo no such setting >&2; exit 2"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Ready(t.Context(), "http://127.0.0.1:1", time.Minute) // where nobody listens
	if err == nil || !strings.Contains(err.Error(), "no such setting") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("want the exit status and what was printed, got %v", err)
	}
}

func TestReadyAndStop(t *testing.T) {
	t.Parallel()
	probes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if probes++; probes < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	p, err := proc.Start(filepath.Join(t.TempDir(), "log"), exec.Command("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ready(t.Context(), server.URL, time.Minute); err != nil || probes != 3 {
		t.Errorf("%d probes, %v", probes, err)
	}
	if err := p.Stop(); err != nil && !strings.Contains(err.Error(), "signal: terminated") {
		t.Errorf("stop: %v", err)
	}
}
