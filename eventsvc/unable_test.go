package main

import (
	"os"
	"testing"
)

// unable skips a test that this machine cannot run. With CI=true the test fails
// instead: .ci/run prepares the machine, and nobody would notice a skipped test.
func unable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
