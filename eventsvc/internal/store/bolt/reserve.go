package bolt

import (
	"errors"
	"math"
	"os"

	"go.etcd.io/bbolt"
)

// The head is made longer by as much as is used of it, but at most so much at a
// time, and by less where segments are small.
const (
	reserveBytes = 4 << 20
	reserveShare = 16
	// A commit takes some pages besides its records, and a record at most
	// twice its size where pages end.
	reserveMargin = 256 << 10
)

// zeros are written in pieces of this size.
var zeros [256 << 10]byte

// reserve sees to it that the next commit of a head, of records of so many
// bytes, finds room in blocks that the file has already; used are taken of them.
// Where a commit makes a file longer or fills a hole in it, each of its two
// syncs waits for the journal of the file system too, which takes as long again
// as the data. The committer runs it.
//
// Nothing depends on it: where there is no room for it bbolt makes the file
// longer by itself, as little as it must, and finds out whether that fits.
func (s *segment) reserve(used, records, segmentBytes int64) {
	need := 2*records + reserveMargin
	if used+need <= s.reserved {
		return
	}
	end, err := writeZeros(s.path, used+need+min(used, reserveBytes, segmentBytes/reserveShare))
	if err != nil {
		end = math.MaxInt64 // not tried again
	}
	s.reserved = end
}

// writeZeros makes a file so long with blocks that are on the disk, unless it
// is that long already. It leaves the file as it was if there is no room.
func writeZeros(path string, end int64) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() >= end {
		return info.Size(), nil
	}
	for at := info.Size(); at < end && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return 0, errors.Join(err, f.Truncate(info.Size()))
	}
	return end, nil
}

// shrink gives back what was reserved of a head that is sealed.
func (s *segment) shrink() error {
	return s.view(func(tx *bbolt.Tx) error {
		return os.Truncate(s.path, tx.Size()+segmentPage)
	})
}

// batchSize is the length of the records of a batch.
func batchSize(batch []*write) (n int64) {
	for _, w := range batch {
		n += w.size()
	}
	return n
}
