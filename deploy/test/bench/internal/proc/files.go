package proc

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// DiskBytes is what the files under dir occupy.
func DiskBytes(dir string) (int64, error) {
	var bytes int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // a segment that has just gone
		}
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	return bytes, err
}

// DropCached asks the kernel to forget the pages of the files under dir.
func DropCached(dir string) error {
	return eachFile(dir, func(f *os.File) error {
		return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	})
}

// ReadCached reads the files under dir, so that the kernel has their pages in
// memory.
func ReadCached(dir string) error {
	return eachFile(dir, func(f *os.File) error {
		_, err := io.Copy(io.Discard, f)
		return err
	})
}

func eachFile(dir string, do func(*os.File) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return do(f)
	})
}
