package seglog

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// Occurrence returns when and how often the event of a record was observed: what its
// attributes say, else once, when it was written.
func Occurrence(e *Entry) event.Occurrence {
	if o, ok := event.Attributes(e.Attributes).Occurrence(); ok {
		return o
	}
	return event.Occurrence{Time: e.Time.UTC().Truncate(time.Microsecond), Count: 1, New: 1}
}

// add adds what a record reports.
func add(to *collection, e *Entry) {
	if e.Kind != Deleted {
		to.Add(e.Key[:e.NamespaceLen], e.Attributes, e.Revision, Occurrence(e))
	}
}

// addAll adds what records report. Damaged ones report nothing.
func addAll(to *collection, records []wal.Record) *collection {
	for _, r := range records {
		if e, err := splitEntry(r.Revision, r.Data); err == nil {
			add(to, &e)
		}
	}
	return to
}

// damagedNote stands for a revision that is noted in the meta bucket and damaged.
const damagedNote = math.MaxUint64

// noted returns a revision that [note] has put into the meta bucket, 0 if it is not there.
func noted(tx *bbolt.Tx, name string) uint64 {
	v := tx.Bucket([]byte(boltfile.Meta)).Get([]byte(name))
	if v == nil {
		return 0
	}
	if len(v) != 12 || be.Uint32(v[8:]) != boltfile.Checksum(be.Uint64(v), []byte(name)) {
		return damagedNote
	}
	return be.Uint64(v)
}

// note puts a revision into the meta bucket, with a checksum. It leaves out 0.
func note(tx *bbolt.Tx, name string, revision uint64) error {
	if revision == 0 {
		return nil
	}
	return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(name), noteOf(name, revision))
}

func noteOf(name string, revision uint64) []byte {
	return be.AppendUint32(recordKey(revision), boltfile.Checksum(revision, []byte(name)))
}

// Checkpoint writes records to the head in one commit, and indexes them by time. It skips
// those that the head has.
func (l *Log) Checkpoint(head *Segment, records []wal.Record) error {
	seen := addAll(newCollection(), records)
	return head.change(func(tx *bbolt.Tx, n *seriesNumbers) error { return putRecords(tx, n, records, seen) })
}

// change runs f in a write transaction of a head. f may give numbers to series.
func (s *Segment) change(f func(*bbolt.Tx, *seriesNumbers) error) error {
	s.observing.Lock()
	defer s.observing.Unlock()
	err := s.update(func(tx *bbolt.Tx) error {
		if s.numbering == nil {
			s.numbering = seriesNumbersOf(tx)
		}
		return f(tx, s.numbering)
	})
	if err != nil {
		s.numbering = nil // it may have numbers that the file does not
	}
	return err
}

// putRecords puts the records that a segment does not have into its file, with what they
// report.
func putRecords(tx *bbolt.Tx, n *seriesNumbers, records []wal.Record, seen *collection) error {
	log := tx.Bucket([]byte(bucketLog))
	last := lastKey(log, 0)
	if records = wal.After(records, last); len(records) == 0 {
		return nil
	}
	log.FillPercent = boltfile.FillPercent
	var next []successor
	for _, r := range records {
		if err := log.Put(recordKey(r.Revision), r.Data); err != nil {
			return err
		}
		if e, damage := splitEntry(r.Revision, r.Data); damage == nil {
			if s, ok := successorOf(&e); ok {
				next = append(next, s)
			}
		}
	}
	b := tx.Bucket([]byte(bucketNext))
	b.FillPercent = boltfile.FillPercent // what expires is superseded in its order
	if err := putSuccessors(b, next, 1); err != nil {
		return err
	}
	seen.Entries = slices.DeleteFunc(seen.Entries, func(e observation) bool { return e.Revision <= last })
	return seen.Save(tx, n)
}

// manyRuns is how many runs are worth to be merged.
const manyRuns = 4096

// NeedsMerge reports that a sealed segment has several runs of most minutes, because it was
// written in another order than that of observation, as by an import. A rewrite merges them.
func (s *Segment) NeedsMerge() bool { return s.scattered.Load() }

// Carry copies what was observed since a time according to a sealed segment, which is to be
// unlinked, to the head, and notes there that it has. From then on readers leave out that
// segment and those before it. It reports whether some of it is damaged and lost.
func (l *Log) Carry(s *Segment, since time.Time) (damaged bool, err error) {
	if carried, err := l.Segments().carried(); err != nil || carried >= s.Base {
		return false, err // by a process that ended before it has unlinked the segment
	}
	err = s.view(func(from *bbolt.Tx) error {
		m := minuteCopy{Tx: from, Since: minuteSince(since), Needed: func(uint64) bool { return false }}
		if !m.Any() {
			return nil // and nothing can be counted twice
		}
		return l.Head().change(func(tx *bbolt.Tx, n *seriesNumbers) error {
			series, runs, err := timeBuckets(tx)
			if err != nil {
				return err
			}
			var unwritten error
			m.Number = func(texts string) (number uint32, err error) {
				number, err = n.Number(series, texts)
				unwritten = cmp.Or(unwritten, err)
				return number, err
			}
			m.Damaged = func(_, _ []byte) error {
				damaged = true
				return nil
			}
			unread := m.Each(func(minute int64, entries []runEntry) error {
				unwritten = putRun(runs, minute, s.Base, entries)
				return unwritten
			})
			damaged = damaged || unread != nil
			return cmp.Or(unwritten, note(tx, metaCarried, s.Base))
		})
	})
	return damaged, err
}

// carried returns the base of the newest segment of which what was observed is in a later
// one, 0 if there is none.
func (ss Segments) carried() (base uint64, err error) {
	for _, s := range ss {
		err := s.view(func(tx *bbolt.Tx) error {
			base = max(base, noted(tx, metaCarried))
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return base, nil
}
