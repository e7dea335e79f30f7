package console_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

var (
	root string   // the repository
	temp string   // a directory for all tests
	last []func() // called after all tests
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	if temp, err = os.MkdirTemp("", "console-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	defer func() {
		for _, do := range last {
			do()
		}
	}()
	return m.Run(), nil
}

// programs returns the directory with both services, built when the first test asks.
func programs(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var build = sync.OnceValues(func() (string, error) {
	render := exec.Command("make", "--no-print-directory", "-C", root, "manual")
	if out, err := render.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make manual: %w\n%s", err, out)
	}
	dir := filepath.Join(temp, "bin")
	for _, service := range []string{"tokensvc", "eventsvc"} {
		if err := testenv.Build(filepath.Join(root, service), filepath.Join(dir, service)); err != nil {
			return "", err
		}
	}
	return dir, nil
})
