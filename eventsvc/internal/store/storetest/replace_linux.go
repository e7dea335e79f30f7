package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Replace has the descriptors of a file that this process has open be those of another file, until restore is called: of itself,
// read-only, so that writes fail and reads do not, or of /dev/full, as if the disk were full.
func Replace(t testing.TB, path, with string, flags int) (restore func()) {
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
	saved := map[int]int{}
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
		copied, err := syscall.Dup(fd)
		if err == nil {
			err = syscall.Dup3(int(replacement.Fd()), fd, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		saved[fd] = copied
	}
	if len(saved) == 0 {
		t.Fatalf("%s is not open", path)
	}
	return func() {
		t.Helper()
		for fd, copied := range saved {
			if err := errors.Join(syscall.Dup3(copied, fd, syscall.O_CLOEXEC), syscall.Close(copied)); err != nil {
				t.Error(err)
			}
		}
	}
}
