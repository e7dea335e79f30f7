package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncData waits until a file's data is on the disk. It leaves out metadata that
// is not needed to read the data back, such as the time of the last write.
func SyncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// Allocate gives a file so many bytes of the disk, which read as zeros.
func Allocate(f *os.File, size int64) error {
	return os.NewSyscallError("fallocate", unix.Fallocate(int(f.Fd()), 0, 0, size))
}

// Prefetch asks the kernel to read a part of a file, and does not wait for it. It is advice,
// which the kernel may not follow.
func Prefetch(f *os.File, offset, length int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, length, unix.FADV_WILLNEED)
}
