package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// maxExposure is the largest exposure that systemd may report for a unit, from 0 to 100 (10.0). What remains is the
// network, which a service needs.
const maxExposure = "20"

// TestUnits lets systemd verify the units: it understands every line, and their exposure is small.
func TestUnits(t *testing.T) {
	t.Parallel()
	analyze := testenv.Tool(t, "systemd-analyze") // systemd need not be what started the machine
	for file, name := range map[string]string{
		"tokensvc.service": "tokensvc.service", "eventsvc.service": "eventsvc.service", "eventsvc-mirror@.service": "eventsvc-mirror@prod.service",
		"eventsvc-alerts.service": "eventsvc-alerts.service",
	} {
		text, err := os.ReadFile(filepath.Join(root, "deploy/systemd", file))
		if err != nil {
			t.Fatal(err)
		}
		const installed = "/usr/local/bin/"
		unit := filepath.Join(t.TempDir(), name)
		here := strings.ReplaceAll(string(text), "ExecStart="+installed, "ExecStart="+bin+"/") // the program has to be there
		if err := os.WriteFile(unit, []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"verify", "--man=no", "--recursive-errors=no", unit},
			{"security", "--no-pager", "--offline=yes", "--threshold=" + maxExposure, unit},
		} {
			out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
			if err != nil || args[0] == "verify" && len(out) > 0 {
				t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}
