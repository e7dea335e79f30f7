//go:build !linux

package disk

import "os"

// SyncData waits until a file's data is on the disk. On macOS, Sync uses
// F_FULLFSYNC, because fsync there leaves the data in the cache of the drive.
func SyncData(f *os.File) error { return f.Sync() }

// Allocate gives a file so many bytes of the disk, which read as zeros.
func Allocate(f *os.File, size int64) error {
	zeros := make([]byte, 256<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// Prefetch asks the kernel to read a part of a file, where the system has a call for that.
func Prefetch(*os.File, int64, int64) {}
