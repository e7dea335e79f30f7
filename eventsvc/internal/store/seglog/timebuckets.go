package seglog

import (
	"bytes"
	"errors"
	"math"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// The buckets of an index by time in a bbolt file.
const (
	bucketSeries = "series"   // number → texts of a series, or of a node
	bucketRuns   = "observed" // minute and last revision → what was observed
)

// timeBuckets returns the buckets of a file, which it makes if they are missing.
func timeBuckets(tx *bbolt.Tx) (series, runs *bbolt.Bucket, err error) {
	if series, err = tx.CreateBucketIfNotExists([]byte(bucketSeries)); err == nil {
		runs, err = tx.CreateBucketIfNotExists([]byte(bucketRuns))
	}
	return series, runs, err
}

// putRun puts entries of a minute, in the order of a run, into the bucket of runs.
func putRun(runs *bbolt.Bucket, minute int64, last uint64, entries []runEntry) error {
	k := runKey(minute, last)
	return runs.Put(k, appendRun(nil, k, entries))
}

// countRuns returns how many runs there are, of how many minutes.
func countRuns(tx *bbolt.Tx) (runs, minutes int) {
	b := tx.Bucket([]byte(bucketRuns))
	if b == nil {
		return 0, 0
	}
	var minute []byte
	c := b.Cursor()
	for k, _ := c.First(); len(k) == runKeyLen; k, _ = c.Next() {
		if runs++; !bytes.Equal(k[:8], minute) {
			minute, minutes = k[:8], minutes+1
		}
	}
	return runs, minutes
}

// seriesIn returns the texts of a series of a file. They are valid as long as tx.
func seriesIn(tx *bbolt.Tx, series uint32) ([]byte, error) {
	k := seriesKey(series)
	b := tx.Bucket([]byte(bucketSeries))
	if b == nil {
		return nil, boltfile.ErrChecksum
	}
	return seriesTexts(k, b.Get(k))
}

// A seriesNumbers knows the numbers of the series of a file.
type seriesNumbers struct {
	numbers map[string]uint32
	next    uint32
}

// seriesNumbersOf reads the numbers of a file. A damaged series keeps its number, and is not
// found.
func seriesNumbersOf(tx *bbolt.Tx) *seriesNumbers {
	n := &seriesNumbers{numbers: map[string]uint32{}}
	b := tx.Bucket([]byte(bucketSeries))
	if b == nil {
		return n
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) != 4 {
			continue
		}
		n.next = be.Uint32(k) + 1
		if texts, err := seriesTexts(k, v); err == nil {
			n.numbers[string(texts)] = be.Uint32(k)
		}
	}
	return n
}

var errSeries = errors.New("a segment has too many series")

// Number returns the number of a series. A new one is put into the bucket.
func (n *seriesNumbers) Number(b *bbolt.Bucket, texts string) (uint32, error) {
	if number, ok := n.numbers[texts]; ok {
		return number, nil
	}
	number := n.next
	if number == math.MaxUint32-1 { // a node has one more
		return 0, errSeries
	}
	k := seriesKey(number)
	n.next++
	n.numbers[texts] = number
	return number, b.Put(k, seriesValue(k, texts))
}

// Save appends runs to a file. The number that ends their keys is their last revision. From
// then on the entries have the numbers that their series have in the file.
func (o *collection) Save(tx *bbolt.Tx, n *seriesNumbers) error {
	series, runs, err := timeBuckets(tx)
	if err != nil {
		return err
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		if e.Series, err = n.Number(series, o.Texts[e.Series]); err != nil {
			return err
		}
		if e.Node != 0 {
			if e.Node, err = n.Number(series, o.Texts[e.Node-1]); err != nil {
				return err
			}
			e.Node++
		}
	}
	return o.ByMinute(func(minute int64, entries []runEntry) error {
		return putRun(runs, minute, lastOf(entries), entries)
	})
}
