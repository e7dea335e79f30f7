package bolt

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// A second process waits for the lock of a directory for lockWait, because one that was killed may hold its lock for a
// moment.
const (
	lockWait  = 200 * time.Millisecond
	lockRetry = 10 * time.Millisecond
)

// lockDir keeps every other process, and every other call, out of a directory until the returned file is closed. It
// locks the directory itself, which needs no room on the disk. A file in it would not do: compaction replaces the
// index, and a process that waits for the lock of a file gets that of the old file, which nobody else looks at any
// more.
func lockDir(dir string) (lock *os.File, err error) {
	for until := time.Now().Add(lockWait); ; time.Sleep(lockRetry) {
		if lock, err = tryLock(dir); err == nil || !errors.Is(err, store.ErrInUse) || time.Now().After(until) {
			return lock, err
		}
	}
}

func tryLock(dir string) (*os.File, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("store directory: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = isNow(lock, dir)
	}
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, errReplaced):
		err = &store.FileError{Path: dir, Reason: "another process is using it", Fix: boltfile.FixLocked, Err: store.ErrInUse}
	default:
		err = fmt.Errorf("store directory %s: its lock: %w", dir, err)
	}
	return nil, errors.Join(err, lock.Close())
}

var errReplaced = errors.New("the directory was replaced")

// isNow returns errReplaced if a directory is not the open one any more: a restore has put another in its place.
func isNow(open *os.File, dir string) error {
	mine, err := open.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(dir); err != nil || !os.SameFile(mine, there) {
		return errReplaced
	}
	return nil
}
