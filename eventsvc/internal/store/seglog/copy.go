package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/observed"
	"tidings.example/eventsvc/internal/store/wal"
)

// copyBytes is about how many bytes of records are copied in one transaction.
const copyBytes = 4 << 20

// A Keeper calls f with a function that reports whether a record is needed, and that is
// valid until f returns. It may call f again.
type Keeper func(f func(needed func(*Entry) (bool, error)) error) error

// Rewrite copies the records of a sealed segment that are needed to a new file at path,
// synced, and indexes them by time. It keeps damaged records, as evidence, and reports
// whether there are any. Of what other records report it keeps the counts since a time.
func (l *Log) Rewrite(ctx context.Context, s *Segment, path string, keeper Keeper, since time.Time) (damaged bool, err error) {
	c := copier{from: s, keeper: keeper}
	err = c.run(ctx, l, path, since)
	return c.damaged, err
}

// CountKept returns how many bytes of records Rewrite would keep.
func (s *Segment) CountKept(ctx context.Context, keeper Keeper) (kept int64, damaged bool, err error) {
	c := copier{from: s, keeper: keeper, at: s.Base - 1}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = c.some(func(_, _ []byte) error { return nil })
		}
	}
	return c.kept, c.damaged, err
}

// A copier copies what is needed of a sealed segment to a new file.
type copier struct {
	from   *Segment
	keeper Keeper

	at      uint64   // the last record that was looked at
	needed  []uint64 // the revisions of those that are kept
	kept    int64    // bytes
	damaged bool     // a record is damaged, and may be an older version of any event
}

func (c *copier) run(ctx context.Context, l *Log, path string, since time.Time) error {
	id, err := c.from.StoreID()
	if err != nil {
		return err
	}
	end, err := c.from.meta(metaEnd)
	if err != nil {
		return err
	}
	to, err := createUnsynced(path, c.from.Base, []byte(id))
	if err != nil {
		return err
	}
	c.at = c.from.Base - 1
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = c.copySome(to)
		}
	}
	if err == nil {
		err = c.copyObserved(l, to, since)
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(boltfile.Meta))
			return errors.Join(meta.Put([]byte(metaEnd), RevisionKey(end)), meta.Put([]byte(metaBytes), RevisionKey(uint64(c.kept))))
		})
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// copySome copies the needed records among the next copyBytes in one transaction, and
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

// some calls keep with the needed records among the next copyBytes, and reports whether
// there are more.
func (c *copier) some(keep func(k, v []byte) error) (more bool, err error) {
	err = c.keeper(func(needed func(*Entry) (bool, error)) error {
		return c.from.view(func(from *bbolt.Tx) error {
			more, err = c.each(from.Bucket([]byte(bucketLog)).Cursor(), keep, needed)
			return err
		})
	})
	return more, err
}

func (c *copier) each(from *bbolt.Cursor, keep func(k, v []byte) error, needed func(*Entry) (bool, error)) (more bool, err error) {
	size := 0
	for k, v := from.Seek(RevisionKey(c.at + 1)); k != nil; k, v = from.Next() {
		if size > copyBytes {
			return true, nil
		}
		if c.at, err = RevisionOf(k); err != nil {
			return false, err
		}
		// A damaged record is kept as it is: it is the evidence.
		if e, err := ParseRecord(c.at, v); err != nil {
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
		c.needed = append(c.needed, c.at)
	}
	return false, nil
}

// copyObserved copies what the records report, also those that are not copied. Runs of one
// minute become one. A damaged run is kept as it is, so that readers are told.
func (c *copier) copyObserved(l *Log, to *bbolt.DB, since time.Time) error {
	found, _, err := unindexed(l, c.from, math.MaxInt)
	if err != nil {
		return err
	}
	return c.from.view(func(from *bbolt.Tx) error {
		return to.Update(func(tx *bbolt.Tx) error {
			n := observed.NumberingOf(tx)
			series, runs, err := observed.Buckets(tx)
			if err != nil {
				return err
			}
			runs.FillPercent = boltfile.FillPercent
			m := minutes{
				tx: from, found: found, since: minuteSince(since),
				needed: func(revision uint64) bool {
					_, ok := slices.BinarySearch(c.needed, revision)
					return ok
				},
				number:  func(texts string) (uint32, error) { return n.Number(series, texts) },
				damaged: func(k, v []byte) error { return runs.Put(bytes.Clone(k), bytes.Clone(v)) },
			}
			return errors.Join(
				m.each(func(minute int64, entries []observed.Entry) error {
					return observed.PutRun(runs, minute, observed.Last(entries), entries)
				}),
				note(tx, metaObserved, max(c.at, observedIn(from))),
				note(tx, metaCarried, noted(from, metaCarried)))
		})
	})
}

// CopyAcknowledged copies the published records of the head, and the pending ones, to a
// sealed file that ends with a revision. It verifies each, and that none is missing.
func (l *Log) CopyAcknowledged(path string, end uint64) error {
	head := l.Head()
	id, err := head.StoreID()
	if err != nil {
		return err
	}
	to, err := createUnsynced(path, head.Base, []byte(id))
	if err != nil {
		return err
	}
	last := l.published()
	copied := int64(0)
	pending := l.Pending()
	err = head.view(func(from *bbolt.Tx) error {
		pending = wal.After(pending, lastIn(from, 0)) // the head has the others, of a checkpoint that was reported as failed
		keep := func(k, v []byte) ([]byte, []byte, error) {
			revision, err := RevisionOf(k)
			if err != nil {
				return nil, nil, err
			}
			if revision > last {
				return nil, nil, nil
			}
			copied += int64(len(v))
			_, err = ParseRecord(revision, v)
			return k, v, err
		}
		ctx := context.Background() // bounded by the size of one file
		return errors.Join(boltfile.CopyBucket(ctx, from, to, bucketLog, keep), copyPublished(ctx, from, to, last))
	})
	if err == nil && len(pending) > 0 {
		copied += wal.Bytes(pending)
		for _, p := range pending {
			_, damage := ParseRecord(p.Revision, p.Data)
			err = errors.Join(err, damage)
		}
		seen := reported(l, pending)
		err = errors.Join(err, to.Update(func(tx *bbolt.Tx) error { return putRecords(tx, observed.NumberingOf(tx), pending, seen) }))
	}
	if err == nil && copied != head.Bytes() {
		err = fmt.Errorf("%d bytes of records were acknowledged, but %d are in the file", head.Bytes(), copied)
	}
	if err == nil {
		err = to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(boltfile.Meta))
			return errors.Join(
				meta.Put([]byte(metaEnd), RevisionKey(end)),
				meta.Put([]byte(metaBytes), RevisionKey(uint64(copied))),
				meta.Put([]byte(metaCompact), RevisionKey(l.CompactRevision())))
		})
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// copyPublished copies the index by time of a head, without what records report that were
// not published.
func copyPublished(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, last uint64) error {
	if from.Bucket([]byte(observed.BucketRuns)) == nil {
		return nil // as an older program has made it
	}
	until := func(k, v []byte) ([]byte, []byte, error) {
		run, err := observed.Parse(k, v)
		if err != nil || run.Last() <= last {
			return k, v, err
		}
		var entries []observed.Entry
		err = run.Each(observed.All, func(e observed.Entry) {
			if e.Revision <= last {
				entries = append(entries, e)
			}
		})
		if err != nil || len(entries) == 0 {
			return nil, nil, err
		}
		k = observed.Key(run.Minute, observed.Last(entries))
		return k, observed.AppendRun(nil, k, entries), nil
	}
	return errors.Join(
		boltfile.CopyBucket(ctx, from, to, observed.BucketSeries, nil),
		boltfile.CopyBucket(ctx, from, to, observed.BucketRuns, until),
		to.Update(func(tx *bbolt.Tx) error {
			return errors.Join(
				note(tx, metaObserved, min(observedIn(from), last)),
				note(tx, metaCarried, noted(from, metaCarried)))
		}))
}
