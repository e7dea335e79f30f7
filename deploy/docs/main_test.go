package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWriteHelp: pages that are as they should be are left alone, others are written, and those that are no more are
// removed.
func TestWriteHelp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeHelp(map[string][]byte{"a.html": []byte("a"), "b/c.html": []byte("c"), "d.html": []byte("d")}, dir); err != nil {
		t.Fatal(err)
	}
	before := time.Unix(1e9, 0)
	for _, name := range []string{"a.html", "d.html", "b/c.html"} {
		if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "help.css"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeHelp(map[string][]byte{"a.html": []byte("a"), "d.html": []byte("other")}, dir); err != nil {
		t.Fatal(err)
	}
	for name, alone := range map[string]bool{"a.html": true, "d.html": false, "help.css": false} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.ModTime().Equal(before) != alone {
			t.Errorf("%s: left alone %t, want %t, %v", name, err == nil && info.ModTime().Equal(before), alone, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b/c.html")); !os.IsNotExist(err) {
		t.Errorf("a page that is no more is there: %v", err)
	}
}
