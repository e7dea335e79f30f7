package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// bin holds what TestMain builds: both services, the launcher of `make run`,
// the Go example and kubectl. root is the repository.
var bin, root string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	if bin, err = os.MkdirTemp("", "e2e-bin-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	for name, dir := range map[string]string{
		"tokensvc": "tokensvc",
		"eventsvc": "eventsvc",
		"local":    "deploy/local",
		"record":   "deploy/examples/record",
		"kubectl":  "deploy/test/e2e/kubectl",
	} {
		if err := testenv.Build(filepath.Join(root, dir), filepath.Join(bin, name), "-ldflags", "-X k8s.io/component-base/version.gitVersion=v1.37.2"); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}
