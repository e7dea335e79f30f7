package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// PendingFile is a file that gets its name only when it is complete.
type PendingFile struct {
	*os.File
	path string
}

// partial is the suffix of a file that is not complete. The next process overwrites
// the file of one that was killed.
const partial = ".partial"

// Create begins a file that must not exist. One process at a time writes to a path.
func Create(path string) (*PendingFile, error) {
	if err := absent(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("another process is writing %s: wait for it, or choose another file", f.Name())
	} else {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &PendingFile{f, path}, nil
}

func absent(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return fmt.Errorf("%s exists already: remove it, or choose another file", path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Finish syncs the file and gives it its name, or removes it if the work has failed. It returns that failure, too.
func (f *PendingFile) Finish(failed error) error {
	if failed == nil {
		failed = f.Sync()
	}
	if failed == nil {
		failed = absent(f.path)
	}
	if failed != nil {
		return errors.Join(failed, os.Remove(f.Name()), f.Close())
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(Sync(filepath.Dir(f.path)), f.Close())
}
