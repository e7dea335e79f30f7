package observed

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// Minutes goes over what the records of a segment report, minute by minute, to write it to
// another one.
type Minutes struct {
	Tx      *bbolt.Tx
	Found   *Collection                // of records that are not indexed
	Needed  func(revision uint64) bool // whether a record is kept; what others report is summed up
	Since   int64                      // sums of earlier minutes are left out
	Number  func(texts string) (uint32, error)
	Damaged func(k, v []byte) error // called with runs that cannot be read

	entries []Entry
	numbers map[uint32]uint32 // of series in the other segment, by those in this one
}

// MinuteSince returns the first minute that begins at a time or after it, of no time the
// first of all.
func MinuteSince(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	minute, _ := MinuteOf(t.Unix() + 59)
	return minute
}

// Any reports whether there is something from since on.
func (m *Minutes) Any() bool {
	if slices.ContainsFunc(m.Found.Entries, func(e Observation) bool { return e.Minute >= m.Since }) {
		return true
	}
	b := m.Tx.Bucket([]byte(BucketRuns))
	if b == nil {
		return false
	}
	k, _ := b.Cursor().Seek(Key(m.Since, 0))
	return k != nil
}

// Each calls f with the entries of each minute, in the order of a run.
func (m *Minutes) Each(f func(minute int64, entries []Entry) error) error {
	m.numbers = map[uint32]uint32{}
	found, err := m.renumbered()
	if err != nil {
		return err
	}
	var c *bbolt.Cursor
	var k, v []byte
	if b := m.Tx.Bucket([]byte(BucketRuns)); b != nil {
		c = b.Cursor()
		k, v = c.First()
	}
	for k != nil || len(found) > 0 {
		minute := int64(math.MaxInt64)
		if k != nil {
			if minute, err = MinuteOfKey(k); err != nil {
				if err := m.Damaged(k, v); err != nil {
					return err
				}
				k, v = c.Next()
				continue
			}
		}
		if len(found) > 0 {
			minute = min(minute, found[0].Minute)
		}
		m.entries = m.entries[:0]
		for of := Key(minute, 0)[:8]; len(k) == KeyLen && string(k[:8]) == string(of); k, v = c.Next() {
			if err := m.read(k, v); err != nil {
				return err
			}
		}
		for ; len(found) > 0 && found[0].Minute == minute; found = found[1:] {
			m.entries = append(m.entries, found[0].Entry)
		}
		if err := m.write(minute, f); err != nil {
			return err
		}
	}
	return nil
}

// renumbered returns what is not indexed, by minute, with the numbers of the other segment.
func (m *Minutes) renumbered() ([]Observation, error) {
	numbers := make([]uint32, len(m.Found.Texts))
	for i, texts := range m.Found.Texts {
		var err error
		if numbers[i], err = m.Number(texts); err != nil {
			return nil, err
		}
	}
	for i := range m.Found.Entries {
		e := &m.Found.Entries[i]
		e.Series = numbers[e.Series]
	}
	slices.SortStableFunc(m.Found.Entries, func(a, b Observation) int { return cmp.Compare(a.Minute, b.Minute) })
	return m.Found.Entries, nil
}

// read adds the entries of a run. One that cannot be read is damaged as a whole.
func (m *Minutes) read(k, v []byte) error {
	before := len(m.entries)
	run, err := Parse(k, v)
	if err == nil {
		err = run.Each(All, func(e Entry) { m.entries = append(m.entries, e) })
	}
	for i := before; i < len(m.entries) && err == nil; i++ {
		m.entries[i].Series, err = m.renumber(m.entries[i].Series)
	}
	if !errors.Is(err, boltfile.ErrChecksum) {
		return err
	}
	m.entries = m.entries[:before]
	return m.Damaged(k, v)
}

func (m *Minutes) renumber(series uint32) (uint32, error) {
	if n, ok := m.numbers[series]; ok {
		return n, nil
	}
	texts, err := SeriesIn(m.Tx, series)
	if err != nil {
		return 0, err
	}
	n, err := m.Number(string(texts))
	m.numbers[series] = n
	return n, err
}

// write calls f with what is left of the entries of a minute.
func (m *Minutes) write(minute int64, f func(minute int64, entries []Entry) error) error {
	for i := range m.entries {
		if e := &m.entries[i]; e.Revision != 0 && !m.Needed(e.Revision) {
			e.Revision = 0
		}
	}
	if minute < m.Since {
		m.entries = slices.DeleteFunc(m.entries, func(e Entry) bool { return e.Revision == 0 })
	}
	if m.entries = Merge(m.entries); len(m.entries) == 0 {
		return nil
	}
	return f(minute, m.entries)
}
