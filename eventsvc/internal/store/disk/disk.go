// Package disk makes files and directories survive a power cut, and measures the
// room that they have.
//
// POSIX makes a file's name durable only when its directory was synced, and its
// content only when the file was. The functions here do one or the other, and say
// which. They are safe for concurrent use and know nothing of what files hold.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// SyncDir makes the names in a directory durable: files that were made in it,
// renamed into it or removed from it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MkdirAll makes a directory and its parents, and makes their names durable. It
// syncs the parents of an empty directory that is there already too, because a
// process may have been killed between making it and syncing. It stops at the root
// of the file system, or at a directory that this user may not read and therefore
// has not made.
func MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return err
	}
	dir, err := filepath.Abs(dir)
	for parent := filepath.Dir(dir); err == nil && parent != dir; dir, parent = parent, filepath.Dir(parent) {
		var same bool
		if same, err = sameFileSystem(dir, parent); err != nil || !same {
			break
		}
		if err = SyncDir(parent); errors.Is(err, os.ErrPermission) {
			return nil
		}
	}
	return err
}

func sameFileSystem(a, b string) (bool, error) {
	var sa, sb syscall.Stat_t
	err := errors.Join(syscall.Stat(a, &sa), syscall.Stat(b, &sb))
	return sa.Dev == sb.Dev, err
}

// Rename gives a file or a directory another name in the same directory, which may be
// that of a file to replace, and makes that durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
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
