package conformance_test

import (
	"os/exec"
	"testing"
)

// TestPython runs the Python client of Debian through its paces; what it
// expects is in testdata/client.py.
func TestPython(t *testing.T) {
	t.Parallel()
	python := pythonWith(t, "kubernetes", "python3-kubernetes")
	s := start(t)
	for _, when := range []string{"before a restart", "after it"} {
		out, err := exec.CommandContext(within(t), python, "testdata/client.py", "https://"+s.httpsAddr, s.caFile(), s.token).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", when, err, out)
		}
		t.Logf("%s", out)
		s.restart(t)
	}
}
