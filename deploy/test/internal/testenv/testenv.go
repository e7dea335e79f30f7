// Package testenv holds what several test packages need to run programs on
// this machine: waiting, the output of processes, and skipping
// tests that the machine cannot run.
package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/waittest"
)

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

// Eventually calls check until it returns no error. The test fails if that takes longer than within on a machine that
// is not busy.
func Eventually(t testing.TB, what string, within time.Duration, check func() error) {
	t.Helper()
	waittest.Slowly(t, within, func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
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
