package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestOpenOnFullDisk: a temporary directory without room, or that can only be read, is named together with what to do.
func TestOpenOnFullDisk(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if err := syscall.Mount("tmpfs", temp, "tmpfs", 0, "size=256k"); err != nil {
		unable(t, "a small file system cannot be mounted (%v): run the tests as root", err)
	}
	defer func() {
		if err := syscall.Unmount(temp, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if said := command(t, 1, "open", "internal/dump/testdata/dumps/list.json"); !strings.Contains(said, "no space left for writes") || !strings.Contains(said, "TMPDIR or --keep") {
		t.Error(said)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := syscall.Mount("tmpfs", temp, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if said := command(t, 1, "open", "internal/dump/testdata/dumps/list.json"); !strings.Contains(said, "read-only file system: set TMPDIR") {
		t.Error(said)
	}
}
