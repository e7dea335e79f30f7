package safefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"tidings.example/shared/safefile"
)

// TestWrite: a file is made and replaced, for its owner only, and nothing else is left, also by a call that fails. What a power
// cut leaves is tested in deploy/test/powercut.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("an older and longer one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "by a directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := safefile.Write(taken, []byte("x")); err == nil {
		t.Error("a directory is replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("left: %v, %v", all, err)
	}
}
