package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Replace has the descriptors of a file that this process has open be those of another file: of itself, read-only, so
// that writes fail and reads do not, or of /dev/full, as if the disk were full.
func Replace(t testing.TB, path, with string, flags int) {
	t.Helper()
	replacement, err := os.OpenFile(with, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replacement.Close() }()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, link := range links {
		var fd int
		if target, err := os.Readlink(link); err != nil || target != path {
			continue
		}
		if _, err := fmt.Sscanf(filepath.Base(link), "%d", &fd); err != nil {
			t.Fatal(err)
		}
		if fd == int(replacement.Fd()) {
			continue
		}
		if err := syscall.Dup3(int(replacement.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced == 0 {
		t.Fatalf("%s is not open", path)
	}
}
