package seglog

import (
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/recordfile"
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

// Written returns when the newest record of a segment was written. It reports false if there
// is none, and returns no time if it is damaged.
func Written(s *Segment) (at time.Time, ok bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		records := recordsIn(s, tx)
		last := records.Last(0)
		if ok = last > 0; ok {
			_, err = records.Each(last, func(revision uint64, record []byte) (bool, error) {
				if e, damage := ParseRecord(revision, record); damage == nil {
					at = e.Time
				}
				return true, nil
			}, recordfile.PassLost)
		}
		return err
	})
	return at, ok, err
}
