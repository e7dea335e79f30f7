package console_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// TestTypes: the type checker accepts the scripts of the console, whose types are in their comments.
func TestTypes(t *testing.T) {
	t.Parallel()
	tsc := testenv.Tool(t, "tsc")
	out, err := exec.CommandContext(t.Context(), tsc, "--project", filepath.Join(root, "eventsvc/internal/console/jsconfig.json")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
