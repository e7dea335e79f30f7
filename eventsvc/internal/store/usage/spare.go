package usage

import (
	"errors"
	"os"
	"path/filepath"

	"tidings.example/eventsvc/internal/disk"
)

// SpareName is the name of a file that keeps room on the disk, so that maintenance can bring back more where others
// have taken the rest: merges and transactions need some before a file can be removed. It is a part of
// [Limits].MinFree.
const SpareName = "spare"

// sparePart is the part of MinFree that the spare file takes, and the part of MaxBytes that it takes at most.
const (
	sparePart  = 2
	spareLimit = 64
)

func (u *Usage) sparePath() string { return filepath.Join(u.dir, SpareName) }

// spareBytes is the size of the spare file.
func (u *Usage) spareBytes() int64 {
	size := max(0, u.limits.MinFree/sparePart)
	if u.limits.MaxBytes > 0 {
		size = min(size, u.limits.MaxBytes/spareLimit)
	}
	return size
}

// GiveSpare removes the spare file if the disk has less left than that takes.
func (u *Usage) GiveSpare() {
	if free, err := u.Free(); err == nil && free < u.spareBytes() {
		u.removeSpare()
	}
}

func (u *Usage) removeSpare() {
	_ = os.Remove(u.sparePath()) // there may be none
	u.spare.Store(0)
}

// KeepSpare makes the spare file if it is missing and the disk has as much left as MinFree. A file system that cannot
// do that has none.
func (u *Usage) KeepSpare() {
	size := u.spareBytes()
	if u.spare.Load() == size || size == 0 {
		return
	}
	if free, err := u.Free(); err != nil || free < u.limits.MinFree {
		return
	}
	f, err := os.OpenFile(u.sparePath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	if err := errors.Join(disk.Allocate(f, size), f.Close()); err != nil {
		u.removeSpare()
		return
	}
	u.spare.Store(size)
}
