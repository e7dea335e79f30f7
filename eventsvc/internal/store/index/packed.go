package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// bucketPacked has the runs of rare terms, many in one entry. A term that one version has takes
// forty bytes as an entry of its own, and about twelve here. [Index.Pack] and [Index.Rewrite] pack runs; merges
// leave theirs in bucketTerms.
//
//	key: term of the last run 8 | number of the groups before that end with this term 4
//	value: for each run, in order of terms
//	  difference to the term before (uvarint) | number of revisions (uvarint) | differences (uvarints)
//	and then CRC32C 4
//
// Several runs may be of one term.
const bucketPacked = "packed"

const (
	packedRevisions = 64  // runs of more are not packed, so that a group can be searched quickly
	groupBytes      = 480 // a group is full then; some fill a page
)

// A group is an entry of bucketPacked.
type group struct {
	last Term // of its last run
	runs []byte
}

func parseGroup(k, v []byte) (group, error) {
	if len(k) != 12 || len(v) < 4 {
		return group{}, fmt.Errorf("index: packed terms: %w", boltfile.ErrChecksum)
	}
	g := group{Term(be.Uint64(k)), v[:len(v)-4]}
	if be.Uint32(v[len(v)-4:]) != boltfile.Checksum(uint64(g.last), g.runs) {
		return group{}, fmt.Errorf("index: packed terms up to %x: %w", k, boltfile.ErrChecksum)
	}
	return g, nil
}

// each goes over the runs, as an [iter.Seq2]. Revisions are good until the next run.
func (g *group) each(yield func(t Term, revisions []uint64) bool) {
	var room [packedRevisions]uint64
	rest := g.runs
	number := func() uint64 {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			n = len(rest)
		}
		rest = rest[n:]
		return v
	}
	for t := Term(0); len(rest) > 0; {
		t += Term(number())
		revisions, last := room[:0], uint64(0)
		for range min(number(), packedRevisions) {
			last += number()
			revisions = append(revisions, last)
		}
		if !yield(t, revisions) {
			return
		}
	}
}

// eachPacked calls f with the packed runs of a term.
func eachPacked(packed *bbolt.Bucket, t Term, f func(revisions []uint64)) error {
	c := packed.Cursor()
	for k, v := c.Seek(be.AppendUint64(nil, uint64(t))); k != nil; k, v = c.Next() {
		g, err := parseGroup(k, v)
		if err != nil {
			return err
		}
		for of, revisions := range g.each {
			if of == t {
				f(revisions)
			} else if of > t {
				break
			}
		}
		if g.last > t {
			break
		}
	}
	return nil
}

// A run is the revisions of a term.
type run struct {
	term      Term
	revisions []uint64
	key       []byte // in bucketTerms; nil: it is packed
}

// packedRuns goes over the packed runs of a file, from a term on. A run is good until the next one.
func packedRuns(tx *bbolt.Tx, from Term) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		c := tx.Bucket([]byte(bucketPacked)).Cursor()
		for k, v := c.Seek(be.AppendUint64(nil, uint64(from))); k != nil; k, v = c.Next() {
			g, err := parseGroup(k, v)
			if err != nil {
				yield(run{}, err)
				return
			}
			for t, revisions := range g.each {
				if t >= from && !yield(run{t, revisions, nil}, nil) {
					return
				}
			}
		}
	}
}

// singleRuns goes over the runs that are not packed, from a term on.
func singleRuns(tx *bbolt.Tx, from Term) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		var room []uint64
		c := tx.Bucket([]byte(bucketTerms)).Cursor()
		for k, v := c.Seek(be.AppendUint64(nil, uint64(from))); k != nil; k, v = c.Next() {
			if len(k) != 16 {
				yield(run{}, fmt.Errorf("%q is no key of a term: %w", k, boltfile.ErrChecksum))
				return
			}
			t := Term(be.Uint64(k))
			revisions, err := parseRun(room[:0], t, v)
			if !yield(run{t, revisions, k}, err) || err != nil {
				return
			}
			room = revisions
		}
	}
}

// runsOf goes over all runs of a file in order of their terms, from one on.
func runsOf(tx *bbolt.Tx, from Term) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		packed, stop := iter.Pull2(packedRuns(tx, from))
		defer stop()
		next, err, more := packed()
		untilPacked := func(t Term) bool {
			for ; more && (err != nil || next.term <= t); next, err, more = packed() {
				if !yield(next, err) {
					return false
				}
			}
			return true
		}
		for r, failed := range singleRuns(tx, from) {
			if !untilPacked(r.term) || !yield(r, failed) {
				return
			}
		}
		untilPacked(math.MaxUint64)
	}
}

// A packer makes the entries of terms.
type packer struct {
	writes []entry // that are made

	term      Term // of the rare run in the making
	revisions []uint64
	group     []byte // in the making
	last      Term   // of its last run
	number    uint32 // of the groups before that end with its last term
	ended     Term   // the last term of the group before
}

type entry struct {
	bucket     string
	key, value []byte
}

// copyTerms copies the terms of the revisions that the log has to a new file.
func copyTerms(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, held Revisions) error {
	var p packer
	for r, err := range runsOf(from, 0) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			r.revisions = slices.DeleteFunc(r.revisions, func(revision uint64) bool { return !held.Has(revision) })
			if p.add(r); len(p.writes) >= mergeChunk {
				err = writeEntries(to, p.writes)
				p.writes = p.writes[:0]
			}
		}
		if err != nil {
			return err
		}
	}
	p.end()
	return writeEntries(to, p.writes)
}

// add adds a run, whose term is not less than those before.
func (p *packer) add(r run) {
	switch {
	case len(r.revisions) == 0:
	case len(r.revisions) > packedRevisions:
		p.writes = append(p.writes, entry{bucketTerms, runKey(r.term, r.revisions[len(r.revisions)-1]), appendRun(nil, r.term, r.revisions)})
	default:
		n := len(p.revisions)
		if n > 0 && (r.term != p.term || r.revisions[0] <= p.revisions[n-1] || n+len(r.revisions) > packedRevisions) {
			p.endRun()
		}
		p.term, p.revisions = r.term, append(p.revisions, r.revisions...)
	}
}

// end ends the run and the group in the making.
func (p *packer) end() {
	p.endRun()
	p.endGroup()
}

// endRun adds the run in the making to the group.
func (p *packer) endRun() {
	if len(p.revisions) == 0 {
		return
	}
	if len(p.group) >= groupBytes {
		p.endGroup()
	}
	before := p.last
	if len(p.group) == 0 {
		before = 0
	}
	p.group = binary.AppendUvarint(p.group, uint64(p.term-before))
	p.group = appendDifferences(p.group, p.revisions)
	p.last, p.revisions = p.term, p.revisions[:0]
}

// endGroup has the group in the making written.
func (p *packer) endGroup() {
	if len(p.group) == 0 {
		return
	}
	p.number++
	if p.last != p.ended {
		p.number = 0
	}
	p.ended = p.last
	key := be.AppendUint32(be.AppendUint64(nil, uint64(p.last)), p.number)
	p.writes = append(p.writes, entry{bucketPacked, key, be.AppendUint32(p.group, boltfile.Checksum(uint64(p.last), p.group))})
	p.group = nil
}

// writeEntries writes entries, in the order of their keys, to a file.
func writeEntries(to *bbolt.DB, entries []entry) error {
	return to.Update(func(tx *bbolt.Tx) error { return putEntries(tx, entries) })
}

func putEntries(tx *bbolt.Tx, entries []entry) error {
	for _, w := range entries {
		b := tx.Bucket([]byte(w.bucket))
		b.FillPercent = boltfile.FillPercent
		if err := b.Put(w.key, w.value); err != nil {
			return err
		}
	}
	return nil
}
