package seglog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// copyBytes is about how many bytes of records are copied in one transaction.
const copyBytes = 4 << 20

// A Filter calls f with a function that reports whether a record is needed, and that is
// valid until f returns.
type Filter func(f func(needed func(*Entry) (bool, error)) error) error

// A Rewriting says how a sealed segment is written again.
type Rewriting struct {
	Filter   Filter
	Since    time.Time // counts of what dropped records report are kept since this time
	Compress bool      // records are compressed in the new file

	// Drop is told of damaged records, which are then left out; nil: they are kept.
	Drop func(first, last uint64, damage error)
}

// Rewrite copies the records of a sealed segment that are needed to a new file at path,
// synced, and indexes them by time. It keeps damaged records, as evidence, or notes that they are lost, and reports
// whether there are any. Of what other records report it keeps the counts since a time.
func (l *Log) Rewrite(ctx context.Context, s *Segment, path string, r Rewriting) (damaged bool, err error) {
	c := copier{Rewriting: r, from: s, at: s.Base - 1}
	if r.Compress {
		c.columns = &columnWriter{after: s.Base - 1}
	}
	err = c.run(ctx, l, path)
	return c.damaged, err
}

// CountKept returns how many bytes of records Rewrite would keep.
func (s *Segment) CountKept(ctx context.Context, filter Filter) (kept int64, damaged bool, err error) {
	c := copier{Rewriting: Rewriting{Filter: filter}, from: s, at: s.Base - 1}
	err = c.all(ctx, c.some)
	return c.kept, c.damaged, err
}

// A copier copies what is needed of a sealed segment to a new file.
type copier struct {
	Rewriting
	from    *Segment
	columns *columnWriter // nil: records are not compressed
	out     *bbolt.Bucket // of the transaction that copies; nil: what is kept is only counted

	at      uint64   // the last record that was looked at
	needed  []uint64 // the revisions of those that are kept
	next    []successor
	kept    int64 // bytes
	dropped bool  // a record was left out
	damaged bool  // a record is damaged, and may be an older version of any event
}

func (c *copier) run(ctx context.Context, l *Log, path string) error {
	return c.from.writeAgain(path, c.columns != nil, func(to *bbolt.DB) error {
		if err := c.all(ctx, func() (bool, error) { return c.copySome(to) }); err != nil {
			return err
		}
		if err := c.copyObserved(to); err != nil {
			return err
		}
		return to.Update(c.finish)
	})
}

// writeAgain makes a file with the base of a segment, and returns when all that fill has
// written to it is on the disk.
func (s *Segment) writeAgain(path string, compressed bool, fill func(to *bbolt.DB) error) error {
	page, meta := segmentPage, map[string][]byte{metaBase: recordKey(s.Base), boltfile.StoreID: []byte(s.StoreID)}
	names := buckets()
	if compressed {
		page, names = compressedPage, append(names, bucketColumns)
		meta[metaCompressed] = recordKey(1)
	}
	to, err := boltfile.Create(path, page, names, meta)
	if err != nil {
		return err
	}
	to.NoSync = true // it is synced once
	return errors.Join(fill(to), to.View(func(tx *bbolt.Tx) error { return os.Truncate(path, tx.Size()) }), to.Sync(), to.Close())
}

// all calls some until there are no more records.
func (c *copier) all(ctx context.Context, some func() (more bool, err error)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err := some(); err != nil || !more {
			return err
		}
	}
}

// finish writes what the meta bucket says of the segment.
func (c *copier) finish(tx *bbolt.Tx) error {
	return c.from.view(func(from *bbolt.Tx) (err error) {
		compactRevision := metaIn(from, metaCompact)
		if !c.dropped && compactRevision > 0 { // the new file has all that this one has had from the beginning
			err = setMeta(tx, metaCompact, compactRevision)
		}
		next := tx.Bucket([]byte(bucketNext))
		next.FillPercent = boltfile.FillPercent
		return errors.Join(err, putSuccessors(next, c.next, nextPairs), setMeta(tx, metaEnd, metaIn(from, metaEnd)), setMeta(tx, metaBytes, uint64(c.kept)))
	})
}

// copySome copies the needed records among the next copyBytes in one transaction, and
// reports whether there are more.
func (c *copier) copySome(to *bbolt.DB) (more bool, err error) {
	err = to.Update(func(tx *bbolt.Tx) error {
		c.out = tx.Bucket([]byte(bucketLog))
		c.out.FillPercent = boltfile.FillPercent
		if more, err = c.some(); err == nil && !more && c.columns != nil {
			err = c.columns.Finish(tx)
		}
		return err
	})
	return more, err
}

func (c *copier) put(revision uint64, record []byte) error {
	switch {
	case c.out == nil:
		return nil
	case len(record) == 0: // it is damaged
		return c.putLost(revision, revision)
	case c.columns != nil:
		return c.columns.Put(c.out, revision, record)
	}
	return c.out.Put(recordKey(revision), bytes.Clone(record))
}

func (c *copier) putLost(first, last uint64) error {
	switch {
	case c.out == nil:
		return nil
	case c.columns != nil:
		return c.columns.PutLost(c.out, first, last)
	}
	return c.out.Put(recordKey(last), gapOf(first, last))
}

// some puts the needed records among the next copyBytes, and reports whether there are more.
func (c *copier) some() (more bool, err error) {
	err = c.Filter(func(needed func(*Entry) (bool, error)) error {
		return c.from.view(func(from *bbolt.Tx) error {
			more, err = c.each(from, needed)
			return err
		})
	})
	return more, err
}

func (c *copier) each(from *bbolt.Tx, needed func(*Entry) (bool, error)) (more bool, err error) {
	size := 0
	ended, err := recordsIn(c.from, from).each(c.at+1, func(revision uint64, made recordBytes) (bool, error) {
		if size > copyBytes {
			return false, nil
		}
		var keep bool
		var of Entry
		record := made.whole(revision)
		// A damaged record is kept as it is, unless it is dropped: it is the evidence.
		if e, err := made.parse(revision); err != nil {
			keep = !c.damage(revision, revision, err)
		} else if keep, err = needed(&e); err != nil {
			return false, err
		} else {
			of = e
		}
		if c.at = revision; !keep {
			c.dropped = true
			return true, nil
		}
		size += len(record)
		c.kept += int64(len(record))
		c.needed = append(c.needed, revision)
		if s, ok := successorOf(&of); ok {
			c.next = append(c.next, s)
		}
		return true, c.put(revision, record)
	}, func(l *lostRange) (bool, error) {
		if c.at = l.Last; c.damage(l.First, l.Last, l) {
			return true, nil
		}
		l.EachRevision(func(revision uint64) { c.needed = append(c.needed, revision) })
		return true, c.putLost(l.First, l.Last)
	})
	return !ended && err == nil, err
}

// damage notes damaged records, and reports whether they are dropped.
func (c *copier) damage(first, last uint64, err error) (dropped bool) {
	if c.Drop == nil {
		c.damaged = true
		return false
	}
	c.Drop(first, last, err)
	c.dropped = true
	return true
}

// copyObserved copies what the records report, also those that are not copied. Runs of one
// minute become one. A damaged run is kept as it is, so that readers are told.
func (c *copier) copyObserved(to *bbolt.DB) error {
	return c.from.view(func(from *bbolt.Tx) error {
		return to.Update(func(tx *bbolt.Tx) error {
			n := seriesNumbersOf(tx)
			series, runs, err := timeBuckets(tx)
			if err != nil {
				return err
			}
			sums, err := tx.CreateBucket([]byte(bucketSums))
			if err != nil {
				return err
			}
			series.FillPercent, runs.FillPercent, sums.FillPercent = boltfile.FillPercent, boltfile.FillPercent, boltfile.FillPercent
			hours, damaged := hourSums{Put: sums.Put}, false
			m := minuteCopy{
				Tx: from, Since: minuteSince(c.Since),
				Needed: func(revision uint64) bool {
					_, ok := slices.BinarySearch(c.needed, revision)
					return ok
				},
				Number: func(texts string) (uint32, error) { return n.Number(series, texts) },
				Damaged: func(k, v []byte) error {
					damaged = true
					return runs.Put(bytes.Clone(k), bytes.Clone(v))
				},
			}
			err = m.Each(func(minute int64, entries []runEntry) error {
				damaged = damaged || hours.Add(minute, entries) != nil
				return putRun(runs, minute, lastOf(entries), entries)
			})
			if damaged = damaged || hours.Flush() != nil; damaged { // who counts it shall be told
				err = errors.Join(err, tx.DeleteBucket([]byte(bucketSums)))
			}
			return errors.Join(err, note(tx, metaCarried, noted(from, metaCarried)))
		})
	})
}
