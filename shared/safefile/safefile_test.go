package safefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tidings.example/shared/safefile"
)

// TestWrite: a file is made and replaced, for its owner only, and nothing else is left, also by a call that fails. What
// a power cut leaves is tested in deploy/test/powercut.
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

// TestCreate: a new file has its name only when it is complete, one process writes it at a time, and nothing is
// overwritten or left.
func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	f, err := safefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("whole"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the file has its name before it is complete")
	}
	if _, err := safefile.Create(path); err == nil {
		t.Error("two write the same file")
	}
	if err := f.Finish(nil); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "whole" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := safefile.Create(path); err == nil {
		t.Error("a file is overwritten")
	}
	failed := errors.New("the work has failed")
	if f, err = safefile.Create(path + "2"); err != nil {
		t.Fatal(err)
	}
	if err := f.Finish(failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
}
