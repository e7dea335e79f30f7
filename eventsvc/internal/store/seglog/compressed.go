package seglog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/blocks"
)

// FormatBlocks is the version of a sealed segment whose records are compressed: a program that
// does not know of blocks must not take it for an empty one.
const FormatBlocks = 3

// compressedPage is the page size of a segment of blocks. A block takes whole pages, and small
// ones waste less behind it.
const compressedPage = 1 << 10

// cacheBytes is how many bytes of inflated blocks a log keeps for its readers.
const cacheBytes = 8 << 20

// lastFile numbers the segments that this process has opened.
var lastFile atomic.Uint64

// Compressed reports whether the records of the segment are in blocks.
func (s *Segment) Compressed() bool { return s.compressed }

// Written returns when the newest record of the segment was written. It reports false if there
// is none, and returns no time if it is damaged.
func (s *Segment) Written() (at time.Time, ok bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		last := s.lastIn(tx, 0)
		if ok = last > 0; ok {
			_, err = s.eachIn(tx, last, func(revision uint64, record []byte) (bool, error) {
				if e, damage := ParseRecord(revision, record); damage == nil {
					at = e.Time
				}
				return true, nil
			}, passLost)
		}
		return err
	})
	return at, ok, err
}

// A lostBlock is a block that cannot be read, with the revisions that it covers.
type lostBlock struct {
	first, last uint64
	key, value  []byte
	err         error
}

func (l *lostBlock) error() error {
	return fmt.Errorf("the block of revisions %d to %d: %w", l.first, l.last, l.err)
}

// passLost passes over blocks that cannot be read.
func passLost(*lostBlock) (more bool, err error) { return true, nil }

// maxLost bounds the revisions that a block may have records of whose key is damaged too.
const maxLost = 1 << 20

// eachRevision calls f with the revisions that the block may have records of.
func (l *lostBlock) eachRevision(f func(revision uint64)) {
	for revision := l.first; revision <= min(l.last, l.first+maxLost); revision++ {
		f(revision)
	}
}

// eachIn calls f with the records of the file from a revision on, and lost with the blocks
// that cannot be read, in order, until one of them returns false or an error. It returns what
// they have returned last. The records are valid as long as the transaction.
func (s *Segment) eachIn(tx *bbolt.Tx, from uint64, f func(revision uint64, record []byte) (more bool, err error), lost func(*lostBlock) (more bool, err error)) (more bool, err error) {
	if s.compressed {
		return s.eachInBlocks(tx, from, f, lost)
	}
	c := tx.Bucket([]byte(bucketLog)).Cursor()
	for k, v := c.Seek(RevisionKey(from)); k != nil; k, v = c.Next() {
		revision, err := RevisionOf(k)
		if err != nil {
			return false, err
		}
		if more, err := f(revision, v); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (s *Segment) eachInBlocks(tx *bbolt.Tx, from uint64, f func(revision uint64, record []byte) (more bool, err error), lost func(*lostBlock) (more bool, err error)) (more bool, err error) {
	var room room
	from = max(from, s.Base)
	c := tx.Bucket([]byte(bucketBlocks)).Cursor()
	for k, v := c.Seek(RevisionKey(from)); k != nil; k, v = c.Next() {
		last, err := RevisionOf(k)
		if err != nil {
			return false, err
		}
		block, err := blocks.Parse(k, v)
		switch {
		case err != nil:
			more, err = lost(&lostBlock{from, last, k, v, err})
			block = new(blocks.Block)
		case block.First > from:
			more, err = lost(&lostBlock{first: from, last: block.First - 1, err: errBlockGone})
		default:
			more = true
		}
		at, _ := block.Search(from)
		for ; more && err == nil && at < block.Len(); at++ {
			more, err = f(block.Revision(at), room.record(block, at))
		}
		if err != nil || !more {
			return false, err
		}
		from = last + 1
	}
	return true, nil
}

// errBlockGone reports that no block covers a revision.
var errBlockGone = errors.New("it is not there")

// A room is memory for records of blocks. What is not referenced any more is collected.
type room struct{ b []byte }

// roomBytes is how much memory a room takes at once.
const roomBytes = 64 << 10

// record returns a record of a block, or none, which no reader takes for a record, if the
// block contradicts itself.
func (r *room) record(b *blocks.Block, i int) []byte {
	free := r.b[len(r.b):]
	record, err := b.Append(free, i)
	switch {
	case err != nil:
		return nil
	case len(record) <= cap(free):
		r.b = r.b[:len(r.b)+len(record)]
	default:
		r.b = make([]byte, 0, roomBytes)
	}
	return record[:len(record):len(record)]
}

// revisions calls f with the revisions up to the last of which the file has a record, or may
// have one.
func (s *Segment) revisions(tx *bbolt.Tx, last uint64, f func(revision uint64)) error {
	_, err := s.eachIn(tx, 0, func(revision uint64, _ []byte) (bool, error) {
		if revision <= last {
			f(revision)
		}
		return revision < last, nil
	}, func(l *lostBlock) (bool, error) {
		l.last = min(l.last, last)
		l.eachRevision(f)
		return true, nil
	})
	return err
}

// seekBlock returns the record of a revision from the segment's blocks.
func (v *segmentTx) seekBlock(s *Segment, cache *blocks.Cache, revision uint64) ([]byte, error) {
	if v.block == nil || revision < v.block.First || revision > v.block.Last {
		if err := v.findBlock(s, cache, revision); err != nil {
			return nil, err
		}
	}
	i, found := v.block.Search(revision)
	if !found {
		return nil, ErrGone
	}
	record, err := v.block.Append(nil, i)
	return record, Corrupt(revision, err)
}

// findBlock makes the block that covers a revision the present one.
func (v *segmentTx) findBlock(s *Segment, cache *blocks.Cache, revision uint64) error {
	key, value := v.cursor.Seek(RevisionKey(revision))
	if key == nil {
		return ErrGone
	}
	last, err := RevisionOf(key)
	if err != nil {
		return Corrupt(revision, err)
	}
	at := blocks.Place{File: s.file, Last: last}
	block := cache.Get(at)
	if block == nil {
		if block, err = blocks.Parse(key, value); err != nil {
			return Corrupt(revision, fmt.Errorf("the block of the revisions up to %d: %w", last, err))
		}
		cache.Put(at, block)
	}
	if revision < block.First {
		return Corrupt(revision, fmt.Errorf("the block in front of that of the revisions %d to %d: %w", block.First, last, errBlockGone))
	}
	v.block = block
	return nil
}
