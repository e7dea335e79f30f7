package conformance_test

import (
	"context"
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

// pythonWith finds an interpreter that has a module. Another one may come first
// on PATH than the one that Debian's packages are for.
func pythonWith(t *testing.T, module, pkg string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	missing(t, "the Python module "+module, "apt-get install "+pkg)
	return ""
}
