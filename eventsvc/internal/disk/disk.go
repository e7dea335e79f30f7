// Package disk renames, removes and syncs the files of a store, beside what package
// safefile does, and measures the room that they have. Its functions are safe for
// concurrent use and know nothing of what files hold.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"tidings.example/shared/safefile"
)

// Rename gives a file or a directory another name in the same directory, which may be
// that of a file to replace, and makes that durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return safefile.Sync(filepath.Dir(to))
}

// Remove removes a file. It is no error if there is none.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// IsFull reports whether a write failed because there was no room: no space, a
// quota, or a limit of the file's size. Such a failure passes, and the file may be
// written again: the kernel reported it before it took the bytes.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Free returns how many bytes the file system of a directory has left for this user.
func Free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("store directory %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil // Bsize is an int64 on Linux and a uint32 on macOS
}

// Usage returns how many bytes a file takes on the disk, 0 if there is none. A file
// may be longer than what it takes.
func Usage(path string) int64 {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0
	}
	return st.Blocks * 512
}
