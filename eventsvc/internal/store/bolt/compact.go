package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A sealed segment is compacted when so much of it is dead, less bytes where
// segments are small: the files then stay below one and a half times what is
// needed.
const (
	compactFraction = 0.25
	compactBytes    = 1 << 20
	compactCommit   = 4 << 20
)

// compact brings disk space back: sealed segments with nothing alive at the
// old end of the log are unlinked, others with much dead in them are written
// anew, and so is the index when it is mostly empty pages.
func (m *maintenance) compact(ctx context.Context) error {
	if err := m.sealDeadHead(ctx, 8*compactBytes, compactFraction); err != nil {
		return err
	}
	ss := m.db.log.Segments()
	clean := true // nothing dead in the segments before, as far as the account tells
	for i, s := range ss[:len(ss)-1] {
		dead, all := m.db.dead.of(s.Base), s.Bytes()
		gain := dead
		if !clean {
			gain -= s.Retained
		}
		empty := dead >= all && i == 0
		if !empty && (gain < min(compactBytes, m.db.o.SegmentBytes/16) || float64(gain) < compactFraction*float64(all)) {
			clean = clean && m.clean(s)
			continue
		}
		var corrected bool
		var err error
		if clean { // a removal relies on the account, and so does a deletion that is dropped
			s.Counted = s.Counted && !empty // what is removed is looked at again
			corrected, err = m.countDead(ctx, ss[:i+1])
		}
		switch {
		case err != nil || corrected:
		case empty:
			err = m.unlink(ctx, s)
		default:
			err = m.rewrite(ctx, s, clean)
		}
		if err != nil {
			return fmt.Errorf("store: compacting %s: %w", s.Path, err)
		}
		return m.compact(ctx)
	}
	return nil
}

// clean reports whether a sealed segment holds no version of an event that was
// superseded or deleted, as far as the account tells.
func (m *maintenance) clean(s *seglog.Segment) bool { return m.db.dead.of(s.Base) == 0 && !s.Damaged }

// countDead corrects the account of what is dead in sealed segments by reading
// each of them once after a start, and reports whether it did. The account in the
// index file can be wrong: the process may have ended after a segment was
// replaced or removed and before the index had that, and an index that is made
// again from the log cannot know what was superseded by a version that is gone.
// From then on the account is exact.
func (m *maintenance) countDead(ctx context.Context, ss seglog.Segments) (corrected bool, err error) {
	for _, s := range ss {
		if s.Counted {
			continue
		}
		c := &survivors{db: m.db, compactRevision: m.db.log.CompactRevision()}
		kept, damaged, err := s.CountKept(ctx, c.with)
		if err != nil {
			return false, err
		}
		s.Counted, s.Damaged, s.Retained = true, damaged, c.retained
		if dead := s.Bytes() - kept + c.retained; dead != m.db.dead.of(s.Base) || s.Damaged {
			corrected = true
			if err := m.accountFor(s, dead); err != nil {
				return false, err
			}
		}
	}
	return corrected, nil
}

// sealDeadHead starts a new head when the present one has so much dead in it.
func (m *maintenance) sealDeadHead(ctx context.Context, bytes int64, fraction float64) error {
	return m.db.control(ctx, func() error {
		head := m.db.log.Head()
		dead := m.db.dead.of(head.Base)
		if dead < bytes || float64(dead) < fraction*float64(head.Bytes()) {
			return nil
		}
		return m.db.committer.rotate(head)
	})
}

// unlink removes the oldest segment. It counts as there until a power cut cannot
// bring it back: deletions of what it holds may be dropped only then.
func (m *maintenance) unlink(ctx context.Context, s *seglog.Segment) error {
	if err := errors.Join(disk.Remove(s.Path), disk.SyncDir(m.db.o.Dir)); err != nil {
		return err
	}
	err := m.db.control(ctx, func() error {
		m.db.log.RemoveFirst()
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return m.accountFor(s, 0)
}

// rewrite copies what is needed of a segment into a new file and puts that in
// its place.
//
// A deletion that no state needs any more is still needed by a rebuild of the
// index as long as an older version of its event may be in the files: only when
// nothing dead is left in the segments before is it dropped.
func (m *maintenance) rewrite(ctx context.Context, s *seglog.Segment, clean bool) error {
	tmp := s.Path + ".tmp"
	c := &survivors{db: m.db, dropDeletions: clean, compactRevision: m.db.log.CompactRevision()}
	damaged, err := s.Rewrite(ctx, tmp, c.with)
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, s.Path); err != nil {
		return err
	}
	if err := disk.SyncDir(m.db.o.Dir); err != nil {
		return err
	}
	smaller, err := seglog.OpenSegment(s.Path, false, 0)
	if err != nil {
		return err
	}
	smaller.Counted, smaller.Damaged, smaller.Retained = true, damaged, c.retained
	err = m.db.control(ctx, func() error {
		m.db.log.Replace(smaller)
		return nil
	})
	if err != nil {
		return errors.Join(err, smaller.Close())
	}
	if err := s.Close(); err != nil {
		return err
	}
	return m.accountFor(s, c.retained)
}

// accountFor notes how much is dead in what has become of a segment.
func (m *maintenance) accountFor(s *seglog.Segment, dead int64) error {
	m.db.dead.set(s.Base, dead)
	return m.db.index.SaveAccount(index.Account{Trimmed: m.trimmed, Dead: m.db.dead.all()})
}

// survivors decide which records of a segment are needed.
type survivors struct {
	db              *DB
	dropDeletions   bool
	compactRevision uint64
	retained        int64 // bytes of the dead deletions that were kept
}

// with calls f with a function that reports whether a record is needed.
func (c *survivors) with(f func(needed func(*seglog.Entry) (bool, error)) error) error {
	return c.db.index.View(func(v index.View) error {
		return c.db.log.View(func(log *seglog.Reader) error {
			return f(func(e *seglog.Entry) (bool, error) { return c.needed(log, v, e) })
		})
	})
}

// needed reports whether a record is an event's newest version, or part of a
// state that can still be read, or a deletion that keeps an event from coming
// back.
func (c *survivors) needed(log *seglog.Reader, v index.View, e *seglog.Entry) (bool, error) {
	if e.Revision > c.compactRevision {
		return true, nil
	}
	p, ok, err := v.Newest(string(e.Key))
	if err != nil {
		return false, err
	}
	if gone := !ok || p.Deletion() && p.Revision() <= c.compactRevision; gone && e.Kind == seglog.Deleted && !c.dropDeletions {
		c.retained += e.Size()
		return true, nil
	}
	if !ok || p.Revision() <= c.compactRevision {
		return ok && p == index.NewPointer(e.Revision, false), nil
	}
	// Superseded: needed if that happened behind the compact revision.
	for next := p.Revision(); next > c.compactRevision; {
		newer, err := log.Get(next)
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
