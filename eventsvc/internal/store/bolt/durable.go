package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltcheck"
)

// makeDir makes a directory, if it is not there yet, that a power cut does not
// take away. An empty one may be of a process that was killed before it had synced
// the names that lead there: so they are synced, up to the root of the file system
// or to a directory that this user may not read, and so has not made.
func makeDir(dir string) error {
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
		if err = syncDir(parent); errors.Is(err, os.ErrPermission) {
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

// rewriteMeta writes the newest meta page of a file that was opened for writing
// again, as it is, and syncs it.
//
// A process that could not sync it, and was killed, has left it in the page cache.
// There it can be read, but it is not on the disk, and will not be: the kernel has
// reported the error, has marked the page as written, and a sync alone finds
// nothing to do. What that page leads to is on the disk, because bbolt writes it
// only when it has synced that. But without the page the file has the commit
// before, whose pages the next commit takes as free, and whose records the journal
// would no longer keep.
func rewriteMeta(db *bbolt.DB) error {
	page := make([]byte, db.Info().PageSize)
	var at int64
	if err := boltcheck.View(db, func(tx *bbolt.Tx) error {
		at = int64(tx.ID()%2) * int64(len(page))
		return nil
	}); err != nil {
		return err
	}
	f, err := os.OpenFile(db.Path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if _, err = f.ReadAt(page, at); err == nil {
		_, err = f.WriteAt(page, at)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("its newest commit cannot be written again: %w", err)
	}
	return nil
}
