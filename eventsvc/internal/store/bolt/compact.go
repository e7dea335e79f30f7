package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
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
func (db *DB) compact(ctx context.Context) error {
	if err := db.sealDeadHead(ctx, 8*compactBytes, compactFraction); err != nil {
		return err
	}
	ss := *db.segments.Load()
	clean := true // nothing dead in the segments before, as far as the account tells
	for i, s := range ss[:len(ss)-1] {
		dead, all := db.dead.of(s.base), s.records.Load()
		gain := dead
		if !clean {
			gain -= s.retained
		}
		empty := dead >= all && i == 0
		if !empty && (gain < min(compactBytes, db.o.SegmentBytes/16) || float64(gain) < compactFraction*float64(all)) {
			clean = clean && db.clean(s)
			continue
		}
		var corrected bool
		var err error
		if clean { // a removal relies on the account, and so does a deletion that is dropped
			s.counted = s.counted && !empty // what is removed is looked at again
			corrected, err = db.countDead(ctx, ss[:i+1])
		}
		switch {
		case err != nil || corrected:
		case empty:
			err = db.unlink(ctx, s)
		default:
			err = db.rewrite(ctx, s, clean)
		}
		if err != nil {
			return fmt.Errorf("store: compacting %s: %w", s.path, err)
		}
		return db.compact(ctx)
	}
	return nil
}

// clean reports whether a sealed segment holds no version of an event that was
// superseded or deleted, as far as the account tells.
func (db *DB) clean(s *segment) bool { return db.dead.of(s.base) == 0 && !s.damaged }

// countDead corrects the account of what is dead in sealed segments by reading
// each of them once after a start, and reports whether it did. The account in the
// index file can be wrong: the process may have ended after a segment was
// replaced or removed and before the index had that, and an index that is made
// again from the log cannot know what was superseded by a version that is gone.
// From then on the account is exact.
func (db *DB) countDead(ctx context.Context, ss segments) (corrected bool, err error) {
	for _, s := range ss {
		if s.counted {
			continue
		}
		c := &copier{db: db, from: s, horizon: db.horizon.Load(), at: s.base - 1}
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if more, err = c.some(func(_, _ []byte) error { return nil }); err != nil {
				return false, err
			}
		}
		s.counted, s.damaged, s.retained = true, c.damaged, c.retained
		if dead := s.records.Load() - c.kept + c.retained; dead != db.dead.of(s.base) || s.damaged {
			corrected = true
			if err := db.accountFor(s, dead); err != nil {
				return false, err
			}
		}
	}
	return corrected, nil
}

// sealDeadHead starts a new head when the present one has so much dead in it.
func (db *DB) sealDeadHead(ctx context.Context, bytes int64, fraction float64) error {
	return db.control(ctx, func() error {
		head := db.segments.Load().head()
		dead := db.dead.of(head.base)
		if dead < bytes || float64(dead) < fraction*float64(head.records.Load()) {
			return nil
		}
		return db.roll(head)
	})
}

// unlink removes the oldest segment. It counts as there until a power cut cannot
// bring it back: deletions of what it holds may be dropped only then.
func (db *DB) unlink(ctx context.Context, s *segment) error {
	if err := errors.Join(disk.Remove(s.path), disk.SyncDir(db.o.Dir)); err != nil {
		return err
	}
	err := db.control(ctx, func() error {
		ss := *db.segments.Load()
		rest := ss[1:len(ss):len(ss)]
		db.segments.Store(&rest)
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	return db.accountFor(s, 0)
}

// rewrite copies what is needed of a segment into a new file and puts that in
// its place.
//
// A deletion that no state needs any more is still needed by a rebuild of the
// index as long as an older version of its event may be in the files: only when
// nothing dead is left in the segments before is it dropped.
func (db *DB) rewrite(ctx context.Context, s *segment, clean bool) error {
	tmp := s.path + ".tmp"
	c := &copier{db: db, from: s, dropDeletions: clean, horizon: db.horizon.Load()}
	if err := c.run(ctx, tmp); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, s.path); err != nil {
		return err
	}
	if err := disk.SyncDir(db.o.Dir); err != nil {
		return err
	}
	smaller, err := openSegment(s.path, false, 0)
	if err != nil {
		return err
	}
	smaller.counted, smaller.damaged, smaller.retained = true, c.damaged, c.retained
	err = db.control(ctx, func() error {
		ss := append(segments(nil), *db.segments.Load()...)
		ss[ss.find(s.base)] = smaller
		db.segments.Store(&ss)
		return nil
	})
	if err != nil {
		return errors.Join(err, smaller.close())
	}
	if err := s.close(); err != nil {
		return err
	}
	return db.accountFor(s, c.retained)
}

// accountFor notes how much is dead in what has become of a segment.
func (db *DB) accountFor(s *segment, dead int64) error {
	db.dead.set(s.base, dead)
	return db.index.SaveAccount(index.Account{Trimmed: db.trimmed, Dead: db.dead.all()})
}

// A copier copies what is needed of a sealed segment to a new file.
type copier struct {
	db            *DB
	from          *segment
	dropDeletions bool
	horizon       uint64

	at             uint64 // the last record that was looked at
	kept, retained int64  // bytes: all that are kept, and the dead deletions among them
	damaged        bool   // a record cannot be read: it may be an older version of any event
}

func (c *copier) run(ctx context.Context, path string) error {
	id, err := c.from.storeID()
	if err != nil {
		return err
	}
	end, err := c.from.meta(metaEnd)
	if err != nil {
		return err
	}
	to, err := createSegmentFile(path, c.from.base, []byte(id))
	if err != nil {
		return err
	}
	c.at = c.from.base - 1
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = c.copySome(to)
		}
	}
	if err == nil {
		err = c.from.view(func(from *bbolt.Tx) error { return boltfile.CopyBucket(ctx, from, to, bucketMinutes, nil) })
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(boltfile.Meta))
			return errors.Join(meta.Put([]byte(metaEnd), seglog.RevisionKey(end)), meta.Put([]byte(metaBytes), seglog.RevisionKey(uint64(c.kept))))
		})
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// copySome copies the needed records of one stretch, in one transaction, and
// reports whether there are more.
func (c *copier) copySome(to *bbolt.DB) (more bool, err error) {
	err = to.Update(func(out *bbolt.Tx) error {
		b := out.Bucket([]byte(bucketLog))
		b.FillPercent = boltfile.FillPercent
		more, err = c.some(func(k, v []byte) error { return b.Put(k, append([]byte(nil), v...)) })
		return err
	})
	return more, err
}

// some calls keep with the needed records of one stretch, and reports whether
// there are more.
func (c *copier) some(keep func(k, v []byte) error) (more bool, err error) {
	err = c.db.index.View(func(v index.View) error {
		return c.db.readLog(func(log *logReader) error {
			return c.from.view(func(from *bbolt.Tx) error {
				more, err = c.each(from.Bucket([]byte(bucketLog)).Cursor(), keep, func(e *seglog.Entry) (bool, error) {
					return c.needed(log, v, e)
				})
				return err
			})
		})
	})
	return more, err
}

func (c *copier) each(from *bbolt.Cursor, keep func(k, v []byte) error, needed func(*seglog.Entry) (bool, error)) (more bool, err error) {
	size := 0
	for k, v := from.Seek(seglog.RevisionKey(c.at + 1)); k != nil; k, v = from.Next() {
		if size > compactCommit {
			return true, nil
		}
		if c.at, err = seglog.RevisionOf(k); err != nil {
			return false, err
		}
		// A damaged record is kept as it is: it is the evidence.
		if e, err := seglog.ParseRecord(c.at, v); err != nil {
			c.damaged = true
		} else if ok, err := needed(&e); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		if err := keep(k, v); err != nil {
			return false, err
		}
		size += len(v)
		c.kept += int64(len(v))
	}
	return false, nil
}

// needed reports whether a record is an event's newest version, or part of a
// state that can still be read, or a deletion that keeps an event from coming
// back.
func (c *copier) needed(log *logReader, v index.View, e *seglog.Entry) (bool, error) {
	if e.Revision > c.horizon {
		return true, nil
	}
	p, ok, err := v.Newest(string(e.Key))
	if err != nil {
		return false, err
	}
	if gone := !ok || p.Deletion() && p.Revision() <= c.horizon; gone && e.Kind == seglog.Deleted && !c.dropDeletions {
		c.retained += e.Size()
		return true, nil
	}
	if !ok || p.Revision() <= c.horizon {
		return ok && p == index.NewPointer(e.Revision, false), nil
	}
	// Superseded: needed if that happened behind the horizon.
	for next := p.Revision(); next > c.horizon; {
		newer, err := log.get(next)
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
