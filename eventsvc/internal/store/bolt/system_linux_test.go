package bolt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a file system of the given size over a directory.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		unable(t, "a small file system cannot be mounted (%v): run the tests as root", err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
}

// resizeMount changes the size of a file system of mountSmall.
func resizeMount(dir, size string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size)
}

// unmount retries while the file system is busy: the kernel releases a loop device
// with a delay, and a process that another test is starting may still hold a file.
func unmount(dir string) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := syscall.Unmount(dir, 0)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
		pause(context.Background(), 10*time.Millisecond)
	}
}

// dropPages has the kernel forget the pages of the files of a store.
func dropPages(b *testing.B, dir string) {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
}
