package disk

import (
	"errors"
	"os"
	"syscall"
)

// SyncData waits until a file's data is on the disk. It leaves out metadata that
// is not needed to read the data back, such as the time of the last write.
func SyncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
