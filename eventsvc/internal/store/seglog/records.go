package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// The buckets of records. A file has the second one if they are compressed, and the words of their notes. Where these
// are damaged or missing, the records themselves are looked at.
const (
	bucketLog     = "log"
	bucketBlocks  = "blocks"
	bucketColumns = "columns"
)

// recordKey returns the key under which a record is stored.
func recordKey(revision uint64) []byte { return binary.BigEndian.AppendUint64(nil, revision) }

// revisionOf parses such a key. On a damaged page it may be any bytes.
func revisionOf(k []byte) (uint64, error) {
	if len(k) != 8 {
		return 0, fmt.Errorf("%q is no key of the log: %w", k, boltfile.ErrChecksum)
	}
	return binary.BigEndian.Uint64(k), nil
}

// fileRecords are those of a file.
type fileRecords struct {
	Bucket     *bbolt.Bucket
	base       uint64
	compressed bool
}

// fileRecordsIn returns the records of a file with a base.
func fileRecordsIn(tx *bbolt.Tx, base uint64, compressed bool) fileRecords {
	name := bucketLog
	if compressed {
		name = bucketBlocks
	}
	return fileRecords{tx.Bucket([]byte(name)), base, compressed}
}

// Last returns the greatest revision, or none if there is no record.
func (r fileRecords) Last(none uint64) uint64 { return lastKey(r.Bucket, none) }

// lastKey returns the greatest revision of a bucket, or none if it is empty.
func lastKey(records *bbolt.Bucket, none uint64) uint64 {
	if k, _ := records.Cursor().Last(); len(k) == 8 {
		return binary.BigEndian.Uint64(k)
	}
	return none
}

// A lostBlock is a block that cannot be read, with the revisions that it covers. It has no key if it
// is missing.
type lostBlock struct {
	First, Last uint64
	Key, Value  []byte
	Err         error
}

func (l *lostBlock) Error() string {
	return fmt.Sprintf("the block of revisions %d to %d: %v", l.First, l.Last, l.Err)
}

// Unwrap returns why the block cannot be read.
func (l *lostBlock) Unwrap() error { return l.Err }

// passLost passes over blocks that cannot be read.
func passLost(*lostBlock) (more bool, err error) { return true, nil }

// maxLost bounds EachRevision, because a damaged key may claim to be of any revision.
const maxLost = 1 << 20

// EachRevision calls f with the revisions that the block may have records of.
func (l *lostBlock) EachRevision(f func(revision uint64)) {
	for revision := l.First; revision <= min(l.Last, l.First+maxLost); revision++ {
		f(revision)
	}
}

// Each calls f with the records from a revision on, and lost with the blocks
// that cannot be read, in order, until one of them returns false or an error. It returns what
// they have returned last. A record is valid until f returns.
func (r fileRecords) Each(from uint64, f func(revision uint64, record []byte) (more bool, err error), lost func(*lostBlock) (more bool, err error)) (more bool, err error) {
	return r.each(from, new(blockFinder), func(revision uint64, record recordBytes) (bool, error) {
		return f(revision, record.whole(revision))
	}, lost)
}

// each is Each that makes no checksums for records that have none, and opens blocks by a finder.
func (r fileRecords) each(from uint64, blocks *blockFinder, f func(uint64, recordBytes) (more bool, err error), lost func(*lostBlock) (more bool, err error)) (more bool, err error) {
	if r.compressed {
		return r.eachInBlocks(from, blocks, f, lost)
	}
	c := r.Bucket.Cursor()
	for k, v := c.Seek(recordKey(from)); k != nil; k, v = c.Next() {
		revision, err := revisionOf(k)
		if err != nil {
			return false, err
		}
		if more, err := f(revision, recordBytes{bytes: v}); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (r fileRecords) eachInBlocks(from uint64, blocks *blockFinder, f func(uint64, recordBytes) (more bool, err error), lost func(*lostBlock) (more bool, err error)) (more bool, err error) {
	var room []byte
	from = max(from, r.base)
	c := r.Bucket.Cursor()
	for k, v := c.Seek(recordKey(from)); k != nil; k, v = c.Next() {
		last, err := revisionOf(k)
		if err != nil {
			return false, err
		}
		block, err := blocks.open(last, k, v)
		switch {
		case err != nil:
			more, err = lost(&lostBlock{from, last, k, v, err})
		case block.First() > from:
			more, err = lost(&lostBlock{First: from, Last: block.First() - 1, Err: errBlockGone})
		default:
			more = true
		}
		at, _ := block.Search(from)
		for ; more && err == nil && at < block.Len(); at++ {
			record, _ := block.Append(room[:0], at) // one that makes no sense has no bytes, which f finds damaged
			room = record.bytes
			more, err = f(block.Revision(at), record)
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

// errColumnsGone reports that a compressed segment has no columns.
var errColumnsGone = fmt.Errorf("the columns are not there: %w", boltfile.ErrChecksum)

// Revisions calls f with the revisions up to the last of which the file has a record, or may
// have one.
func (r fileRecords) Revisions(last uint64, f func(revision uint64)) error {
	_, err := r.Each(0, func(revision uint64, _ []byte) (bool, error) {
		if revision <= last {
			f(revision)
		}
		return revision < last, nil
	}, func(l *lostBlock) (bool, error) {
		l.Last = min(l.Last, last)
		l.EachRevision(f)
		return true, nil
	})
	return err
}

// A blockFinder finds records in the blocks of a file, and keeps the block that it has found last.
type blockFinder struct {
	File   uint64        // number of the file in the cache
	Cache  *blockCache   // nil: none
	Once   bool          // blocks are not kept in the cache for longer because they are read again
	Cursor *bbolt.Cursor // of the bucket of blocks
	block  *inflatedBlock
}

// Append appends the record of a revision. Without one it returns no bytes.
func (f *blockFinder) Append(dst []byte, revision uint64) (recordBytes, error) {
	i, err := f.seek(revision)
	if i < 0 || err != nil {
		return recordBytes{}, err
	}
	record, ok := f.block.Append(dst, i)
	if !ok {
		return recordBytes{}, boltfile.ErrChecksum
	}
	return record, nil
}

// seek makes the block that covers a revision the present one, and returns the position of the record in it, less than
// 0 if there is none.
func (f *blockFinder) seek(revision uint64) (i int, err error) {
	if f.block == nil || revision < f.block.First() || revision > f.block.Last() {
		if found, err := f.load(revision); err != nil || !found {
			return -1, err
		}
	}
	i, found := f.block.Search(revision)
	if !found {
		return -1, nil
	}
	return i, nil
}

// load makes the block that covers a revision the present one. It reports false if the revision
// is greater than those of all blocks.
func (f *blockFinder) load(revision uint64) (found bool, err error) {
	key, value := f.Cursor.Seek(recordKey(revision))
	if key == nil {
		return false, nil
	}
	last, err := revisionOf(key)
	if err != nil {
		return false, err
	}
	block, err := f.open(last, key, value)
	if err != nil {
		return false, fmt.Errorf("the block of the revisions up to %d: %w", last, err)
	}
	if revision < block.First() {
		return false, fmt.Errorf("the block before the revisions %d to %d: %w", block.First(), last, errBlockGone)
	}
	return true, nil
}

// open makes a block the present one, which is valid until the next call. After an error it has no records.
func (f *blockFinder) open(last uint64, key, value []byte) (*inflatedBlock, error) {
	if f.Cache == nil {
		if f.block == nil {
			f.block = new(inflatedBlock)
		}
		return f.block, f.block.Parse(key, value)
	}
	f.Close()
	at := blockKey{File: f.File, Last: last}
	block := f.Cache.Get(at, f.Once)
	if block == nil {
		var err error
		if block, err = f.Cache.Parse(at, key, value); err != nil {
			return new(inflatedBlock), err
		}
	}
	f.block = block
	return block, nil
}

// Close gives back the present block.
func (f *blockFinder) Close() {
	if f.block != nil && f.Cache != nil {
		f.Cache.Done(f.block)
		f.block = nil
	}
}
