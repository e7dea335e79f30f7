package seglog

import (
	"slices"
	"sync/atomic"
	"unique"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
)

// maxKnownSeries is how many series of segments a log keeps in memory. Nearly all of them are the same in each segment,
// so that one takes eight bytes.
const maxKnownSeries = 1 << 17

// knownSeries are the dimensions of all series of a segment, by their numbers. A query asks for them again and again.
type knownSeries struct {
	all   []unique.Handle[event.Dimensions]
	count *atomic.Int64 // of those that are known of all segments
}

// learn remembers the series of a segment that are not known yet: those that a head has got since, or all. It gives up
// for good if one of them is damaged, or if there is no room for them: otherwise every reader would read all of them,
// and forget them.
func (l *Log) learn(s *Segment, tx *bbolt.Tx) {
	b := tx.Bucket([]byte(bucketSeries))
	if b == nil || s.unknown.Load() {
		return
	}
	before := s.known.Load()
	known := &knownSeries{count: &l.known}
	if before != nil {
		known.all = slices.Clip(before.all)
	}
	n := len(known.all)
	c := b.Cursor()
	for k, v := c.Seek(seriesKey(uint32(n))); k != nil; k, v = c.Next() {
		texts, err := seriesTexts(k, v)
		if err != nil || be.Uint32(k) != uint32(len(known.all)) || len(known.all) >= maxKnownSeries {
			s.unknown.Store(true)
			return
		}
		d, err := uniqueSeries(texts)
		if err != nil {
			s.unknown.Store(true)
			return
		}
		known.all = append(known.all, d)
	}
	more := int64(len(known.all) - n)
	if more == 0 {
		return
	}
	if l.known.Add(more) > maxKnownSeries {
		s.unknown.Store(true)
		l.known.Add(-more)
		return
	}
	if !s.known.CompareAndSwap(before, known) { // another reader has learned them meanwhile
		l.known.Add(-more)
	}
}

// series returns the dimensions of a series, and false if they have to be read.
func (s *Segment) series(number uint32) (d unique.Handle[event.Dimensions], ok bool) {
	known := s.known.Load()
	if known == nil || uint64(number) >= uint64(len(known.all)) {
		return d, false
	}
	return known.all[number], true
}

// unlearn gives up what is known of a segment that nobody reads any more.
func (s *Segment) unlearn() {
	if known := s.known.Swap(nil); known != nil {
		known.count.Add(-int64(len(known.all)))
	}
}

// uniqueSeries returns the dimensions that [appendSeries] has encoded.
func uniqueSeries(texts []byte) (d unique.Handle[event.Dimensions], err error) {
	parsed, err := parseSeries(texts)
	if err != nil {
		return d, err
	}
	return unique.Make(parsed), nil
}
