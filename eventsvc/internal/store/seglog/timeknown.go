package seglog

import (
	"sync/atomic"
	"unique"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
)

// maxKnownSeries is how many series of sealed segments a log keeps in memory. Nearly all of them are the same in each segment,
// so that one takes eight bytes.
const maxKnownSeries = 1 << 17

// knownSeries are the dimensions of all series of a sealed segment, by their numbers. A query asks for them again and again.
type knownSeries struct {
	all   []unique.Handle[event.Dimensions]
	count *atomic.Int64 // of those that are known of all segments
}

// learn remembers the series of a sealed segment: once, and only if all of them are sound.
func (l *Log) learn(s *Segment, tx *bbolt.Tx) {
	b := tx.Bucket([]byte(bucketSeries))
	if b == nil || s.learned.Swap(true) {
		return
	}
	known := &knownSeries{count: &l.known}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		texts, err := seriesTexts(k, v)
		if err != nil || be.Uint32(k) != uint32(len(known.all)) || len(known.all) >= maxKnownSeries {
			return
		}
		d, err := parseSeries(texts)
		if err != nil {
			return
		}
		known.all = append(known.all, unique.Make(d))
	}
	n := int64(len(known.all))
	if l.known.Add(n) > maxKnownSeries {
		l.known.Add(-n)
		return
	}
	s.known.Store(known)
}

// series returns the dimensions of a series, and false if they have to be read.
func (s *Segment) series(number uint32) (d event.Dimensions, ok bool) {
	known := s.known.Load()
	if known == nil || uint64(number) >= uint64(len(known.all)) {
		return d, false
	}
	return known.all[number].Value(), true
}

// unlearn gives up what is known of a segment that nobody reads any more.
func (s *Segment) unlearn() {
	if known := s.known.Swap(nil); known != nil {
		known.count.Add(-int64(len(known.all)))
	}
}
