//go:build !linux

package bolt

import "os"

// datasync waits until a file's data is on the disk. On macOS, Sync uses
// F_FULLFSYNC, because fsync there leaves the data in the cache of the drive.
func datasync(f *os.File) error { return f.Sync() }
