package observed

import (
	"bytes"
	"errors"
	"math"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// The buckets of an index by time in a bbolt file.
const (
	BucketSeries = "series"   // number → texts of a series
	BucketRuns   = "observed" // minute and last revision → what was observed
)

// Buckets returns the buckets of a file, which it makes if they are missing.
func Buckets(tx *bbolt.Tx) (series, runs *bbolt.Bucket, err error) {
	if series, err = tx.CreateBucketIfNotExists([]byte(BucketSeries)); err == nil {
		runs, err = tx.CreateBucketIfNotExists([]byte(BucketRuns))
	}
	return series, runs, err
}

// PutRun puts entries of a minute, in the order of a run, into the bucket of runs.
func PutRun(runs *bbolt.Bucket, minute int64, last uint64, entries []Entry) error {
	k := Key(minute, last)
	return runs.Put(k, AppendRun(nil, k, entries))
}

// CountRuns returns how many runs there are, of how many minutes.
func CountRuns(tx *bbolt.Tx) (runs, minutes int) {
	b := tx.Bucket([]byte(BucketRuns))
	if b == nil {
		return 0, 0
	}
	var minute []byte
	c := b.Cursor()
	for k, _ := c.First(); len(k) == KeyLen; k, _ = c.Next() {
		if runs++; !bytes.Equal(k[:8], minute) {
			minute, minutes = k[:8], minutes+1
		}
	}
	return runs, minutes
}

// SeriesIn returns the texts of a series of a file. They are valid as long as tx.
func SeriesIn(tx *bbolt.Tx, series uint32) ([]byte, error) {
	k := SeriesKey(series)
	b := tx.Bucket([]byte(BucketSeries))
	if b == nil {
		return nil, boltfile.ErrChecksum
	}
	return Texts(k, b.Get(k))
}

// A Numbering knows the numbers of the series of a file.
type Numbering struct {
	numbers map[string]uint32
	next    uint32
}

// NumberingOf reads the numbers of a file. A damaged series keeps its number, and is not
// found.
func NumberingOf(tx *bbolt.Tx) *Numbering {
	n := &Numbering{numbers: map[string]uint32{}}
	b := tx.Bucket([]byte(BucketSeries))
	if b == nil {
		return n
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) != 4 {
			continue
		}
		n.next = be.Uint32(k) + 1
		if texts, err := Texts(k, v); err == nil {
			n.numbers[string(texts)] = be.Uint32(k)
		}
	}
	return n
}

var errSeries = errors.New("a segment has too many series")

// Number returns the number of a series. A new one is put into the bucket.
func (n *Numbering) Number(b *bbolt.Bucket, texts string) (uint32, error) {
	if number, ok := n.numbers[texts]; ok {
		return number, nil
	}
	number := n.next
	if number == math.MaxUint32 {
		return 0, errSeries
	}
	k := SeriesKey(number)
	n.next++
	n.numbers[texts] = number
	return number, b.Put(k, SeriesValue(k, texts))
}

// Save appends runs to a file. The number that ends their keys is their last revision. From
// then on the entries have the numbers that their series have in the file.
func (o *Collection) Save(tx *bbolt.Tx, n *Numbering) error {
	series, runs, err := Buckets(tx)
	if err != nil {
		return err
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		if e.Series, err = n.Number(series, o.Texts[e.Series]); err != nil {
			return err
		}
	}
	return o.ByMinute(func(minute int64, entries []Entry) error {
		return PutRun(runs, minute, Last(entries), entries)
	})
}
