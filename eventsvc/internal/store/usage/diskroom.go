package usage

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// What may be written while how much is left of MaxBytes, if that is set ([Usage.left]), and of the disk:
//
//	                        MaxBytes                               disk       else
//	new events              its 64th is left                       MinFree    [Usage.Full] refuses them
//	deletions               something is left, or it was lowered   -          Full refuses them
//	a file being rewritten  the file is left, or it was lowered    -          [Usage.Reserve] refuses it
//	history                 the files leave room for events        MinFree    [Usage.HistoryLimit] lets it go
//	                        and deletions: they are not [Usage.Tight]
//
// MaxBytes was lowered if the files took more at the start. Then deletions and rewrites are what makes them smaller,
// and have no bound until the files fit.

// Where nothing is said, a store takes at most so much of the disk.
const (
	defaultMaxBytes = 8 << 30
	defaultShare    = 0.8 // of what is free at start
)

// Parts of MaxBytes that events cannot take.
const (
	deletedPart = 64 // of it is for deletions alone, because events that go need room first
	historyPart = 32 // of it is for history, however many events there are
	deadPart    = 64 // of it may be dead bytes that are not worth a rewrite
	historyMost = 4  // of it is the most that history takes where events leave it room

	// Writes until the next round of maintenance, and a file that is being rewritten, take so much. Files are small
	// where MaxBytes is, see [SegmentBytes].
	workPart = 64.0 / 5
	workMost = 384 << 20
)

// Sizes at which a file is sealed and a memtable merged. A small MaxBytes lowers them.
const (
	defaultSegmentBytes = 64 << 20
	defaultMemtableKeys = 1 << 16
)

// SegmentBytes returns the size at which a file of the log is sealed, for a limit of all files.
func SegmentBytes(maxBytes int64) int64 {
	if maxBytes <= 0 {
		return defaultSegmentBytes
	}
	return max(64<<10, min(defaultSegmentBytes, maxBytes/64))
}

// MemtableKeys returns how many keys are merged into the index at once, for a limit of all files.
func MemtableKeys(maxBytes int64) int {
	if maxBytes <= 0 {
		return defaultMemtableKeys
	}
	return int(max(256, min(defaultMemtableKeys, maxBytes>>17)))
}

// eventRoom returns how much of a limit the files may take for the events that exist: 86 % or more.
func eventRoom(maxBytes int64) int64 {
	return maxBytes - maxBytes/deletedPart - maxBytes/historyPart - maxBytes/deadPart - min(int64(float64(maxBytes)/workPart), workMost)
}

// maxPacking is more than records can be compressed by.
const maxPacking = 32

// Limits bound what a store takes.
type Limits struct {
	MaxBytes int64 // of all files; not positive: no limit
	MinFree  int64 // events are refused when the disk has less left, or will have once they are merged; not positive: no limit

	// OverLimit is called when Full finds that there will be no room for events soon: maintenance can
	// make some. It must not wait.
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

// room returns how many bytes the disk has left without the spare file when what waits in memory is merged: less than
// nothing if that does not fit.
func (u *Usage) room() (int64, error) {
	free, err := u.Free()
	return free + u.spare.Load() - u.records.Index.MergeBytes(), err
}

// Full returns why there is no room for more events, and why there is none for deletions; nil if there is. The
// committers ask before every commit of size bytes. While the disk has less than MinFree left, deletions are still
// written, into the space that MinFree keeps back.
func (u *Usage) Full(size int64) (create, remove error) {
	room, err := u.room()
	if err != nil {
		return err, nil
	}
	if u.limits.MinFree > 0 && room < u.limits.MinFree {
		create = fmt.Errorf("%w: %d MiB are free on the disk, %d MiB are kept back for deletions", store.ErrFull, max(0, room)>>20, u.limits.MinFree>>20)
	}
	if u.limits.MaxBytes <= 0 {
		return create, nil
	}
	used := u.used()
	left := u.left(used, 0) - 2*size // what it takes of pages is less
	if used <= u.restRoom() && left >= u.limits.MaxBytes/deletedPart {
		return create, nil
	}
	u.limits.OverLimit()
	full := fmt.Errorf("%w: %d MiB are in use, the rest of the limit of %d MiB is kept for files that are being rewritten",
		store.ErrFull, used>>20, u.limits.MaxBytes>>20)
	if left < u.limits.MaxBytes/deletedPart {
		create = cmp.Or(create, full)
	}
	if left < 0 && !u.lowered.Load() {
		remove = full
	}
	return create, remove
}

// left returns how much of MaxBytes is left for the next writes where the files take so much. Kept back is what the
// files grow by when earlier writes are checkpointed and merged, and the largest of a file of so many bytes, the one
// that is being rewritten and those that may have to be.
func (u *Usage) left(used, file int64) int64 {
	rewriting := max(u.largest.Load(), u.reserved.Load(), file)
	return u.limits.MaxBytes - used - 2*u.wal.Load() - u.records.Index.MergeBytes() - rewriting
}

// used returns the size of the files, with those that are unlinked and still read, and without the new files of
// rewrites.
func (u *Usage) used() int64 {
	unlinked := u.records.Log.UnlinkedBytes() + u.records.Index.UnlinkedBytes()
	return u.sealed.Load() + u.wal.Load() + disk.Usage(u.records.Log.Head().Path) + disk.Usage(u.records.Index.Path()) + unlinked
}

// DeletionRoom returns how many bytes deletions may take.
func (u *Usage) DeletionRoom() int64 {
	room, err := u.room()
	if err != nil {
		return 0
	}
	if u.limits.MaxBytes > 0 && !u.lowered.Load() {
		room = min(room, u.left(u.used(), 0))
	}
	return max(0, room)
}

// Reserve keeps room for a file that is to be written, until done is called. It reports false if there is none. Only
// maintenance writes files, one at a time.
func (u *Usage) Reserve(bytes int64) (done func(), ok bool) {
	if u.limits.MaxBytes > 0 && u.left(u.used(), bytes) < 0 && !u.lowered.Load() {
		return nil, false
	}
	u.reserved.Store(bytes)
	return func() { u.reserved.Store(0); u.Measure() }, true
}

// RewriteBytes returns how much room the rewrite of a segment needs at most.
func RewriteBytes(s *seglog.Segment) int64 {
	size := disk.Usage(s.Path)
	return size + size/8 + 64<<10
}

// restPart is the part of MaxBytes that the files may take between two rounds of maintenance.
func (u *Usage) restPart() int64 {
	return eventRoom(u.limits.MaxBytes) + u.limits.MaxBytes/historyPart + u.limits.MaxBytes/deadPart
}

// restRoom is what the files may take between two rounds: less than their part where more than usual is kept back, so
// that history goes before [Usage.Full] refuses events. Beside what is for deletions alone, as much is left for the
// next events.
func (u *Usage) restRoom() int64 {
	return min(u.restPart(), u.left(0, 0)-2*u.limits.MaxBytes/deletedPart)
}

// Tight reports that the files take more than is left to them.
func (u *Usage) Tight() bool { return u.limits.MaxBytes > 0 && u.used() > u.restRoom() }

// leastHistory returns how many bytes of history stay even if events have to go: those that fill history's part of
// MaxBytes where records are so much of the files. History is packed no better than the rest, and not compressed.
func (u *Usage) leastHistory(packed float64) int64 {
	return int64(min(2./3, packed) * float64(u.limits.MaxBytes/historyPart))
}

// HistoryLimit returns how many bytes of history fit beside the events; 0 when the disk is full, whoever has filled it.
// History goes before events.
func (u *Usage) HistoryLimit() int64 {
	if room, err := u.room(); err == nil && u.limits.MinFree > 0 && room < u.limits.MinFree {
		return 0
	}
	if u.limits.MaxBytes <= 0 {
		return math.MaxInt64
	}
	s := u.Stats()
	packed := s.packing(s.FileBytes)
	least := u.leastHistory(packed)
	packed = max(1, packed)
	limit := int64(packed * float64(u.limits.MaxBytes/historyMost))
	if over := s.FileBytes - u.reclaimable() - u.restRoom(); over > 0 {
		limit = min(limit, s.HistoryBytes-int64(packed*float64(over)))
	}
	return max(limit, least)
}

// Excess returns how many bytes of events do not fit. History does not raise it: its size is subtracted, rounded up, so
// that no event is removed because of history.
func (u *Usage) Excess() int64 {
	if u.limits.MaxBytes <= 0 {
		return 0
	}
	s := u.Stats()
	packed := s.packing(s.FileBytes)
	least := u.leastHistory(packed)
	history := int64(float64(min(s.HistoryBytes, least))/min(2./3, packed) + float64(max(0, s.HistoryBytes-least))/packed)
	return int64(packed * float64(s.FileBytes-u.reclaimable()-history-eventRoom(u.limits.MaxBytes)))
}

// reclaimable returns how many bytes compaction can free.
func (u *Usage) reclaimable() (bytes int64) {
	for _, s := range u.records.Log.Segments() {
		if dead, all := u.Segment(s.Base).Dead, s.Bytes(); dead > 0 && all > 0 {
			bytes += int64(float64(disk.Usage(s.Path)) * min(1, float64(dead)/float64(all)))
		}
	}
	return bytes
}
