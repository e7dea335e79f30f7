package seglog

import (
	"errors"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// minuteCopy goes over what the records of a segment report, minute by minute, to write it to
// another one.
type minuteCopy struct {
	Tx      *bbolt.Tx
	Needed  func(revision uint64) bool // whether a record is kept; what others report is summed up
	Since   int64                      // sums of earlier minutes are left out
	Number  func(texts string) (uint32, error)
	Damaged func(k, v []byte) error // called with runs that cannot be read

	entries []runEntry
	numbers map[uint32]uint32 // of series and nodes in the other segment, by those in this one
}

// minuteSince returns the first minute that begins at a time or after it, of no time the
// first of all.
func minuteSince(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	minute, _ := minuteOf(t.Unix() + 59)
	return minute
}

// Any reports whether there is something from since on.
func (m *minuteCopy) Any() bool {
	b := m.Tx.Bucket([]byte(bucketRuns))
	if b == nil {
		return false
	}
	k, _ := b.Cursor().Seek(runKey(m.Since, 0))
	return k != nil
}

// Each calls f with the entries of each minute, in the order of a run.
func (m *minuteCopy) Each(f func(minute int64, entries []runEntry) error) error {
	m.numbers = map[uint32]uint32{}
	b := m.Tx.Bucket([]byte(bucketRuns))
	if b == nil {
		return boltfile.ErrChecksum
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; {
		minute, err := minuteOfKey(k)
		if err != nil {
			if err := m.Damaged(k, v); err != nil {
				return err
			}
			k, v = c.Next()
			continue
		}
		m.entries = m.entries[:0]
		for of := runKey(minute, 0)[:8]; len(k) == runKeyLen && string(k[:8]) == string(of); k, v = c.Next() {
			if err := m.read(k, v); err != nil {
				return err
			}
		}
		if err := m.write(minute, f); err != nil {
			return err
		}
	}
	return nil
}

// read adds the entries of a run. One that cannot be read is damaged as a whole.
func (m *minuteCopy) read(k, v []byte) error {
	before := len(m.entries)
	run, err := parseRun(k, v)
	if err == nil {
		m.entries, err = run.Append(m.entries, allSeries)
	}
	for i := before; i < len(m.entries) && err == nil; i++ {
		e := &m.entries[i]
		if e.Series, err = m.renumber(e.Series); err == nil && e.Node != 0 {
			e.Node, err = m.renumber(e.Node - 1)
			e.Node++
		}
	}
	if !errors.Is(err, boltfile.ErrChecksum) {
		return err
	}
	m.entries = m.entries[:before]
	return m.Damaged(k, v)
}

func (m *minuteCopy) renumber(series uint32) (uint32, error) {
	if n, ok := m.numbers[series]; ok {
		return n, nil
	}
	texts, err := seriesIn(m.Tx, series)
	if err != nil {
		return 0, err
	}
	n, err := m.Number(string(texts))
	m.numbers[series] = n
	return n, err
}

// write calls f with what is left of the entries of a minute.
func (m *minuteCopy) write(minute int64, f func(minute int64, entries []runEntry) error) error {
	for i := range m.entries {
		if e := &m.entries[i]; e.Revision != 0 && !m.Needed(e.Revision) {
			e.Revision = 0
		}
	}
	if minute < m.Since {
		m.entries = slices.DeleteFunc(m.entries, func(e runEntry) bool { return e.Revision == 0 })
	}
	if m.entries = mergeEntries(m.entries); len(m.entries) == 0 {
		return nil
	}
	return f(minute, m.entries)
}
