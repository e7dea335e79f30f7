package seglog

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/observed"
)

// minutes goes over what the records of a segment report, minute by minute, to write it to
// another one.
type minutes struct {
	tx      *bbolt.Tx
	found   *observed.Collection       // of records that are not indexed
	needed  func(revision uint64) bool // whether a record is kept; what others report is summed up
	since   int64                      // sums of earlier minutes are left out
	number  func(texts string) (uint32, error)
	damaged func(k, v []byte) error // called with runs that cannot be read

	entries []observed.Entry
	numbers map[uint32]uint32 // of series in the other segment, by those in this one
}

// minuteSince returns the first minute that begins at a time or after it, of no time the
// first of all.
func minuteSince(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	minute, _ := observed.MinuteOf(t.Unix() + 59)
	return minute
}

// any reports whether there is something from since on.
func (m *minutes) any() bool {
	if slices.ContainsFunc(m.found.Entries, func(e observed.Observation) bool { return e.Minute >= m.since }) {
		return true
	}
	b := m.tx.Bucket([]byte(observed.BucketRuns))
	if b == nil {
		return false
	}
	k, _ := b.Cursor().Seek(observed.Key(m.since, 0))
	return k != nil
}

// each calls f with the entries of each minute, in the order of a run.
func (m *minutes) each(f func(minute int64, entries []observed.Entry) error) error {
	m.numbers = map[uint32]uint32{}
	found, err := m.renumbered()
	if err != nil {
		return err
	}
	var c *bbolt.Cursor
	var k, v []byte
	if b := m.tx.Bucket([]byte(observed.BucketRuns)); b != nil {
		c = b.Cursor()
		k, v = c.First()
	}
	for k != nil || len(found) > 0 {
		minute := int64(math.MaxInt64)
		if k != nil {
			if minute, err = observed.MinuteOfKey(k); err != nil {
				if err := m.damaged(k, v); err != nil {
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
		for of := observed.Key(minute, 0)[:8]; len(k) == observed.KeyLen && string(k[:8]) == string(of); k, v = c.Next() {
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
func (m *minutes) renumbered() ([]observed.Observation, error) {
	numbers := make([]uint32, len(m.found.Texts))
	for i, texts := range m.found.Texts {
		var err error
		if numbers[i], err = m.number(texts); err != nil {
			return nil, err
		}
	}
	for i := range m.found.Entries {
		e := &m.found.Entries[i]
		e.Series = numbers[e.Series]
	}
	slices.SortStableFunc(m.found.Entries, func(a, b observed.Observation) int { return cmp.Compare(a.Minute, b.Minute) })
	return m.found.Entries, nil
}

// read adds the entries of a run. One that cannot be read is damaged as a whole.
func (m *minutes) read(k, v []byte) error {
	before := len(m.entries)
	run, err := observed.Parse(k, v)
	if err == nil {
		err = run.Each(observed.All, func(e observed.Entry) { m.entries = append(m.entries, e) })
	}
	for i := before; i < len(m.entries) && err == nil; i++ {
		m.entries[i].Series, err = m.renumber(m.entries[i].Series)
	}
	if !errors.Is(err, boltfile.ErrChecksum) {
		return err
	}
	m.entries = m.entries[:before]
	return m.damaged(k, v)
}

func (m *minutes) renumber(series uint32) (uint32, error) {
	if n, ok := m.numbers[series]; ok {
		return n, nil
	}
	texts, err := observed.SeriesIn(m.tx, series)
	if err != nil {
		return 0, err
	}
	n, err := m.number(string(texts))
	m.numbers[series] = n
	return n, err
}

// write calls f with what is left of the entries of a minute.
func (m *minutes) write(minute int64, f func(minute int64, entries []observed.Entry) error) error {
	for i := range m.entries {
		if e := &m.entries[i]; e.Revision != 0 && !m.needed(e.Revision) {
			e.Revision = 0
		}
	}
	if minute < m.since {
		m.entries = slices.DeleteFunc(m.entries, func(e observed.Entry) bool { return e.Revision == 0 })
	}
	if m.entries = observed.Merge(m.entries); len(m.entries) == 0 {
		return nil
	}
	return f(minute, m.entries)
}
