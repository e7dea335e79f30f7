package usage

import (
	"fmt"
	"math"
	"path/filepath"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/wal"
)

// Where nothing is said, a store takes at most so much of the disk.
const (
	defaultMaxBytes = 8 << 30
	defaultShare    = 0.8 // of what is free at start
)

// Parts of MaxBytes. Maintenance keeps what is needed below keepShare, and events alone
// below liveShare of it. The rest is room for what is written before its next round, for
// dead records before they are compacted, and for a segment that is being rewritten.
const (
	keepShare = 0.64
	liveShare = 0.52
)

// maxPacking is more than records can be compressed by.
const maxPacking = 32

// Limits bound what a store takes.
type Limits struct {
	MaxBytes int64 // of all files; not positive: no limit
	MinFree  int64 // events are refused when the disk has less left; not positive: no limit

	// OverLimit is called when Full finds that MaxBytes is exceeded: maintenance can
	// make room. It must not wait.
	OverLimit func()
}

// DefaultMaxBytes returns the limit of a store for which none is set, by what is free on
// the disk now. What the store takes already counts as free.
func DefaultMaxBytes(dir string) (int64, error) {
	free, err := disk.Free(dir)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return 0, fmt.Errorf("store directory: %w", err)
	}
	for _, path := range append(files, filepath.Join(dir, wal.FileName)) {
		free += disk.Usage(path)
	}
	return min(defaultMaxBytes, int64(defaultShare*float64(free))), nil
}

// Free returns how many bytes the disk has left.
func (u *Usage) Free() (int64, error) { return disk.Free(u.dir) }

// Full returns why there is no room for more events, nil if there is. The committers ask
// before every commit. They write deletions all the same, into the room that MinFree keeps
// back.
func (u *Usage) Full() error {
	free, err := u.Free()
	if err != nil {
		return err
	}
	if free < u.limits.MinFree {
		return fmt.Errorf("%w: %d MiB are free on the disk, %d MiB are kept back for deletions", store.ErrFull, free>>20, u.limits.MinFree>>20)
	}
	used := u.sealed.Load() + disk.Usage(u.records.Log.Head().Path)
	if u.limits.MaxBytes > 0 && used > u.limits.MaxBytes {
		u.limits.OverLimit()
		return fmt.Errorf("%w: %d MiB are in use, the limit is %d MiB", store.ErrFull, used>>20, u.limits.MaxBytes>>20)
	}
	return nil
}

// HistoryLimit returns how many bytes of history fit beside the events: none when
// the disk has no room left, whoever has filled it.
func (u *Usage) HistoryLimit() int64 {
	if free, err := u.Free(); err == nil && free < u.limits.MinFree {
		return 0
	}
	if u.limits.MaxBytes <= 0 {
		return math.MaxInt64
	}
	packing := u.packing()
	room := int64(keepShare*packing*float64(u.limits.MaxBytes)) - u.bytes.Load()
	return max(0, min(int64(max(1, packing)*float64(u.limits.MaxBytes)/4), room))
}

// LiveLimit returns how many bytes of events maintenance leaves.
func (u *Usage) LiveLimit() int64 {
	if u.limits.MaxBytes <= 0 {
		return math.MaxInt64
	}
	return int64(liveShare * u.packing() * float64(u.limits.MaxBytes))
}

// Tight reports that there are more events than MaxBytes has room for.
func (u *Usage) Tight() bool { return u.bytes.Load() > u.LiveLimit() }

// packing returns how many bytes of records a byte of the files has: less than one because of
// the index and the slack of pages, more where records are compressed.
func (u *Usage) packing() float64 {
	records, files := int64(0), disk.Usage(u.records.Index.Path())
	for _, s := range u.records.Log.Segments() {
		records += s.Bytes()
		files += disk.Usage(s.Path)
	}
	return packing(records, files)
}
