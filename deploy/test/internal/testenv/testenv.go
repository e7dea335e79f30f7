// Package testenv holds what several test packages need to run programs on
// this machine: free addresses, waiting, the output of processes, and skipping
// tests that the machine cannot run.
package testenv

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// FreeAddr returns a loopback address that nobody listens on. Port 0 would not
// do, because a restart needs the same address again. Until the test ends, no
// other test gets it: the tests of all processes reserve a port by binding it
// for UDP. The port is below those that the system gives to outgoing
// connections.
func FreeAddr(t testing.TB) string {
	t.Helper()
	const from, to = 12000, 32000
	for range to - from {
		addr := fmt.Sprintf("127.0.0.1:%d", from+(os.Getpid()*100+int(ports.Add(1)))%(to-from))
		mark, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			t.Cleanup(func() { _ = mark.Close() })
			_ = l.Close()
			return addr
		}
		_ = mark.Close()
	}
	t.Fatalf("no port between %d and %d is free", from, to)
	return ""
}

var ports atomic.Int32 // given out so far

// Build builds the program of a folder, in that folder's own module, as images do.
func Build(folder, out string, flags ...string) error {
	args := append([]string{"build", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", folder, err, text)
	}
	return nil
}

// Eventually calls check until it returns no error. The test fails if that
// takes longer than within.
func Eventually(t testing.TB, what string, within time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: still not after %s: %v", what, within, err)
		case <-tick.C:
		}
	}
}

// Unable skips a test that this machine cannot run. With CI=true the test fails
// instead: .ci/run prepares the machine, and nobody would notice a skipped test.
func Unable(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool finds a program on PATH. Without it the test cannot run.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Unable(t, "%v: install %s to run this test", err, name)
	}
	return path
}

// Output collects what a program prints. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds p to the output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns everything that was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
