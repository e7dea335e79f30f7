package seglog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
)

// copyBytes is about how many bytes of records are copied in one transaction.
const copyBytes = 4 << 20

// A Filter calls f with a function that reports whether a record is needed, and that is
// valid until f returns.
type Filter func(f func(needed func(*Entry) (bool, error)) error) error

// A Rewriting says how a sealed segment is written again.
type Rewriting struct {
	Filter   Filter
	Since    time.Time // what dropped records report is counted on if it was observed since this time
	Compress bool      // records are compressed in the new file

	// Drop is told of damaged records, which are then left out; nil: they are kept.
	Drop func(first, last uint64, damage error)
}

// Rewrite copies the records of a sealed segment that are needed to a new file at path,
// synced, and writes their columns. It keeps damaged records, as evidence, or notes that they are lost, and reports
// whether there are any. Of other records columns keep the dimensions and the occurrence since a time, so that they are
// counted on.
func (l *Log) Rewrite(ctx context.Context, s *Segment, path string, r Rewriting) (damaged bool, err error) {
	c := copier{Rewriting: r, from: s, at: s.Base - 1, columns: columnWriter{most: columns.MaxRows, after: s.Base - 1}}
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
	columns columnWriter
	out     *bbolt.Bucket // of the transaction that copies; nil: what is kept is only counted

	at      uint64        // the last record that was looked at
	lights  []columns.Row // of from, that were not copied yet
	lit     int           // so many of its tables were read for them
	next    []successor
	kept    int64 // bytes
	dropped bool  // a record was left out
	damaged bool  // a record is damaged, and may be an older version of any event
}

func (c *copier) run(ctx context.Context, l *Log, path string) error {
	return c.from.writeAgain(path, c.Compress, func(to *bbolt.DB) error {
		if err := c.all(ctx, func() (bool, error) { return c.copySome(to) }); err != nil {
			return err
		}
		return to.Update(c.finish)
	})
}

// writeAgain makes a file with the base of a segment, and returns when all that fill has
// written to it is on the disk.
func (s *Segment) writeAgain(path string, compressed bool, fill func(to *bbolt.DB) error) error {
	page, meta := segmentPage, map[string][]byte{metaBase: recordKey(s.Base), boltfile.StoreID: []byte(s.StoreID), metaCompressed: recordKey(formLog)}
	if compressed {
		page = compressedPage
		meta[metaCompressed] = recordKey(formColumns)
	}
	return boltfile.Write(path, page, buckets(), meta, fill)
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
		end := metaIn(from, metaEnd)
		if err := c.columns.Finish(tx, end); err != nil {
			return err
		}
		next := tx.Bucket([]byte(bucketNext))
		next.FillPercent = boltfile.FillPercent
		if err := putSuccessors(next, c.successors(from), nextPairs); err != nil {
			return err
		}
		if compactRevision := metaIn(from, metaCompact); !c.dropped && compactRevision > 0 { // the new file has all that this one has had from the beginning
			err = setMeta(tx, metaCompact, compactRevision)
		}
		return errors.Join(err, setMeta(tx, metaEnd, end), setMeta(tx, metaBytes, uint64(c.kept)))
	})
}

// successors returns what the records of the old file supersede, those that are left out too: versions in older files
// lead over them to those that are kept.
func (c *copier) successors(from *bbolt.Tx) []successor {
	all := c.next
	if b := from.Bucket([]byte(bucketNext)); b != nil {
		_ = b.ForEach(func(k, v []byte) error {
			_ = eachSuccessor(k, v, func(s successor) bool { // what is damaged is made again of the records that are kept
				all = append(all, s)
				return true
			})
			return nil
		})
	}
	slices.SortFunc(all, func(a, b successor) int { return cmp.Compare(a.previous, b.previous) })
	return slices.CompactFunc(all, func(a, b successor) bool { return a.previous == b.previous })
}

// copySome copies the needed records among the next copyBytes in one transaction, and
// reports whether there are more.
func (c *copier) copySome(to *bbolt.DB) (more bool, err error) {
	err = to.Update(func(tx *bbolt.Tx) error {
		c.out = tx.Bucket([]byte(bucketLog))
		c.out.FillPercent = boltfile.FillPercent
		more, err = c.some()
		return err
	})
	return more, err
}

// put writes a record that is kept.
func (c *copier) put(from *bbolt.Tx, revision uint64, record []byte) error {
	switch {
	case c.out == nil:
		return nil
	case len(record) == 0: // it is damaged
		return c.putLost(from, revision, revision)
	}
	if err := c.copyLights(from, revision); err != nil {
		return err
	}
	if c.Compress {
		return c.columns.Put(c.out, revision, record)
	}
	if err := c.out.Put(recordKey(revision), bytes.Clone(record)); err != nil {
		return err
	}
	return c.columns.observe(c.out.Tx(), revision, record)
}

func (c *copier) putLost(from *bbolt.Tx, first, last uint64) error {
	if c.out == nil {
		return nil
	}
	if err := c.copyLights(from, first); err != nil {
		return err
	}
	return c.columns.PutLost(c.out, first, last)
}

// leaveOut has the columns keep what is left of a record that is not kept.
func (c *copier) leaveOut(from *bbolt.Tx, e *Entry) error {
	if c.dropped = true; c.out == nil || e.Kind == Deleted || e.Key == nil { // which is damaged
		return nil
	}
	if err := c.copyLights(from, e.Revision); err != nil {
		return err
	}
	row := lightRowOf(e)
	return c.addLight(&row)
}

// addLight adds what is left of a version that is no longer held, if it counts.
func (c *copier) addLight(row *columns.Row) error {
	if row.New == 0 || row.Time.Before(c.Since) {
		return nil
	}
	return c.columns.addRow(c.out.Tx(), row)
}

// copyLights copies the light rows before a revision. Damaged ones are lost: who counts is told.
func (c *copier) copyLights(from *bbolt.Tx, before uint64) error {
	parts := c.from.parts(from)
	for {
		for len(c.lights) > 0 {
			if c.lights[0].Revision >= before {
				return nil
			}
			if err := c.addLight(&c.lights[0]); err != nil {
				return err
			}
			c.lights = c.lights[1:]
		}
		if c.lit == len(parts) {
			return nil
		}
		p := &parts[c.lit]
		c.lit++
		if p.table == nil { // which is lost as a whole
			c.loseLights(p.first, p.err)
			continue
		}
		err := p.table.Lights(func(r *columns.Row) error {
			c.lights = append(c.lights, *r)
			return nil
		})
		if err != nil {
			c.lights = nil
			c.loseLights(p.first, err)
		}
	}
}

// loseLights notes that light rows are damaged.
func (c *copier) loseLights(first uint64, damage error) {
	if c.Drop != nil {
		c.Drop(1, 0, damage)
	} else if c.columns.lost == 0 {
		c.columns.lost = first
	}
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
			return true, c.leaveOut(from, &of)
		}
		size += len(record)
		c.kept += int64(len(record))
		if s, ok := successorOf(&of); ok {
			c.next = append(c.next, s)
		}
		return true, c.put(from, revision, record)
	}, func(l *lostRange) (bool, error) {
		if c.at = l.Last; c.damage(l.First, l.Last, l) {
			return true, nil
		}
		return true, c.putLost(from, l.First, l.Last)
	})
	if ended && err == nil && c.out != nil {
		err = c.copyLights(from, math.MaxUint64)
	}
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
