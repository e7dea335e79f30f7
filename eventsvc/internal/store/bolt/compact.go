package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// A sealed segment is compacted when so much of it is dead: the files then
// stay below one and a half times what is needed.
const (
	compactFraction = 0.25
	compactBytes    = 1 << 20
	compactCommit   = 4 << 20
)

// compact brings disk space back: sealed segments with nothing alive at the
// old end of the log are unlinked, others with much dead in them are written
// anew, and so is the index when it is mostly empty pages.
func (db *DB) compact(ctx context.Context) error {
	if err := db.sealDeadHead(ctx); err != nil {
		return err
	}
	ss := *db.segments.Load()
	for i, s := range ss[:len(ss)-1] {
		dead, all := db.dead.of(s.base), s.records.Load()
		var err error
		switch {
		case dead >= all && i == 0:
			err = db.unlink(ctx, s)
		case dead >= compactBytes && float64(dead) >= compactFraction*float64(all):
			err = db.rewrite(ctx, s)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("store: compacting %s: %w", s.path, err)
		}
		return db.compact(ctx)
	}
	return nil
}

// sealDeadHead starts a new head when the present one has much dead in it.
func (db *DB) sealDeadHead(ctx context.Context) error {
	return db.control(ctx, func() error {
		head := db.segments.Load().head()
		dead := db.dead.of(head.base)
		if dead < 8*compactBytes || float64(dead) < compactFraction*float64(head.records.Load()) {
			return nil
		}
		return db.roll(head)
	})
}

// unlink removes the oldest segment.
func (db *DB) unlink(ctx context.Context, s *segment) error {
	err := db.control(ctx, func() error {
		ss := *db.segments.Load()
		rest := ss[1:len(ss):len(ss)]
		db.segments.Store(&rest)
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.db.Close(), os.Remove(s.path)); err != nil {
		return err
	}
	return db.accountFor(s)
}

// rewrite copies what is needed of a segment into a new file and puts that in
// its place.
func (db *DB) rewrite(ctx context.Context, s *segment) error {
	tmp := s.path + ".tmp"
	if err := db.copyNeeded(ctx, s, tmp); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, s.path); err != nil {
		return err
	}
	if err := syncDir(db.o.Dir); err != nil {
		return err
	}
	smaller, err := openSegment(s.path, false, 0)
	if err != nil {
		return err
	}
	err = db.control(ctx, func() error {
		ss := append(segments(nil), *db.segments.Load()...)
		ss[ss.find(s.base)] = smaller
		db.segments.Store(&ss)
		return nil
	})
	if err != nil {
		return errors.Join(err, smaller.db.Close())
	}
	if err := s.db.Close(); err != nil {
		return err
	}
	return db.accountFor(s)
}

func (db *DB) accountFor(s *segment) error {
	db.dead.forget(s.base)
	return guard(func() error {
		return db.index.db.Update(func(tx *bbolt.Tx) error { return db.dead.save(tx, db.trimmed) })
	})
}

func (db *DB) copyNeeded(ctx context.Context, s *segment, path string) error {
	id, err := s.storeID()
	if err != nil {
		return err
	}
	end, err := s.meta(metaEnd)
	if err != nil {
		return err
	}
	to, err := createSegmentFile(path, s.base, []byte(id))
	if err != nil {
		return err
	}
	kept := int64(0)
	for at, more := s.base-1, true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			at, more, err = db.copyChunk(s, to, at, &kept)
		}
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			return errors.Join(meta.Put([]byte(metaEnd), revisionKey(end)), meta.Put([]byte(metaBytes), revisionKey(uint64(kept))))
		})
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// copyChunk copies the needed records of one stretch and reports where it ended.
func (db *DB) copyChunk(s *segment, to *bbolt.DB, after uint64, kept *int64) (at uint64, more bool, err error) {
	at = after
	horizon := db.horizon.Load()
	err = to.Update(func(out *bbolt.Tx) error {
		b := out.Bucket([]byte(bucketLog))
		b.FillPercent = segmentFill
		t := db.tables.Load()
		return db.index.view(func(tx *bbolt.Tx) error {
			keys := tx.Bucket([]byte(bucketKeys))
			return db.readLog(func(log *logReader) error {
				size := int64(0)
				return s.view(func(from *bbolt.Tx) error {
					c := from.Bucket([]byte(bucketLog)).Cursor()
					for k, v := c.Seek(revisionKey(at + 1)); k != nil; k, v = c.Next() {
						if size > compactCommit {
							more = true
							return nil
						}
						at = be.Uint64(k)
						needed, err := db.needed(log, t, keys, at, v, horizon)
						if err != nil || !needed {
							if err != nil {
								return err
							}
							continue
						}
						if err := b.Put(k, append([]byte(nil), v...)); err != nil {
							return err
						}
						size += int64(len(v))
						*kept += int64(len(v))
					}
					return nil
				})
			})
		})
	})
	return at, more, err
}

// needed reports whether a record is an event's newest version, or part of a
// state that can still be read. A damaged record is kept as it is: it is the
// evidence.
func (db *DB) needed(log *logReader, t *tables, keys *bbolt.Bucket, revision uint64, record []byte, horizon uint64) (bool, error) {
	if revision > horizon {
		return true, nil
	}
	e, err := parseRecord(revision, record)
	if err != nil {
		return true, nil //nolint:nilerr // see above
	}
	p, ok, err := t.newest(keys, e.key)
	if err != nil {
		return false, err
	}
	if !ok || p.revision() <= horizon {
		return ok && p == newPointer(revision, false), nil
	}
	// Superseded: needed if that happened behind the horizon.
	for next := p.revision(); next > horizon; {
		newer, err := log.get(next)
		if err != nil {
			return false, err
		}
		if newer.previous == revision {
			return e.kind != deleted, nil
		}
		next = newer.previous
	}
	return false, nil
}
