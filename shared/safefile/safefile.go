// Package safefile makes files and directories survive a power cut.
//
// POSIX makes the content of a file durable only when the file was synced, and its name only when its directory was.
package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces a file, or makes it, with mode 0600. After a power cut during the call the file is the old one or the
// new one; after the call it is the new one. A process that is killed may leave a temporary file beside it, whose name
// ends with .tmp.
func Write(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return Sync(filepath.Dir(path))
}

// Sync makes durable the content of a file, or the names in a directory: those of files that were made in it, renamed
// into it or removed from it.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// MkdirAll makes a directory and its parents with mode 0700, and makes their names durable. It syncs the parents of an
// empty directory that is there already too, because a process may have been killed between making it and syncing. It
// stops at the root of the file system, or at a directory that this user may not read and therefore has not made.
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
		if err = Sync(parent); errors.Is(err, os.ErrPermission) {
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
