package index

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// The file is packed when the keys that are not sorted are packLeast or more, and an eighth of the events or more:
// until then they take half as much room as what is packed. It is written again instead when they are half of the
// events, as after an import: packing changes nearly all of its pages then, in many transactions, and leaves their room
// empty. Below packLeast neither is worth its work, so a store of fewer than 200,000 events, where that is more than
// half of them, is never packed for its keys, but written again. The log is read for terms of removed versions when
// there are as many of these as events.
const (
	packLeast  = 100_000
	packShare  = 8
	writeShare = 2
)

// NeedsPack reports whether [Index.Pack] is worth its work, with so many events.
func (x *Index) NeedsPack(events int64) bool {
	return x.loose.Load() >= max(packLeast, events/packShare) || x.Stale(events)
}

// Stale reports whether, with so many events, the terms of removed versions are worth a scan of the log.
func (x *Index) Stale(events int64) bool { return x.stale.Load() >= max(packLeast, events) }

// packChunk is about how many keys, or terms, are packed in one transaction.
const packChunk = 4096

// Pack brings the keys and terms that merges have left into the form that [Index.Rewrite] gives them, within the file.
// It takes out the terms of versions that are gone. It needs hardly any room, because each part takes the pages that
// the part before has left, but the file does not become smaller. Merges go on between the parts, and what they leave
// meanwhile may stay as it is. If Pack is interrupted, it can be called again.
//
// Versions before first, the first revision of the log, are gone. held tells which later ones are, as for
// [Index.Rewrite]; nil: none is.
func (x *Index) Pack(ctx context.Context, first uint64, held func(last uint64) (Revisions, error)) error {
	last := x.Merged()
	loose, stale := x.loose.Load(), x.stale.Load()
	p := packing{held: func(revision uint64) bool { return revision >= first }}
	if held == nil {
		stale = 0
	} else {
		revisions, err := held(last)
		if err != nil {
			return err
		}
		p.held = func(revision uint64) bool { return revision > last || revisions.Has(revision) }
	}
	for _, part := range []func(*bbolt.Tx) error{p.someKeys, p.someTerms} {
		for p.done = false; !p.done; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := x.packPart(part); err != nil {
				return fmt.Errorf("packing %s: %w", x.path, err)
			}
		}
	}
	x.loose.Add(-loose)
	x.stale.Add(-stale)
	return x.packPart(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(metaLoose), be.AppendUint64(nil, uint64(x.loose.Load())))
	})
}

func (x *Index) packPart(part func(*bbolt.Tx) error) error {
	x.merging.Lock()
	defer x.merging.Unlock()
	return x.update(part)
}

// packing is how far [Index.Pack] has come.
type packing struct {
	held func(revision uint64) bool
	done bool   // with the keys, or with the terms
	key  []byte // the first one that is not packed
	term Term   // the same
}

// someKeys packs the next keys. Of the others, those stay whose deletion the log has.
func (p *packing) someKeys(tx *bbolt.Tx) error {
	var w keyWriter
	keys, sorted := tx.Bucket([]byte(bucketKeys)), tx.Bucket([]byte(bucketSorted))
	var taken [][]byte // out of bucketKeys
	it := viewOf(tx).Iterate(string(p.key), "")
	for n := 0; n < packChunk && it.Valid(); n++ {
		if err := it.Err(); err != nil {
			return err
		}
		key, at := bytes.Clone(it.Key()), it.Pointer()
		if !at.Deletion() {
			w.add(key, at.Revision())
		}
		if (!at.Deletion() || !p.held(at.Revision())) && keys.Get(key) != nil {
			taken = append(taken, key)
		}
		it.Next()
	}
	w.end()
	var end []byte // the first key that is not taken; nil: there is none
	if it.Valid() {
		end = bytes.Clone(it.Key())
	}
	groups, rest, err := groupsUntil(sorted, p.key, end)
	if err != nil {
		return err
	}
	p.key, p.done = end, end == nil
	for _, key := range taken {
		if err := keys.Delete(key); err != nil {
			return err
		}
	}
	return replaceEntries(tx, bucketSorted, groups, append(w.writes, rest...))
}

// groupsUntil returns the keys of the groups that have keys in [from, end). If the last group also has keys from end
// on, rest is a group of those. An end of nil is the end of the bucket.
func groupsUntil(sorted *bbolt.Bucket, from, end []byte) (groups [][]byte, rest []entry, err error) {
	c := sorted.Cursor()
	for k, v := c.Seek(from); k != nil; k, v = c.Next() {
		if end == nil || bytes.Compare(k, end) < 0 {
			groups = append(groups, bytes.Clone(k))
			continue
		}
		g, err := parseKeyGroup(k, v)
		if err != nil {
			return nil, nil, err
		}
		var w keyWriter
		begins := true
		err = g.each(nil, func(key []byte, at Pointer) bool {
			if bytes.Compare(key, end) >= 0 {
				w.keys, w.revisions = append(w.keys, bytes.Clone(key)), append(w.revisions, at.Revision())
				return true
			}
			begins = false
			return true
		})
		if !begins {
			w.end()
			rest = w.writes
		}
		return groups, rest, err
	}
	return groups, nil, nil
}

// someTerms packs the next terms.
func (p *packing) someTerms(tx *bbolt.Tx) error {
	var w packer
	var taken [][]byte // out of bucketTerms
	from, n := p.term, 0
	p.done = true
	for r, err := range runsOf(tx, from) {
		if err != nil {
			return err
		}
		if n >= packChunk && r.term >= p.term {
			p.done = false
			break
		}
		all := len(r.revisions)
		r.revisions = slices.DeleteFunc(r.revisions, func(revision uint64) bool { return !p.held(revision) })
		p.term = r.term + 1
		if r.key != nil && all > packedRevisions && len(r.revisions) == all {
			continue // it stays as it is
		}
		if r.key != nil {
			taken = append(taken, bytes.Clone(r.key))
		}
		w.add(r)
		n++
	}
	w.end()
	if p.done {
		p.term = math.MaxUint64
	}
	groups, rest, err := p.packedBefore(tx.Bucket([]byte(bucketPacked)), from)
	if err != nil {
		return err
	}
	singles := tx.Bucket([]byte(bucketTerms))
	for _, key := range taken {
		if err := singles.Delete(key); err != nil {
			return err
		}
	}
	return replaceEntries(tx, bucketPacked, groups, append(w.writes, rest...))
}

// packedBefore returns the keys of the groups that have terms in [from, p.term), or all from that term on if p is done.
// If the last group also has terms from p.term on, rest is a group of those.
func (p *packing) packedBefore(packed *bbolt.Bucket, from Term) (groups [][]byte, rest []entry, err error) {
	c := packed.Cursor()
	for k, v := c.Seek(be.AppendUint64(nil, uint64(from))); k != nil; k, v = c.Next() {
		g, err := parseGroup(k, v)
		if err != nil {
			return nil, nil, err
		}
		if p.done || g.last < p.term {
			groups = append(groups, bytes.Clone(k))
			continue
		}
		var w packer
		begins := true
		for t, revisions := range g.each {
			if begins = begins && t >= p.term; t >= p.term {
				w.add(run{term: t, revisions: revisions})
			}
		}
		if !begins {
			w.end()
			groups, rest = append(groups, bytes.Clone(k)), w.writes
		}
		return groups, rest, nil
	}
	return groups, nil, nil
}

// replaceEntries takes entries out of a bucket, and then puts others into the file.
func replaceEntries(tx *bbolt.Tx, bucket string, old [][]byte, entries []entry) error {
	b := tx.Bucket([]byte(bucket))
	for _, key := range old {
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	return putEntries(tx, entries)
}
