package conformance_test

import (
	"os/exec"
	"testing"
)

// TestPython runs the Python client of Debian through its paces; what it
// expects is in testdata/client.py.
func TestPython(t *testing.T) {
	t.Parallel()
	python := ""
	// Another interpreter may come first on PATH than the one that Debian's
	// packages are for.
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import kubernetes").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		missing(t, "the Python client", "apt-get install python3-kubernetes")
	}
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
