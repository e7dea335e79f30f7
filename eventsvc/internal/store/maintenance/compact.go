package maintenance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/safefile"
)

// A sealed segment is compacted when this fraction and this many bytes of it are dead.
// Small segments need fewer bytes. The files then stay below one and a half times of what
// is needed.
// Where room is tight, a smaller fraction is worth the work, because dead bytes take room of the limit from events.
const (
	compactFraction = 0.25
	compactBytes    = 1 << 20
	tightFraction   = 1.0 / 32
)

// errNoRoom says that a file cannot be rewritten now within the limit of bytes, or on the disk.
var errNoRoom = fmt.Errorf("%w: a file cannot be rewritten within --max-bytes", store.ErrFull)

// compaction brings back the disk space of records that nothing needs. It has one user at a
// time: whoever holds off rounds.
type compaction struct {
	*Config
	drop func(first, last uint64, damage error) // of a rewrite: see [seglog.Rewriting]
}

// compactAll is [Maintenance.Compact] without the round.
func (c *compaction) compactAll(ctx context.Context, compress bool, progress store.Progress) error {
	err := c.sealHead(ctx, func(all, dead int64) bool { return dead >= compactBytes || compress && all >= compactBytes })
	if err != nil {
		return err
	}
	defer c.Usage.Measure()
	if _, err := c.countDead(ctx, c.sealed(), false); err != nil {
		return fmt.Errorf("store: compacting: %w", err)
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	files := int64(len(c.sealed()) + 1)
	err = c.convertAll(ctx, compress, func(done int) { progress.Tell(int64(done), files) })
	if err == nil {
		err = c.rewriteIndex(ctx)
	}
	if err != nil && !errors.Is(err, errNoRoom) {
		return err
	}
	progress.Tell(files, files)
	return nil
}

// convertAll rewrites sealed segments in which something is dead, or that are to be compressed, as far as there is
// room. told is called with the number of those that are done.
func (c *compaction) convertAll(ctx context.Context, compress bool, told func(done int)) error {
	clean := true
	for i, s := range c.sealed() {
		told(i)
		if c.Usage.Segment(s.Base).Dead > 0 || compress && !s.Compressed {
			if err := c.convert(ctx, s, clean, compress || s.Compressed); err != nil && !errors.Is(err, errNoRoom) {
				return err
			}
		}
		clean = clean && c.Usage.Segment(s.Base).Clean()
	}
	return nil
}

// sealed returns the segments other than the head.
func (c *compaction) sealed() seglog.Segments {
	ss := c.Records.Log.Segments()
	return ss[:len(ss)-1]
}

// run unlinks the oldest sealed segments as long as they have no record that is needed and nothing that is still
// counted. It rewrites others in which much is dead.
func (c *compaction) run(ctx context.Context) error {
	err := c.sealHead(ctx, func(all, dead int64) bool {
		return dead >= 8*compactBytes && float64(dead) >= compactFraction*float64(all)
	})
	if err != nil && !isFull(err) { // a next head needs room
		return err
	}
	for {
		if s, err := c.compactFirst(ctx); err != nil {
			return fmt.Errorf("store: compacting %s: %w", s.Path, err)
		} else if s == nil {
			return nil
		}
	}
}

// compactFirst compacts the first segment that is worth it, or corrects the account of
// segments that it relies on. It returns the segment, nil if there is none.
func (c *compaction) compactFirst(ctx context.Context) (*seglog.Segment, error) {
	clean := true // nothing dead in the segments before, as far as the account tells
	ss := c.sealed()
	for i, s := range ss {
		account := c.Usage.Segment(s.Base)
		all, gain := s.Bytes(), account.Dead
		if !clean {
			gain -= account.Retained
		}
		dead := account.Dead >= all && i == 0
		unneeded := dead && c.past(s)
		if !unneeded && (!dead || all == 0) && !c.worthIt(gain, all) {
			clean = clean && account.Clean()
			continue
		}
		if clean { // before a file is unlinked or a deletion dropped, the account is verified
			again := dead // a file that may be unlinked is read even if it was counted before
			if corrected, err := c.countDead(ctx, ss[:i+1], again); err != nil || corrected {
				return s, err
			}
		}
		if unneeded {
			return s, c.unlink(ctx, s)
		}
		if err := c.shrink(ctx, s, clean, dead); !errors.Is(err, errNoRoom) {
			return s, err
		}
		clean = false
	}
	return nil, nil
}

// worthIt reports whether a segment with so many bytes is rewritten for a gain.
func (c *compaction) worthIt(gain, all int64) bool {
	if c.Usage.Tight() {
		return gain > 0 && float64(gain) >= tightFraction*float64(all)
	}
	return gain >= min(compactBytes, c.SegmentBytes/16) && float64(gain) >= compactFraction*float64(all)
}

// countDead corrects the account of what is dead in segments by reading each of them
// once after a start, or again, and reports whether it did. From then on the account is
// exact. The saved one can be wrong: the process may have ended after a segment was replaced or
// unlinked and before that was saved, and an index that is made again from the log cannot
// know what was superseded by a version that is gone.
func (c *compaction) countDead(ctx context.Context, ss seglog.Segments, again bool) (corrected bool, err error) {
	for _, s := range ss {
		saved := c.Usage.Segment(s.Base)
		if saved.Counted && !again {
			continue
		}
		k := c.filter(false)
		kept, damaged, err := s.CountKept(ctx, k.view)
		if err != nil {
			return false, err
		}
		account := usage.SegmentAccount{Dead: s.Bytes() - kept + k.retained, Retained: k.retained, Counted: true, Damaged: damaged}
		corrected = corrected || account.Dead != saved.Dead || damaged
		if err := c.Usage.SetSegment(s.Base, account); err != nil {
			return false, err
		}
	}
	return corrected, nil
}

// sealHead starts a new head if the present one is worth it, which has so many bytes, and so many of them dead.
func (c *compaction) sealHead(ctx context.Context, worth func(all, dead int64) bool) error {
	return c.Do(ctx, func() error {
		head := c.Records.Log.Head()
		if !worth(head.Bytes(), c.Usage.Segment(head.Base).Dead) {
			return nil
		}
		return c.Writer.Rotate()
	})
}

// unlink removes the oldest segment. It counts as there until a power cut cannot
// bring it back: deletions of what it holds may be dropped only then.
func (c *compaction) unlink(ctx context.Context, s *seglog.Segment) error {
	if err := errors.Join(disk.Remove(s.Path), safefile.Sync(filepath.Dir(s.Path))); err != nil {
		return err
	}
	if err := c.Do(ctx, func() error { c.Records.Log.RemoveFirst(); return nil }); err != nil {
		return err
	}
	c.Records.Log.LetGo(s)
	c.Usage.Measure()
	return c.Usage.SetSegment(s.Base, usage.SegmentAccount{})
}

// shrink rewrites a segment. If there is no room for that, and it has no needed record, it has to go to make room.
func (c *compaction) shrink(ctx context.Context, s *seglog.Segment, clean, dead bool) error {
	err := c.rewrite(ctx, s, clean, s.Compressed)
	if !dead || !errors.Is(err, errNoRoom) {
		return err
	}
	c.Log.Warn("the disk is full: what was observed according to a log file is no longer counted", "file", s.Path)
	return c.unlink(ctx, s)
}

// past reports whether nothing that was observed according to a segment is counted any more.
func (c *compaction) past(s *seglog.Segment) bool {
	last, any, err := s.LastObserved()
	if err != nil {
		c.Log.Warn("a log file is damaged: some of what was observed according to it is no longer counted", "file", s.Path, "error", err)
	}
	return err != nil || !any || last.Before(c.Kept())
}

// rewrite copies what is needed of a segment into a new file, compressed or not, and puts
// that in its place. Deletions that no state needs are dropped if the segments before are clean.
func (c *compaction) rewrite(ctx context.Context, s *seglog.Segment, clean, compress bool) error {
	done, ok := c.Usage.Reserve(usage.RewriteBytes(s))
	if !ok {
		return errNoRoom
	}
	defer done()
	tmp := s.Path + ".tmp"
	k := c.filter(clean)
	damaged, err := c.Records.Log.Rewrite(ctx, s, tmp, seglog.Rewriting{Filter: k.view, Since: c.Kept(), Compress: compress, Drop: c.drop})
	if err != nil {
		if err = errors.Join(err, disk.Remove(tmp)); disk.IsFull(err) {
			err = fmt.Errorf("%w: %w", errNoRoom, err) // the disk has less than the rewrite was estimated to need
		}
		return err
	}
	if err := disk.Rename(tmp, s.Path); err != nil {
		return err
	}
	smaller, err := seglog.OpenSegment(s.Path, false, 0)
	if err != nil {
		return err
	}
	// The file has its name already, so the end of ctx comes too late.
	if err := c.Do(context.WithoutCancel(ctx), func() error { c.Records.Log.Replace(smaller); return nil }); err != nil {
		return errors.Join(err, smaller.Close())
	}
	c.Records.Log.LetGo(s)
	return c.Usage.SetSegment(s.Base, usage.SegmentAccount{Dead: k.retained, Retained: k.retained, Counted: true, Damaged: damaged})
}

// rewriteIndex writes the index to a new file.
func (c *compaction) rewriteIndex(ctx context.Context) error {
	done, ok := c.Usage.Reserve(c.Records.Index.RewriteBytes())
	if !ok {
		return errNoRoom
	}
	defer done()
	return c.Records.Index.Rewrite(ctx, c.Records.Log.CompactRevision())
}

// A filter decides which records of a segment are needed.
type filter struct {
	records         seglog.IndexedLog
	dropDeletions   bool
	compactRevision uint64
	retained        int64 // bytes of the dead deletions that were kept
}

// filter returns a filter by the compact revision, or by what the index is merged to if that is less: a start reads the
// records that the index file points to.
func (c *compaction) filter(dropDeletions bool) *filter {
	return &filter{records: c.Records, dropDeletions: dropDeletions, compactRevision: min(c.Records.Log.CompactRevision(), c.Records.Index.Merged())}
}

// view implements [seglog.Filter].
func (k *filter) view(f func(needed func(*seglog.Entry) (bool, error)) error) error {
	return k.records.View(func(v index.View, r *seglog.Reader) error {
		return f(func(e *seglog.Entry) (bool, error) { return k.needed(r, v, e) })
	})
}

// needed reports whether a record is an event's newest version, or part of a
// state that can still be read, or a deletion that keeps an event from coming
// back.
func (k *filter) needed(r *seglog.Reader, v index.View, e *seglog.Entry) (bool, error) {
	if e.Revision > k.compactRevision {
		return true, nil
	}
	p, ok, err := v.Newest(string(e.Key))
	if err != nil {
		return false, err
	}
	gone := !ok || p.Deletion() && p.Revision() <= k.compactRevision
	if gone && e.Kind == seglog.Deleted && !k.dropDeletions {
		k.retained += e.Size()
		return true, nil
	}
	if !ok || p.Revision() <= k.compactRevision {
		return ok && p == index.NewPointer(e.Revision, false), nil
	}
	// Superseded: needed if the version after it is newer than the compact revision.
	for next := p.Revision(); next > k.compactRevision; {
		newer, err := r.Get(next)
		if err != nil {
			return false, err
		}
		if newer.Previous == e.Revision {
			return e.Kind != seglog.Deleted, nil
		}
		next = newer.Previous
	}
	return false, nil
}
