//go:build !linux

package disk

import "os"

// SyncData waits until a file's data is on the disk. On macOS, Sync uses
// F_FULLFSYNC, because fsync there leaves the data in the cache of the drive.
func SyncData(f *os.File) error { return f.Sync() }

// Prefetch asks the kernel to read a part of a file, where the system has a call for that.
func Prefetch(*os.File, int64, int64) {}
