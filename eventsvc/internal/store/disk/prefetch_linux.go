package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Prefetch asks the kernel to read a part of a file, and does not wait for it. It is advice,
// which the kernel may not follow.
func Prefetch(f *os.File, offset, length int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, length, unix.FADV_WILLNEED)
}
