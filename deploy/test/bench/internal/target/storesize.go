package target

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// StoreSize is what the files of eventsvc's store take on the disk: those of the log that are full, the one that is
// written to, and the index.
type StoreSize struct{ Sealed, Head, Index int64 }

// Full is what the store takes without the file that is written to.
func (s StoreSize) Full() int64 { return s.Sealed + s.Index }

// StoreSizeOf reads the sizes of the files in a data directory.
func StoreSizeOf(dir string) (size StoreSize, err error) {
	dir = filepath.Join(dir, "store")
	logs, err := filepath.Glob(filepath.Join(dir, "log-*.db")) // in the order of their revisions
	if err != nil || len(logs) == 0 {
		return size, errors.Join(err, errors.New("there is no log file"))
	}
	taken := func(path string) int64 {
		info, failed := os.Stat(path)
		if failed != nil {
			err = errors.Join(err, failed)
			return 0
		}
		return info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	head := len(logs) - 1
	for _, path := range logs[:head] {
		size.Sealed += taken(path)
	}
	size.Head, size.Index = taken(logs[head]), taken(filepath.Join(dir, "index.db"))
	return size, err
}
